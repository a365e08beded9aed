"""Choose how many rounds with the columns of feature parties to add to the trees of own columns.

From few, very noisy rows, a booster learns relations that do not exist, and these would spoil the
predictions from own columns.  So some rows that a party knows are held out, and the model gets the
number of rounds with the lowest loss on their released values.  If the loss does not fall by more
than 1.5 standard errors, no round is added, and the model uses only own columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.boosting import Problem, Trained
from opboost.boosting.booster import Booster, Matrix, fit_booster, takes_groups
from opboost.boosting.training_curve import Staged
from opboost.denoise.posterior_draws import JointDistribution, drawn
from opboost.training.denoised_rows import MIN_HELD_ROWS, Denoised, judges, label_groups
from opboost.training.feature_matrix import Layout
from opboost.training.posterior_prediction import pieces
from opboost.training.released_columns import ReleasedColumn, rows_of
from opboost.training.targets import Target
from opboost.training.train_model import groups_of

HELD_SHARE = 0.25
"""Without denoising, the share of known rows that is held out for this choice."""

GUESSES = 8
"""The number of clean rows drawn for each held-out row."""

POINTS = 10
"""The number of candidates that are compared with zero rounds; they grow geometrically."""

MIN_GAIN_IN_ERRORS = 1.5
"""The loss must fall by more than this many standard errors: ``POINTS`` candidates compete."""

MIN_HELD = 30
"""With fewer held-out rows, nothing is compared and all rounds are added."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownPart:
    """The rows that at least one party knows, and how they were prepared for a booster."""

    layout: Layout
    release: list[ReleasedColumn]
    own: Matrix
    target: Target
    denoised: Denoised | None
    draws: int
    seed: int

    def split(self) -> tuple[IntArray, IntArray]:
        """Return the rows to learn from and the rows that decide."""
        if self.denoised is not None:
            return judges(self.denoised.denoiser.trial.part)
        order = np.random.default_rng([self.seed, 0x0A11]).permutation(len(self.target.y))
        held = min(MIN_HELD_ROWS, round(HELD_SHARE * len(order)))
        return np.sort(order[held:]), np.sort(order[:held])

    def learnt(self, seen: IntArray) -> tuple[Matrix, IntArray]:
        """Return what the trial learns from: noisy rows, or draws by a model of only these rows."""
        shown = rows_of(self.release, seen)
        if self.denoised is None:
            return self._codes(shown, seen), seen
        coding, denoiser = self.denoised.coding, self.denoised.denoiser
        outputs = coding.outputs(shown, self.own[seen])
        group = label_groups(self.target).of[seen]
        states = [
            drawn(denoiser.trial.member, denoiser.pairing, outputs, group, k, self.seed)
            for k in range(self.draws)
        ]
        places = np.tile(seen, self.draws)
        return self.layout.values(coding.clean(shown, states), self.own[places]), places

    def guessed(self, rows: IntArray) -> tuple[Matrix, int]:
        """Return rows in the form that the model predicts, and how many rows each one became."""
        shown, own = rows_of(self.release, rows), self.own[rows]
        if self.denoised is None:
            return self._codes(shown, rows), 1
        coding, denoiser = self.denoised.coding, self.denoised.denoiser
        joint = JointDistribution.of(denoiser.trial.member, denoiser.pairing, denoiser.groups)
        outputs = coding.outputs(shown, own)
        states = joint.guesses(outputs, joint.chances(outputs), GUESSES, self.seed)
        clean = coding.clean(shown, [states], GUESSES)
        return self.layout.values(clean, np.repeat(own, GUESSES, axis=0)), GUESSES

    def _codes(self, columns: list[ReleasedColumn], rows: IntArray) -> Matrix:
        return self.layout.codes(columns, self.own[rows])[0]


def partner_rounds(part: KnownPart, own_trees: Any, booster: Booster, rounds: int) -> int:
    """Return how many of ``rounds`` rounds to add.

    ``own_trees`` trains trees of own columns on all rows except some known ones, given by place.
    """
    target = part.target
    seen, held = part.split()
    classes_seen = target.labels is None or len(np.unique(target.y[seen])) == target.classes
    if len(held) < MIN_HELD or not classes_seen:
        return rounds
    first: Trained = own_trees(held)
    X, places = part.learnt(seen)
    problem = Problem(
        X,
        target.y[places],
        target.task,
        target.classes,
        None if target.weight is None else target.weight[places],
        seed=part.seed,
        continue_from=first,
        groups=groups_of(part.layout),
    )
    trained = fit_booster(booster, problem)
    if not isinstance(trained, Staged) or not isinstance(first, Staged):
        return rounds
    added = trained.rounds - first.rounds
    stages = sorted({0, *(round(r) for r in np.geomspace(1, max(1, added), POINTS))})
    losses = _losses(part, trained, held, [first.rounds + r for r in stages])
    gain = losses[0] - losses
    best = int(gain.mean(axis=1).argmax())
    error = float(gain[best].std(ddof=1) / np.sqrt(len(held)))
    return stages[best] if gain[best].mean() > MIN_GAIN_IN_ERRORS * error else 0


def _losses(part: KnownPart, trained: Staged, held: IntArray, rounds: list[int]) -> FloatArray:
    """Return ``[stage, row]``: the losses of held-out rows after each number of rounds."""
    y, task = part.target.y, part.target.task
    found = []
    for piece in pieces(len(held)):
        rows = held[piece]
        X, each = part.guessed(rows)
        stages = []
        for predicted in trained.staged(X, rounds):
            mean = predicted.reshape(len(rows), each, *predicted.shape[1:]).mean(axis=1)
            if task == "regression":
                stages.append((mean - y[rows]) ** 2)
            else:
                truth = mean[np.arange(len(rows)), y[rows].astype(np.int64)]
                stages.append(-np.log(np.maximum(truth, 1e-12)))
        found.append(np.array(stages))
    return np.concatenate(found, axis=1)


ROUNDS = ("n_estimators", "num_boost_round", "num_iterations")
"""The libraries' names for the number of rounds."""


@dataclass(frozen=True, slots=True)
class SomeRounds:
    """A booster that adds a given number of rounds to the model that is continued."""

    booster: Booster
    rounds: int

    @property
    def TAKES_GROUPS(self) -> bool:
        """Whether the booster restricts each tree to one group of features."""
        return takes_groups(self.booster)

    def train(self, problem: Problem) -> Trained:
        """Add the rounds; zero rounds leave the model as it is."""
        if not self.rounds and problem.continue_from is not None:
            return problem.continue_from
        params: Mapping[str, Any] | None = getattr(self.booster, "params", None)
        if params is None:
            return self.booster.train(problem)
        kept = {name: value for name, value in params.items() if name not in ROUNDS}
        kind: Any = type(self.booster)
        made: Booster = kind({**kept, "n_estimators": self.rounds})
        return made.train(problem)
