"""From a release to the rows that a booster trains on: as they came, or posterior draws of them."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress as Bar

from opboost._typing import FloatArray, IntArray
from opboost.boosting.booster import Booster, Matrix, Problem, Task, Trained
from opboost.columns.dataframes import OutColumn
from opboost.denoise import Denoiser, Groups, Outputs, Verdict, fit
from opboost.denoise.fit import FitProgress
from opboost.denoise.posterior_draws import JointDistribution, drawn
from opboost.denoise.whether_to_denoise import MIN_ROWS, losses, mean_loss, null_losses
from opboost.errors import OpBoostError, ParameterError
from opboost.training.clean_states import (
    Cuts,
    ReleasedColumns,
    as_release,
    outputs_in,
    own_cuts,
    rows_of,
    space_of,
)
from opboost.training.feature_matrix import Layout
from opboost.training.feature_matrix import Released as AnyColumn
from opboost.training.posterior_prediction import DRAWS_PER_ROW, Posterior

Choice = Literal["auto"] | bool

ENOUGH_ROWS = 20_000
"""Up to so many rows, four draws of each are trained on; above, two."""

MIN_HELD_ROWS = 1_500
"""At most so many held-out rows decide whether to denoise, each by many guesses at it."""

LARGE_TABLE_ROWS = 100_000
"""Above so many rows, a quarter of them takes part in the decision ..."""

MAX_HELD_ROWS = 20_000
"""... and up to so many of those decide."""


@dataclass(frozen=True, slots=True)
class Learnable:
    """What to train on: columns with all draws one below the other, and how many there are.

    ``verdict`` is None where nothing was compared; ``posterior`` predicts desensitised rows where
    that is better than to show them to the model as they are.
    """

    released: ReleasedColumns
    draws: int
    denoiser: Denoised | None = None
    verdict: Verdict | None = None
    posterior: Posterior | None = None

    def repeated(self, rows: Any) -> Any:
        """Own features, labels or weights, once for each draw."""
        if rows is None or self.denoiser is None:
            return rows
        return np.concatenate([rows] * self.draws)


@dataclass(frozen=True, slots=True)
class Denoised:
    """A fitted denoiser, and how its columns stand to the release's."""

    layout: Layout
    sent: float
    denoiser: Denoiser
    cuts: Cuts
    seed: int

    def drawn(self, released: ReleasedColumns, own: Matrix, y: Any, draws: int) -> ReleasedColumns:
        """Posterior draws in the shape of a release, all draws one below the other."""
        outputs = outputs_in(self.layout, released, own, self.sent, self.cuts)
        states = [self.denoiser.draw(outputs, y, k, self.seed) for k in range(draws)]
        return as_release(self.layout, released, self.sent, states)


def learnable(
    layout: Layout,
    released: ReleasedColumns,
    own: Matrix,
    y: np.ndarray[Any, Any],
    *,
    task: Task,
    classes: int,
    denoise: Choice,
    booster: Booster,
    sent: float = 1.0,
    weight: FloatArray | None = None,
    seed: int = 0,
    verbose: int = 0,
) -> Learnable:
    """The rows to train on.

    Args:
        layout: Which columns are private and which are the label party's own.
        released: Grid values (or bits) and gaps of each private column.
        own: The own features of the same rows.
        y: Labels: 0..classes−1, or numbers.
        task: What is learned.
        classes: How many classes there are.
        denoise: ``True``, ``False``, or ``"auto"``: where held-out noisy rows do not speak against.
        booster: What will be trained; ``"auto"`` asks it about a part of the rows.
        sent: The share of rows that send each column.
        weight: Of the rows.
        seed: The same seed, the same draws.
        verbose: Above zero, a progress bar on a terminal.
    """
    if denoise not in ("auto", True, False):
        raise ParameterError(f"denoise must be 'auto', True or False; got {denoise!r}.")
    if denoise is False:
        return Learnable(released, 1)
    cuts = own_cuts(layout, own)
    space = space_of(layout, cuts, sent)
    if not (space.channels or space.bits):
        return Learnable(released, 1)
    if denoise == "auto" and len(y) < MIN_ROWS:
        return Learnable(released, 1)
    groups = Groups.bins(y) if task == "regression" else Groups.classes(y, classes)
    outputs = outputs_in(layout, released, own, sent, cuts)
    draws = 4 if len(y) <= ENOUGH_ROWS else 2
    with _Narration(verbose) as progress:
        denoiser = fit(space, groups, outputs, seed, draws, progress)
    found = Denoised(layout, sent, denoiser, cuts, seed)
    means = np.bincount(groups.of, y) / np.maximum(np.bincount(groups.of), 1)
    posterior = Posterior(
        layout,
        sent,
        cuts,
        denoiser.distribution(),
        means if task == "regression" else None,
        "draws",
        seed,
    )
    verdict: Verdict | None = None
    best: Any = posterior.way
    if denoise == "auto":
        verdict, best = _compared(
            found, released, own, outputs, y, task, classes, weight, booster, draws
        )
        if not verdict.denoise:
            return Learnable(released, 1, None, verdict)
    clean = found.drawn(released, own, y, draws)
    if best == "model":
        return Learnable(clean, draws, found, verdict)
    return Learnable(clean, draws, found, verdict, replace(posterior, way=best))


def decoded(layout: Layout, released: Mapping[Hashable, Sequence[AnyColumn]]) -> ReleasedColumns:
    """Columns that came as codes, as values."""
    return {
        c.name: [
            OutColumn(name, column.values, column.missing)
            for name, column in zip(c.release_names(), released[c.name], strict=True)
        ]
        for c in layout.private
    }


def _compared(
    found: Denoised,
    released: ReleasedColumns,
    own: Matrix,
    outputs: Outputs,
    y: np.ndarray[Any, Any],
    task: Task,
    classes: int,
    weight: FloatArray | None,
    booster: Booster,
    draws: int,
) -> tuple[Verdict, Any]:
    """Train on a part both ways; compare on noisy rows of another part.

    A model F of clean rows predicts a noisy row by the mean of F over clean rows drawn for it
    without its label; the latent classes predict its label directly.  The better of the two speaks
    for the draws: both follow from the same law of clean rows.  The second value tells which way of
    predicting noisy rows was best: these two, or the model as it is.
    """
    layout, sent, denoiser = found.layout, found.sent, found.denoiser
    trial = denoiser.trial
    seen, held = judges(trial.part)
    if task != "regression" and len(np.unique(y[seen])) < classes:
        # A class is too rare to be left out.
        return Verdict(0.0, 0.0, np.inf), "draws"

    def matrix(columns: ReleasedColumns, rows: IntArray) -> Matrix:
        return layout.values(columns, own[rows])

    def trained(columns: ReleasedColumns, times: int = 1) -> Any:
        rows = np.tile(seen, times)
        part = None if weight is None else weight[rows]
        problem = Problem(matrix(columns, rows), y[rows], task, classes, part, seed=found.seed)
        return train(booster, problem)

    model, group = trial.member, denoiser.groups.of[seen]
    shown, test = rows_of(released, seen), rows_of(released, held)
    naive = trained(shown).predict(matrix(test, held))
    states = [
        drawn(model, denoiser.pairing, outputs[seen], group, k, found.seed) for k in range(draws)
    ]
    better = trained(as_release(layout, shown, sent, states), draws)
    distribution = JointDistribution.of(model, denoiser.pairing, denoiser.groups)
    chance = distribution.chances(outputs[held])
    many = np.repeat(held, DRAWS_PER_ROW)
    clean = as_release(
        layout,
        rows_of(released, many),
        sent,
        [distribution.guesses(outputs[held], chance, DRAWS_PER_ROW, found.seed)],
    )
    guesses = better.predict(matrix(clean, many)).reshape(len(held), DRAWS_PER_ROW, -1)
    spread = guesses.var(axis=1, ddof=1)[:, 0] / DRAWS_PER_ROW
    by_draws = guesses.mean(axis=1).reshape(naive.shape)
    by_groups = chance
    if task == "regression":
        middle = np.bincount(group, y[seen]) / np.maximum(np.bincount(group), 1)
        by_groups = chance[:, : len(middle)] @ middle
    ways = {
        "model": better.predict(matrix(test, held)),
        "draws": by_draws,
        "groups": by_groups,
    }
    best = min(ways, key=lambda way: mean_loss(ways[way], y[held], task))
    told = [losses(by_draws, y[held], task, spread), losses(by_groups, y[held], task)]
    verdict = Verdict.of(
        losses(naive, y[held], task),
        min(told, key=np.mean),
        null_losses(y[held], task, classes),
        len(y),
    )
    return verdict, best


def judges(part: Any) -> tuple[IntArray, IntArray]:
    """The rows that both ways are trained on, and those that decide.

    Of large tables more than the trial's model was fitted to: with more rows, rows as they came
    catch up, and a verdict on few would speak for draws too often.
    """
    fitted, held = np.flatnonzero(part == 1), np.flatnonzero(part == 0)
    if len(part) <= LARGE_TABLE_ROWS:
        return fitted, held[:MIN_HELD_ROWS]
    idle = np.flatnonzero(part == 2)[: len(part) // 3]
    apart = min(MAX_HELD_ROWS, len(part) // 20)
    seen = np.sort(np.concatenate([fitted, idle[apart:]]))
    return seen, np.sort(np.concatenate([held, idle[:apart]]))


def train(booster: Booster, problem: Problem) -> Trained:
    """Train; what the booster's library refuses becomes a sentence of ours, with its words."""
    try:
        return booster.train(problem)
    except OpBoostError:
        raise
    except (TypeError, ValueError) as error:
        words = " ".join(str(error).split())[:300]
        raise ParameterError(f"The booster refused: {words}. Check booster_params.") from error


class _Narration:
    """A progress bar on a terminal, if asked for."""

    def __init__(self, verbose: int) -> None:
        shown = bool(verbose) and sys.stderr.isatty()
        self._bar = Bar(console=Console(stderr=True), transient=True) if shown else None

    def __enter__(self) -> FitProgress | None:
        if self._bar is None:
            return None
        bar = self._bar
        bar.start()
        task = bar.add_task("denoising", total=1.0)
        return lambda what, share: bar.update(task, description=what, completed=share)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
