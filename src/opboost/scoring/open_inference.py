"""The Open Inference Protocol, version 2, as KServe, MLServer and Triton implement it over HTTP.

Each column is a tensor of its own, of shape [n] or [n, 1].  Tensors are JSON; the server refuses
those of the binary extension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opboost import __version__
from opboost.scoring.json_rows import Batch, check_size
from opboost.scoring.refusals import DOES_NOT_FIT, MALFORMED, RequestRefused
from opboost.scoring.scorer import Scorer, Scores

NUMBERS = frozenset(
    {*(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)), "FP32", "FP64"}
)
_DATATYPES = {"b": "BOOL", "i": "INT64", "u": "INT64", "f": "FP64"}


def server_metadata() -> dict[str, Any]:
    """Return the answer to ``GET /v2``."""
    return {"name": "opboost", "version": __version__, "extensions": []}


def model_metadata(scorer: Scorer) -> dict[str, Any]:
    """Return the answer to ``GET /v2/models/NAME``: inputs, outputs and the guarantee."""
    inputs = [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in scorer.ids]
    inputs += [
        {"name": c.name, "datatype": c.datatype, "shape": [-1]} for c in scorer.inputs.values()
    ]
    outputs: list[dict[str, Any]] = [
        {"name": "prediction", "datatype": _datatype(scorer.classes), "shape": [-1]}
    ]
    if scorer.classes is not None:
        outputs.append(
            {
                "name": "probability",
                "datatype": "FP64",
                "shape": [-1, len(scorer.classes)],
                "parameters": {"classes": scorer.classes.tolist()},
            }
        )
    total = scorer.guarantee.total
    return {
        "name": scorer.name,
        "versions": [],
        "platform": "opboost",
        "inputs": inputs,
        "outputs": outputs,
        "parameters": {
            "guarantee": str(scorer.guarantee),
            "record_total": total if math.isfinite(total) else None,
        },
    }


def batch_of_tensors(asked: dict[str, Any], scorer: Scorer, most: int) -> Batch:
    """Return the rows of an inference request by column; ignore other tensors."""
    tensors = asked.get("inputs")
    if not isinstance(tensors, list) or not all(isinstance(t, dict) for t in tensors):
        raise RequestRefused(
            MALFORMED, 'The request needs "inputs": a list with a tensor per column.'
        )
    _check_outputs(asked, scorer)
    by_name = {str(t.get("name")): t for t in tensors}
    if len(by_name) < len(tensors):
        raise RequestRefused(MALFORMED, "Two tensors of the request have the same name.")
    columns: dict[str, Sequence[Any]] = {}
    for name in scorer.names:
        if name not in by_name:
            raise RequestRefused(
                DOES_NOT_FIT, f"Column {name!r} is missing: the model needs a tensor of that name."
            )
        columns[name] = _data(name, by_name[name], most)
    sizes = {len(data) for data in columns.values()}
    if len(sizes) != 1:
        raise RequestRefused(MALFORMED, "The tensors have different numbers of rows.")
    return Batch(columns, sizes.pop())


def _data(name: str, tensor: dict[str, Any], most: int) -> list[Any]:
    """Return the values of a column's tensor, whose shape must be that of one column."""
    if "binary_data_size" in (tensor.get("parameters") or {}):
        raise RequestRefused(
            MALFORMED, f"Tensor {name!r} is binary, and this server takes JSON tensors only."
        )
    data, shape, kind = tensor.get("data"), tensor.get("shape"), tensor.get("datatype")
    if kind not in NUMBERS and kind not in ("BYTES", "BOOL"):
        raise RequestRefused(
            MALFORMED, f"Tensor {name!r} needs a datatype: FP64, INT64, BOOL or BYTES."
        )
    if not isinstance(data, list) or not isinstance(shape, list):
        raise RequestRefused(MALFORMED, f'Tensor {name!r} needs "shape" and "data" as lists.')
    check_size(len(data), most)
    if all(type(v) is list and len(v) == 1 for v in data):
        data = [v[0] for v in data]
    if shape not in ([len(data)], [len(data), 1]):
        raise RequestRefused(
            MALFORMED,
            f"Tensor {name!r} holds one column: its shape is [n] or [n, 1], with n values.",
        )
    return data


def _check_outputs(asked: dict[str, Any], scorer: Scorer) -> None:
    wanted = asked.get("outputs") or []
    known = {o["name"] for o in model_metadata(scorer)["outputs"]} if wanted else set()
    if not isinstance(wanted, list) or not all(
        isinstance(o, dict) and o.get("name") in known for o in wanted
    ):
        raise RequestRefused(MALFORMED, f"The model's outputs are {', '.join(sorted(known))}.")


def inference_answer(scores: Scores, scorer: Scorer, asked: dict[str, Any]) -> dict[str, Any]:
    """Return an answer's tensors, all or those that the request names, and the request's ID."""
    rows = len(scores.prediction)
    outputs = [
        {
            "name": "prediction",
            "datatype": _datatype(scorer.classes),
            "shape": [rows],
            "data": scores.prediction.tolist(),
        }
    ]
    if scores.probability is not None:
        outputs.append(
            {
                "name": "probability",
                "datatype": "FP64",
                "shape": list(scores.probability.shape),
                "data": scores.probability.ravel().tolist(),
            }
        )
    if wanted := asked.get("outputs"):
        names = [o["name"] for o in wanted]
        outputs = [o for o in outputs if o["name"] in names]
    found: dict[str, Any] = {"model_name": scorer.name, "outputs": outputs}
    if isinstance(asked.get("id"), str):
        found["id"] = asked["id"]
    return found


def _datatype(classes: np.ndarray[Any, Any] | None) -> str:
    return "FP64" if classes is None else _DATATYPES.get(classes.dtype.kind, "BYTES")
