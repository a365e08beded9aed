"""What the label party asks for in a prediction by score, and which answers it accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from opboost.columns.column_specs import column_to_dict
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ParameterError, PeerError
from opboost.parties.label.received_release import SCORES_LATER
from opboost.promises import LDP, Choice, Joint, NoGuarantee
from opboost.protocol.messages import Schema, ScoreTask
from opboost.scores.score_model import SCORE
from opboost.training.released_columns import ReleasedColumn

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor

    Estimator = OpBoostClassifier | OpBoostRegressor


def check_scores(model: Estimator, parties: Sequence[str], share_trees: bool) -> None:
    """Refuse scores if the model is not a sum over these parties, or if trees are not shared."""
    scores = model.trained_model_.scores
    if scores is None:
        raise ParameterError(
            "The model is not a sum over parties, so no party can release its part of the score. "
            'Train with structure = "by-party" and full codebooks, or predict with '
            "release='columns'."
        )
    if not share_trees:
        raise ParameterError(
            "To release a score, a party needs its own trees. Their splits and rounded leaf values "
            "reveal something about labels. Write share_trees = true under [label] "
            "(share_trees=True) to show each party its own, or predict with release='columns'."
        )
    owners = set(model.trained_model_.layout.parties)
    if strange := [party for party in parties if party not in owners]:
        raise ParameterError(
            f"Party {strange[0]!r} took no part in the training; its parties are "
            f"{', '.join(sorted(owners))}."
        )
    if lacking := [party for party in scores.parties if party not in parties]:
        raise ParameterError(
            f"The model adds up parts of party {lacking[0]!r}, which is not among the parties."
        )
    if idle := [party for party in parties if party not in scores.parties]:
        raise ParameterError(
            f"No tree of the model uses party {idle[0]!r} to tell people apart, so its score would "
            "be the same for everyone. Predict without that party."
        )


def score_task(model: Estimator, party: str, job: str) -> ScoreTask:
    """Return the task that asks a party for its score."""
    scores = model.trained_model_.scores
    assert scores is not None
    return ScoreTask.of(job, scores.parties[party].model)


def scores_of(schema: Schema) -> tuple[PrivateColumn, ...]:
    """Return the single column of a released score, named after its party."""
    return tuple(replace(c, name=f"{schema.party} {c.name}") for c in schema.private())


def check_score_schema(model: Estimator, schema: Schema) -> None:
    """Refuse anything but the requested score; the party chooses its privacy level."""
    scores = model.trained_model_.scores
    assert scores is not None
    came = schema.private()
    if len(came) == 1 and came[0].name == SCORE and schema.codebook == "full":
        promise = came[0].guarantee()
        wanted = scores.parties[schema.party].model.column(promise.total)
        if column_to_dict(wanted) == column_to_dict(came[0]) and not schema.columns_per_row:
            return
    raise PeerError(
        f"Party {schema.party!r} released something other than the requested score. Run "
        "the same release of OpBoost at both parties."
    )


def with_scores(model: Estimator, answers: Mapping[str, ReleasedColumn]) -> Joint:
    """Return the guarantee for a person who was in the training and is scored: the sum of both."""
    parts: dict[object, LDP] = {
        f"score of {party}": LDP(answer.private.guarantee().total)
        for party, answer in answers.items()
    }
    trained = model.guarantee_
    if isinstance(trained, NoGuarantee):
        return Joint({**parts, "columns": trained})
    choices = trained.choices
    if trained.columns_per_row is not None:
        choices = (*choices, Choice(trained.columns_per_row, tuple(trained.parts)))
    caveats = tuple(c for c in trained.caveats if not c.startswith(SCORES_LATER))
    return Joint({**trained.parts, **parts}, None, caveats, choices)
