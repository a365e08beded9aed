"""Saved models: the archive, its description, its posterior, and each library's own model file."""

import hashlib
import io
import json
import pickle
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

import opboost as op
from opboost.errors import DataError
from opboost.training.model_file import load_trained
from robustness.faults.faults_harness import content
from robustness.fuzz.mutate import number, spoilt, spoilt_json
from robustness.fuzz.target import FuzzDrill, Target, of_file, put_checked

ROWS = 300
BOOSTERS = {
    "xgboost": {"n_estimators": 3, "max_depth": 2, "nthread": 1},
    "lightgbm": {"n_estimators": 3, "num_leaves": 4, "num_threads": 1, "verbose": -1},
    "gbdt": {"n_estimators": 3, "max_depth": 2},
    "hist-gbdt": {"max_iter": 3, "max_leaf_nodes": 4},
}
ERRORS = (DataError,)

Change = Callable[[Random, dict[str, bytes]], bytes]


def _table() -> tuple[pd.DataFrame, np.ndarray]:
    numbers = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": numbers.uniform(0, 100, ROWS), "b": numbers.uniform(0, 100, ROWS)}
        | {"own": numbers.uniform(0, 1, ROWS), "city": numbers.choice(["x", "y"], ROWS)}
    )
    return table, (table.a + table.b > 100).astype(int).to_numpy()


@lru_cache(maxsize=8)
def saved(booster: str, denoise: bool) -> dict[str, bytes]:
    """Return the files of a saved estimator."""
    X, y = _table()
    model = op.OpBoostClassifier(
        op.ClampMap(op.Domain(1, 6), epsilon=2.0),
        bounds={"a": (0, 100), "b": (0, 100)},
        booster=booster,
        booster_params=BOOSTERS[booster],
        denoise=denoise,
        random_state=0,
    ).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.opboost")
        return content(Path(folder) / "model.opboost")


def zipped(files: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """Return files as an archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def _archive(rng: Random, files: dict[str, bytes]) -> bytes:
    way = rng.random()
    whole = zipped(files, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    if way < 0.6:
        return spoilt(rng, whole)
    changed = dict(files)
    name = rng.choice(list(files))
    if way < 0.8:
        changed[rng.choice(("x", "../x", *files))] = changed.pop(name)
    else:
        changed[name] = rng.choice(list(files.values()))
    return zipped(changed)


def _described(rng: Random, files: dict[str, bytes]) -> bytes:
    return zipped({**files, "estimator.json": spoilt_json(rng, files["estimator.json"])})


def _distributions(rng: Random, files: dict[str, bytes]) -> bytes:
    """Return the posterior with other arrays."""
    with np.load(io.BytesIO(files["posterior.npz"])) as known:
        arrays = dict(known)
    way, name = rng.random(), rng.choice(list(arrays))
    if way < 0.25:
        return zipped({**files, "posterior.npz": spoilt(rng, files["posterior.npz"])})
    array = arrays[name]
    if way < 0.4:
        del arrays[name]
    elif way < 0.6 and array.size:
        raw = spoilt(rng, array.tobytes())[: array.nbytes].ljust(array.nbytes, b"\0")
        arrays[name] = np.frombuffer(raw, array.dtype).reshape(array.shape)
    elif way < 0.8:
        shape = tuple(rng.choice((0, 1, 2, n, n + 1)) for n in array.shape) or (2,)
        arrays[name] = np.resize(array, shape)
    else:
        kind = rng.choice((np.float64, np.int8, np.complex128, "S3", "U5"))
        arrays[name] = np.full(array.shape, number(rng) % 100).astype(kind)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return zipped({**files, "posterior.npz": out.getvalue()})


def _skops(rng: Random, data: bytes) -> bytes:
    inner = content(io.BytesIO(data))
    name = rng.choice(["schema.json", rng.choice(list(inner))])
    change = spoilt_json if name == "schema.json" else spoilt
    return zipped({**inner, name: change(rng, inner[name])})


def _native(rng: Random, files: dict[str, bytes]) -> bytes:
    """Return the library's own model file, altered."""
    (name,) = (n for n in files if n.startswith("model."))
    data = files[name]
    if name == "model.json":
        changed = spoilt_json(rng, data)
    elif name == "model.txt":
        changed = _spoilt_text(rng, data) if rng.random() < 0.7 else spoilt(rng, data)
    else:
        changed = _skops(rng, data) if rng.random() < 0.8 else spoilt(rng, data)
    return zipped({**files, name: changed})


def _spoilt_text(rng: Random, data: bytes) -> bytes:
    lines = data.decode().split("\n")
    place = rng.randrange(len(lines))
    key, sign, rest = lines[place].partition("=")
    words = rest.split(" ")
    words[rng.randrange(len(words))] = str(rng.choice((number(rng), "", "nan", "1e999", "x")))
    lines[place] = rng.choice(
        (key + sign + " ".join(words), key + sign, "", lines[0], lines[place] * 2)
    )
    return "\n".join(lines).encode()


def _prepare(booster: str, denoise: bool, change: Change, home: Path) -> FuzzDrill:
    files = saved(booster, denoise)
    few = _table()[0].iloc[:5]

    def use(file: Path) -> None:
        model = op.load(file)
        with suppress(Exception):  # a loaded model may be useless, but must be harmless
            model.predict(few)
            model.predict(few, desensitize=True)

    file = home / "model.opboost"
    file.write_bytes(zipped(files))
    op.load(file).predict(few)
    return of_file(file, lambda rng: change(rng, files), use)


def _prepare_trained(home: Path) -> FuzzDrill:
    """Prepare a model in codes, as the label party keeps it between two starts."""
    kept = {
        "xgboost": ("model.json", "TrainedXGBoost"),
        "lightgbm": ("model.txt", "TrainedLightGBM"),
        "gbdt": ("model.skops", "TrainedSklearn"),
    }
    folders = [(name, kind, saved(booster, False)[name]) for booster, (name, kind) in kept.items()]

    def make(rng: Random) -> bytes:
        name, kind, data = rng.choice(folders)
        way = rng.random()
        spelt = spoilt(rng, kind.encode()) if way < 0.3 else kind.encode()
        model = data[: rng.randrange(len(data))] if way > 0.5 else data
        return pickle.dumps((name, spelt.decode(errors="replace"), model))

    def feed(data: bytes) -> None:
        name, kind, model = pickle.loads(data)
        about = {"kind": kind, "sha256": hashlib.sha256(model).hexdigest()}
        put_checked(home / "kind", json.dumps(about).encode())
        (home / name).write_bytes(model)
        load_trained(home, "binary", 5)

    for folder in folders:
        feed(pickle.dumps(folder))  # each is accepted if it is intact
    return FuzzDrill(make, feed)


def _model(name: str, booster: str, denoise: bool, change: Change) -> Target:
    prepare = partial(_prepare, booster, denoise, change)
    return Target(f"model: {name}", ERRORS, prepare, most=1_000)


TARGETS = [
    _model("archive", "xgboost", False, _archive),
    _model("description", "xgboost", True, _described),
    _model("posterior", "xgboost", True, _distributions),
    *(_model(booster, booster, False, _native) for booster in BOOSTERS),
    Target("model in codes", ERRORS, _prepare_trained, most=1_000),
]
