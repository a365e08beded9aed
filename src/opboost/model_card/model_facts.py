"""The card of a saved model: what the file itself states, without any party's configuration."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from opboost.budgets.certificates import ColumnCertificate, certify
from opboost.budgets.release_accounting import LOADED
from opboost.columns.column_specs import column_to_dict
from opboost.columns.private_column import PrivateColumn
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.mechanisms import Mechanism, NominalMechanism
from opboost.mechanisms.registry import title_of
from opboost.model_card.card import NO_PURPOSE, Card, CardColumn, CardDigest, CardParty
from opboost.parties.label.received_release import SCORES_LATER, scores_stated
from opboost.promises import Joint, NoGuarantee, large_total_warning

MAX_GUESSED_CELLS = 1024
"""Larger grids get no best guess: computing it needs the whole transition matrix."""

_PLAN = "plan (columns, mechanisms and levels, as the model states them)"

_LIMITS = (
    "Labels and the label party's own columns carry no noise. The total says nothing about what "
    "the model or its predictions reveal about them.",
    "The total does not cover the fact that a person is in the table, or what aligning rows "
    "reveals: which people both sides know.",
    "It does not cover other releases about the same people, by these parties or by others; a "
    "feature party's ledger adds up its own.",
    "The accuracy holds for rows like those that the model learned from.",
)


def card_of_model(
    model: OpBoostClassifier | OpBoostRegressor, path: Path, version: str, purpose: str = ""
) -> Card:
    """Return the card that a saved model supports by itself; ``path`` is its file."""
    promise: Joint | NoGuarantee = model.guarantee_
    scores = scores_stated(promise)
    total = promise.total + sum(scores.values())
    private = model.trained_model_.layout.private
    owners = {name: str(party) for name, party in model.origins_.parties.items()}
    own = tuple(str(c.name) for c in model.trained_model_.layout.own)
    parties = _parties(promise, private, owners, len(own), scores)
    return Card(
        name=path.name,
        purpose=purpose or NO_PURPOSE,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        version=version,
        total=total,
        scores=sum(scores.values()),
        recipient="the label party" if owners else "everybody who holds the model",
        promise=(*_promise_words(promise), *_score_words(promise, scores)),
        task=_task(model),
        label=model.label_column_ or "",
        own_columns=own,
        columns=tuple(
            _column(column, certificate, owners.get(column.name, ""))
            for column, certificate in zip(private, certify(private), strict=True)
        ),
        parties=parties,
        score=model.held_out_score_,
        warning=large_total_warning(total) or "",
        limits=(*_LIMITS, *_caveats(promise)),
        digests=(
            CardDigest(f"model {path.name}", file_digest(path)),
            CardDigest(_PLAN, plan_digest(private)),
        ),
    )


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plan_digest(private: Iterable[PrivateColumn]) -> str:
    """Return a digest of what is released: the same for equal columns, mechanisms and levels."""
    plain = [column_to_dict(c) for c in private]
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def best_guess(column: PrivateColumn) -> float | None:
    """Return the chance of guessing a cell from its noisy value, if all cells are equally likely.

    It is exact: the mean over cells of the probability of those outputs for which the cell is the
    likeliest.  Return None for categories that are sent as bits, and for large grids.

    >>> import opboost as op
    >>> grid = op.Domain(1, 2)
    >>> coin = op.RandomizedResponse(grid, epsilon=1.0)
    >>> round(best_guess(op.PrivateColumn("x", op.NumericMapping(grid, (0, 1)), coin)), 3)
    0.731
    """
    mechanism = column.mechanism
    if not isinstance(mechanism, Mechanism) or mechanism.domain.size > MAX_GUESSED_CELLS:
        return None
    matrix = mechanism.transition_matrix()
    return float(np.max(matrix, axis=0).sum() / len(matrix))


def _column(column: PrivateColumn, found: ColumnCertificate, party: str) -> CardColumn:
    losses = [line.loss for line in found.lines if math.isfinite(line.loss)]
    mechanism = column.mechanism
    if isinstance(mechanism, NominalMechanism):
        cells = len(mechanism.categories)
    else:
        cells = mechanism.domain.size
    return CardColumn(
        str(column.name),
        party,
        title_of(mechanism),
        cells,
        found.brief,
        found.total,
        max(losses, default=found.exact_epsilon),
        found.covered,
        1 / cells,
        best_guess(column),
    )


def _parties(
    promise: Joint | NoGuarantee,
    private: tuple[PrivateColumn, ...],
    owners: dict[Hashable, str],
    own: int,
    scores: Mapping[str, float],
) -> tuple[CardParty, ...]:
    """Return the label party, which the file does not name, and the feature parties."""
    if not owners:
        return ()
    found = [CardParty("", "label party", own, 0.0)]
    for party in dict.fromkeys(owners[c.name] for c in private):
        names = {c.name for c in private if owners[c.name] == party}
        most = _share(promise, names) + scores.get(party, 0.0)
        found.append(CardParty(party, "feature party", len(names), most))
    return tuple(found)


def _share(promise: Joint | NoGuarantee, names: set[Hashable]) -> float:
    """Return the most that the columns of one party reveal about one person."""
    if isinstance(promise, NoGuarantee):
        return math.inf
    parts = {name: part for name, part in promise.parts.items() if name in names}
    choices = tuple(c for c in promise.choices if names.issuperset(c.columns))
    return Joint(parts, promise.columns_per_row, (), choices).total


def _task(model: Any) -> str:
    if model.trained_model_.labels is None:
        return "predict a number"
    return f"tell {len(model.trained_model_.labels)} classes apart"


def _promise_words(promise: Joint | NoGuarantee) -> tuple[str, ...]:
    """Return the rest of the promise: how many columns a row releases, and what else counts."""
    if isinstance(promise, NoGuarantee):
        return (f"Nothing is promised: {promise.reason}.",)
    words = []
    if promise.columns_per_row is not None:
        are = "is" if promise.columns_per_row == 1 else "are"
        words.append(
            f"For each person, {promise.columns_per_row} of {len(promise.parts)} columns {are} "
            "released. The choice is random and made once."
        )
    for choice in promise.choices:
        named = ", ".join(map(str, choice.columns))
        are = "is" if choice.count == 1 else "are"
        words.append(
            f"For each person, {choice.count} of these columns {are} released: {named}. The choice "
            "is random and made once."
        )
    words += [f"The total covers {what}." for what in promise.covers]
    return tuple(words)


def _score_words(promise: Joint | NoGuarantee, scores: Mapping[str, float]) -> tuple[str, ...]:
    """Return how the total divides into columns and the scores that predictions may request."""
    if not scores:
        return ()
    by_party = ", ".join(f"{most:g} by {party}" for party, most in scores.items())
    return (
        f"The columns that trained the model reveal at most {promise.total:g}. Predictions may "
        f"request scores, which reveal at most {sum(scores.values()):g} more ({by_party}). The "
        "total includes both.",
    )


def _caveats(promise: Joint | NoGuarantee) -> tuple[str, ...]:
    """Return what the total does not count; scores are always counted."""
    if isinstance(promise, NoGuarantee):
        return ()
    counted = (LOADED, SCORES_LATER)
    return tuple(f"Not counted: {c}." for c in promise.caveats if not c.startswith(counted))
