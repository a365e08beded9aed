"""The files of a trained model, which are written and read without scikit-learn.

:func:`save_model_file` writes the one that ``op.load`` reads: the stock model and a small JSON,
zipped; no pickle.  :func:`save_trained` keeps a model in codes until its split values arrive.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from opboost.boosting import Trained
from opboost.budgets.release_terms import Counted, counted_to_list
from opboost.columns.column_specs import column_to_dict
from opboost.errors import DataError, OpBoostError
from opboost.runtime.extras import needs_extra
from opboost.storage import atomic_files
from opboost.storage.archives import fits
from opboost.training.column_origins import Origins
from opboost.training.trained_model import TrainedModel

VERSION = 2
POSTERIOR = "posterior.npz"
SCORES = "scores.json"
MODULES = {
    "TrainedXGBoost": ("opboost.boosting.xgboost_backend", "model.json"),
    "TrainedLightGBM": ("opboost.boosting.lightgbm_backend", "model.txt"),
    "TrainedSklearn": ("opboost.boosting.sklearn_backend", "model.skops"),
}
"""The module and the file of each kind of trained model."""


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """What a model's file holds besides the model itself."""

    estimator: str
    """The class that ``op.load`` returns: ``OpBoostClassifier`` or ``OpBoostRegressor``."""
    names: tuple[Hashable, ...]
    """The columns of the table that it predicts."""
    named: bool
    """Whether that table has column names; otherwise it is an array."""
    guarantee: str
    origins: Origins
    released: Counted
    label: str | None


def save_model_file(model: TrainedModel, terms: ModelTerms, path: Path) -> None:
    """Write a trained model; the file appears only when it is complete."""
    kind = type(model.trained).__name__
    if kind not in MODULES:
        raise DataError(f"A booster of your own ({kind}) has no file form", hint="Save its model.")
    description = json.dumps(_description(model, terms, kind), ensure_ascii=False, indent=1)
    with tempfile.TemporaryDirectory() as folder:
        stock = Path(folder) / MODULES[kind][1]
        model.trained.save(stock)
        members = {"estimator.json": description.encode(), stock.name: stock.read_bytes()}
    if model.posterior is not None:
        distributions = io.BytesIO()
        np.savez(distributions, **model.posterior.arrays())
        members[POSTERIOR] = distributions.getvalue()
    if model.scores is not None:
        members[SCORES] = json.dumps(model.scores.to_plain()).encode()
    with atomic_files.placing(path, alone=True) as partial, atomic_files.naming(path):
        _zipped(members, partial)


def _description(model: TrainedModel, terms: ModelTerms, kind: str) -> dict[str, Any]:
    layout = model.layout
    stock: Any = model.trained
    return {
        "version": VERSION,
        "class": terms.estimator,
        "model": kind,
        "task": stock.task,
        "columns": [str(n) if isinstance(n, str) else n for n in terms.names],
        "named": terms.named,
        "private": [column_to_dict(c) for c in layout.private],
        "own": [{"name": c.name, "categories": c.categories} for c in layout.own],
        **({"parties": layout.parties} if layout.parties else {}),
        **({"own_rounds": model.own_rounds} if model.own_rounds else {}),
        "classes": _plain(model.labels),
        "guarantee": terms.guarantee,
        "origins": terms.origins.to_dict(),
        "released": counted_to_list(terms.released),
        "label": terms.label,
        "score": None if model.score is None else model.score.to_dict(),
    }


def _plain(classes: np.ndarray[Any, Any] | None) -> dict[str, Any] | None:
    if classes is None:
        return None
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def _zipped(members: Mapping[str, bytes], path: Path) -> None:
    """Write an archive that passes ``op.load``'s check against files that would fill the memory."""
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in members.items():  # no times: equal models give equal bytes
                archive.writestr(zipfile.ZipInfo(name), data, method)
        if fits(path.stat().st_size, members):
            return


def save_trained(trained: Trained, folder: Path) -> None:
    """Save a trained model in its own folder, from which :func:`load_trained` reads it."""
    kind = type(trained).__name__
    if kind not in MODULES:
        raise DataError(f"A booster of your own ({kind}) has no file form")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_files.placing(folder, folder=True, alone=True) as partial:
        model = partial / MODULES[kind][1]
        trained.save(model)
        about = {"kind": kind, "sha256": _digest(model)}
        atomic_files.write(partial / "kind", atomic_files.with_checksum(json.dumps(about).encode()))


_TRAIN_AGAIN = "Remove its folder, and the model will be trained again."


def load_trained(folder: Path, task: str, features: int) -> Trained:
    """Load the model that :func:`save_trained` wrote."""
    about = atomic_files.read_json(folder / "kind", dict[str, str], _TRAIN_AGAIN, checksum=True)
    kind = about.get("kind", "")
    if kind not in MODULES:
        raise atomic_files.damaged(folder / "kind", _TRAIN_AGAIN)
    module, name = MODULES[kind]
    if _digest(folder / name) != about.get("sha256"):
        raise atomic_files.damaged(folder / name, _TRAIN_AGAIN)
    try:
        with needs_extra("boost", "This model"):
            backend = getattr(import_module(module), kind)
            trained: Trained = backend.load(folder / name, task, features)
    except OpBoostError:
        raise
    except Exception as error:  # a library may raise anything for a damaged file
        raise atomic_files.damaged(folder / name, _TRAIN_AGAIN) from error
    return trained


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
