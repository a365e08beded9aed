"""Plain JSON: ``{"rows": [{"age": 31, ...}, ...]}`` in, predictions and probabilities out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from opboost.scoring.refusals import DOES_NOT_FIT, MALFORMED, TOO_LARGE, RequestRefused
from opboost.scoring.scorer import Scorer, Scores


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows by column, and how many there are."""

    columns: Mapping[str, Sequence[Any]]
    rows: int


def parsed(body: bytes) -> dict[str, Any]:
    """Parse a request, which must be a JSON object.

    >>> parsed(b'{"rows": []}')
    {'rows': []}
    """
    try:
        found = json.loads(body, parse_constant=_no_constant)
    except RequestRefused:
        raise
    except (ValueError, RecursionError):
        raise RequestRefused(MALFORMED, "The request is not JSON in UTF-8.") from None
    if not isinstance(found, dict):
        raise RequestRefused(MALFORMED, "The request must be a JSON object.")
    return found


def _no_constant(name: str) -> NoReturn:
    raise RequestRefused(MALFORMED, f"JSON has no {name}. Write null for a missing value.")


def check_size(rows: int, most: int) -> None:
    """Refuse a request without rows, or with more rows than the server takes at a time."""
    if not rows:
        raise RequestRefused(MALFORMED, "The request has no rows.")
    if rows > most:
        raise RequestRefused(
            TOO_LARGE,
            f"The request has {rows:,} rows, and the limit is {most:,}. Send fewer at a time.",
        )


def batch_of_rows(asked: dict[str, Any], scorer: Scorer, most: int) -> Batch:
    """Return the rows of a request by column; ignore other keys of a row."""
    rows = asked.get("rows")
    if not isinstance(rows, list):
        names = ", ".join(repr(n) for n in scorer.names[:3])
        raise RequestRefused(
            MALFORMED, f'The request needs "rows": a list of objects with the columns {names}, ...'
        )
    check_size(len(rows), most)
    if set(map(type, rows)) != {dict}:
        place = next(i for i, row in enumerate(rows) if type(row) is not dict)
        raise RequestRefused(MALFORMED, f"rows[{place}] is not an object with columns by name.")
    columns = {}
    for name in scorer.names:
        try:
            columns[name] = [row[name] for row in rows]
        except KeyError:
            place = next(i for i, row in enumerate(rows) if name not in row)
            raise RequestRefused(
                DOES_NOT_FIT,
                f"Column {name!r} is missing in rows[{place}]. The model needs it in every row.",
            ) from None
    return Batch(columns, len(rows))


def answer_of(scores: Scores, scorer: Scorer) -> dict[str, Any]:
    """Return predictions as JSON values; a classifier adds its classes and their probabilities."""
    found: dict[str, Any] = {"model": scorer.name, "predictions": scores.prediction.tolist()}
    if scores.probability is not None and scorer.classes is not None:
        found["classes"] = scorer.classes.tolist()
        found["probabilities"] = scores.probability.tolist()
    return found
