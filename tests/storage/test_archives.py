"""Saved estimators that would fill the memory are refused before anything is allocated."""

import copy
import io
import json
import random
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.errors import DataError
from opboost.storage import archives
from robustness.fuzz.targets.models import zipped

LITTLE = 80_000_000
"""Bytes that refusing a file may take; loading any of these would take 120 million or more."""

MANY = 30_000_000


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the members of a saved estimator of each library."""
    numbers = np.random.default_rng(0)
    X = pd.DataFrame({"a": numbers.uniform(0, 100, 200), "b": numbers.uniform(0, 1, 200)})
    y = np.where(X.a > 50, "more", "less")
    found = {}
    for booster in ("xgboost", "lightgbm", "gbdt"):
        model = op.OpBoostClassifier(
            op.ClampMap(op.Domain(1, 10), epsilon=2.0),
            bounds={"a": (0, 100)},
            booster=booster,
            booster_params={"n_estimators": 3},
            denoise=booster == "xgboost",
            random_state=0,
        ).fit(X, y)
        file = tmp_path_factory.mktemp("models") / booster
        model.save(file)
        op.load(file)  # so that imports do not count as the file's memory
        found[booster] = archives.read_archive(file)
    return found


def refused(tmp_path, members, words):
    """Check that an archive of these members is refused, with little memory."""
    file = tmp_path / "model.opboost"
    file.write_bytes(members if isinstance(members, bytes) else deflated(members))
    assert file.stat().st_size < 2**20
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=words):
            op.load(file)
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()


def deflated(members):
    return zipped(members, zipfile.ZIP_DEFLATED)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(shape, dtype, data=b""):
    """Return an array file that declares this shape and type and holds these bytes."""
    file = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue() + data


def repeated(name, data, times):
    """Return an archive whose directory names the same member many times."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
        archive.filelist += [copy.copy(archive.filelist[0]) for _ in range(times)]
    return file.getvalue()


def arrays(saved):
    return archives.read_inner_archive(saved["xgboost"]["posterior.npz"])


def test_a_compressed_archive_in_the_archive_is_not_unpacked(saved, tmp_path):
    distributions = {**arrays(saved), "P.npy": npy(np.zeros((1, MANY), np.float32))}
    members = {**saved["xgboost"], "posterior.npz": deflated(distributions)}
    refused(tmp_path, members, "holds a compressed archive")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((MANY,), "<f8"), ((), f"<U{MANY}"), ((10**15, 10**15), "<f8"), ((-1, -MANY), "<f4")],
)
def test_an_array_that_declares_more_than_it_has_is_not_allocated(saved, tmp_path, shape, dtype):
    distributions = {**arrays(saved), "share.npy": header(shape, dtype, bytes(8))}
    members = {**saved["xgboost"], "posterior.npz": zipped(distributions)}
    refused(tmp_path, members, "does not have the size that it declares")


def test_a_member_that_is_named_again_and_again_counts_each_time(saved, tmp_path):
    inside = repeated("P.npy", npy(np.zeros(250_000)), 100)
    refused(tmp_path, {**saved["xgboost"], "posterior.npz": inside}, "far more than its size")


def test_a_size_that_is_declared_too_small_bounds_what_is_unpacked(saved, tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**saved["xgboost"], "model.json": bytes(4 * MANY)}.items():
            archive.writestr(name, data)
        archive.getinfo("model.json").file_size = 100
    refused(tmp_path, file.getvalue(), "is not a saved estimator")


@pytest.mark.parametrize("dense", [b"[],", b"{},", b'"",', b'{"":0},'])
@pytest.mark.parametrize("name", ["estimator.json", "model.json"])
def test_a_text_that_grows_when_it_is_parsed_is_not_parsed(saved, tmp_path, name, dense):
    text = b"[" + dense * (MANY // len(dense)) + b"0]"
    refused(tmp_path, {**saved["xgboost"], name: text}, "far more than its size")


def test_a_model_of_many_words_is_not_split(saved, tmp_path):
    members = {**saved["lightgbm"], "model.txt": b"11 " * (MANY // 3)}
    refused(tmp_path, members, "far more than its size")


def test_a_schema_that_grows_when_it_is_parsed_is_not_parsed(saved, tmp_path):
    inside = archives.read_inner_archive(saved["gbdt"]["model.skops"])
    inside["schema.json"] = b"[" + b"[]," * (MANY // 3) + b"0]"
    refused(tmp_path, {**saved["gbdt"], "model.skops": zipped(inside)}, "far more than its size")


def test_a_compressed_model_in_the_archive_is_not_unpacked(saved, tmp_path):
    inside = archives.read_inner_archive(saved["gbdt"]["model.skops"])
    inside["more.npy"] = npy(np.zeros(MANY // 2))
    refused(tmp_path, {**saved["gbdt"], "model.skops": deflated(inside)}, "a compressed archive")


@pytest.mark.parametrize("kept", [True, False], ids=["each its own name", "no name"])
def test_an_array_that_a_model_asks_for_again_and_again_is_read_once(saved, tmp_path, kept):
    """Otherwise each request would make a copy."""
    inside = archives.read_inner_archive(saved["gbdt"]["model.skops"])
    schema = json.loads(inside["schema.json"])
    inside["large.npy"] = npy(np.zeros(100_000))
    node = {
        "__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode",
        "type": "numpy", "file": "large.npy",
    }  # fmt: skip
    nodes = [{**node, "__id__": 10**9 + i} if kept else node for i in range(200)]
    schema["content"]["content"]["more"] = {
        "__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": nodes,
    }  # fmt: skip
    inside["schema.json"] = json.dumps(schema).encode()
    members = {**saved["gbdt"], "model.skops": zipped(inside)}
    refused(tmp_path, members, "two of its parts share an array")


def test_a_model_that_holds_an_archive_is_refused(saved, tmp_path):
    import scipy.sparse

    packed = io.BytesIO()
    scipy.sparse.save_npz(packed, scipy.sparse.csr_array(np.eye(3)))
    inside = archives.read_inner_archive(saved["gbdt"]["model.skops"])
    inside["matrix.npz"] = packed.getvalue()
    refused(tmp_path, {**saved["gbdt"], "model.skops": zipped(inside)}, "is not a saved estimator")


@pytest.mark.parametrize(
    "classes",
    [
        {"dtype": f"<U{MANY}", "values": ["less", "more"]},
        {"dtype": "<U100000", "values": [["less", "more"] * 300]},
    ],
    ids=["long", "nested"],
)
def test_classes_that_would_fill_the_memory_are_refused(saved, tmp_path, classes):
    plain = json.loads(saved["xgboost"]["estimator.json"]) | {"classes": classes}
    members = {**saved["xgboost"], "estimator.json": json.dumps(plain).encode()}
    refused(tmp_path, members, "The classes of an estimator")


def test_whatever_can_be_saved_can_be_loaded(tmp_path, monkeypatch):
    """A model of identical trees compresses so well that it looks like a bomb."""
    monkeypatch.setattr(archives, "_SMALL_FILE_BYTES", 1)
    X = pd.DataFrame({"a": np.linspace(0, 100, 200)})
    model = op.OpBoostRegressor(
        op.ClampMap(op.Domain(1, 10), epsilon=2.0),
        bounds=(0, 100),
        booster_params={"n_estimators": 2000, "gamma": 1e9},
        denoise=False,
    ).fit(X, X.a)
    model.save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert archive.getinfo("model.json").compress_type == zipfile.ZIP_STORED
    again = op.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(7),
        np.array("text"), np.zeros((0, 4)), np.zeros(3, dtype=[("a", "<f4"), ("b", "u1")]),
    ],
    ids=lambda a: f"{a.dtype.str} {a.shape}",
)  # fmt: skip
def test_arrays_are_read_as_numpy_reads_them(array):
    found = archives.read_array(npy(array))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        [[] for _ in range(50_000)],
        [{} for _ in range(50_000)],
        [{"": {"": i}} for i in range(50_000)],
        [str(i) for i in range(50_000)],
        {str(i): i * 1.5 for i in range(50_000)},
        [random.Random(0).random() for _ in range(50_000)],
        list(range(10**6, 10**6 + 50_000)),
    ],
    ids=["lists", "objects", "nested", "texts", "names", "numbers", "integers"],
)
def test_what_a_text_takes_when_parsed_is_never_put_too_low(value):
    text = json.dumps(value, separators=(",", ":")).encode()
    tracemalloc.start()
    try:
        parsed = json.loads(text)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert parsed == value
    assert taken <= archives.parsed_bytes("x.json", text)
