"""The rows that a booster trains on: noisy rows, or posterior draws of the clean ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress as Bar

from opboost._typing import FloatArray, IntArray
from opboost.boosting.booster import (
    Blocks,
    Booster,
    Matrix,
    Problem,
    Trained,
    fit_booster,
    takes_gaps,
    trains_beside,
)
from opboost.denoise import Denoiser, Groups, Outputs, Verdict, fit
from opboost.denoise.encoded_rows import Codes
from opboost.denoise.fit import IDLE, FitProgress, Parted
from opboost.denoise.posterior_draws import JointDistribution, drawn
from opboost.denoise.row_blocks import Spread
from opboost.denoise.whether_to_denoise import MIN_ROWS, losses, mean_loss, null_losses
from opboost.errors import ParameterError
from opboost.runtime.threads import CELLS_PER_THREAD, side_by_side, threads_limited
from opboost.training.clean_states import StateCoding, own_cuts
from opboost.training.feature_matrix import Layout
from opboost.training.posterior_prediction import DRAWS_PER_ROW, Posterior, pieces
from opboost.training.released_columns import ReleasedColumn, rows_of
from opboost.training.targets import Target

Choice = Literal["auto"] | bool

ENOUGH_ROWS = 20_000
"""With up to this many rows, the model is trained on four draws of each row; with more, on two."""

PLENTY_OF_ROWS = 2_000_000
"""With more rows than this, it is trained on one draw of each, enough to average over."""

MIN_HELD_ROWS = 1_500
"""In small tables, at most this many held-out rows decide whether to denoise: each is costly."""

MAX_CELLS_BESIDE_FIT = 5 * CELLS_PER_THREAD
"""With at most this many cells, the model of noisy rows is trained while the denoiser is fitted."""

LARGE_TABLE_ROWS = 100_000
"""A table with more rows than this is large: about a third of its rows take part in deciding."""

MAX_HELD_ROWS = 20_000
"""In large tables, at most this many rows decide, plus those that model selection held out."""

MAX_COMPARED_ROWS = 500_000
"""At most this many rows take part in the decision, picked at random from larger tables."""


@dataclass(frozen=True, slots=True, eq=False)
class Denoised:
    """A fitted denoiser, and the conversion between released codes and its outputs and states."""

    coding: StateCoding
    denoiser: Denoiser
    seed: int

    def drawn(
        self, release: Sequence[ReleasedColumn], own: Matrix, y: Any, draws: int
    ) -> list[ReleasedColumn]:
        """Return posterior draws instead of noisy codes, all draws stacked."""
        outputs = self.coding.outputs(release, own)
        states = [self.denoiser.draw(outputs, y, k, self.seed) for k in range(draws)]
        return self.coding.clean(release, states)

    def guessed(
        self, release: Sequence[ReleasedColumn], own: Matrix, draws: int
    ) -> list[ReleasedColumn]:
        """Return clean rows drawn without the label, each row's draws in succession."""
        outputs, distribution = self.coding.outputs(release, own), self.denoiser.distribution()
        states = distribution.guesses(outputs, distribution.chances(outputs), draws, self.seed)
        return self.coding.clean(release, [states], draws)

    def posterior(self, target: Target, way: Any) -> Posterior | None:
        """Return the posterior that predicts noisy rows; None if the model does so directly."""
        if way == "model":
            return None
        numbers = target.task == "regression"
        means = self.denoiser.groups.means(target.y) if numbers else None
        return Posterior(self.coding, self.denoiser.distribution(), means, way, self.seed)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """The rows to train on: columns with all draws stacked, and the number of draws.

    ``verdict`` is None if nothing was compared.  ``posterior`` predicts desensitised rows; it is
    None if the model predicts them better directly.
    """

    release: list[ReleasedColumn]
    draws: int = 1
    denoised: Denoised | None = None
    verdict: Verdict | None = None
    posterior: Posterior | None = None

    def repeated(self, rows: Any) -> Any:
        """Return own features, labels or weights, once for each draw."""
        if rows is None or self.denoised is None:
            return rows
        return np.concatenate([rows] * self.draws)


def training_rows(
    layout: Layout,
    release: list[ReleasedColumn],
    own: Matrix,
    target: Target,
    *,
    denoise: Choice,
    booster: Booster,
    seed: int = 0,
    verbose: int = 0,
) -> TrainingRows:
    """Return the rows to train on.

    Args:
        layout: Which columns are private and which are the label party's own.
        release: The private columns, in the layout's order.
        own: The own features of the same rows.
        target: What is learned, and the weights of the rows.
        denoise: ``True``, ``False``, or ``"auto"``, which denoises unless held-out noisy rows show
            that this hurts.
        booster: The booster to train; ``denoise="auto"`` tries it on a part of the rows.
        seed: The same seed gives the same draws.
        verbose: Above zero, a terminal shows a progress bar.
    """
    denoise = checked_choice(denoise, [c.sent for c in release], booster, len(target.y))
    if denoise is False:
        return TrainingRows(release)
    absent = any(c.absent is not None for c in release)
    cuts = own_cuts(layout, own)
    coding = StateCoding.of(layout, [c.sent for c in release], cuts, absent=absent)
    if not coding.denoises:
        return TrainingRows(release)
    groups, draws = label_groups(target), draws_per_row(len(target.y))
    outputs = coding.outputs(release, own)

    def sample(part: Codes) -> ComparedRows:
        return ComparedRows(release, own, outputs, target, groups, *judges(part))

    def fitted(parted: Parted | None = None) -> Denoiser:
        with Narration(verbose) as progress:
            spread = spread_of(booster)
            return fit(coding.space, groups, outputs, seed, draws, progress, spread, parted)

    noisy: Trained | None = None
    if denoise == "auto" and trains_beside_fit(booster, len(own) * len(layout.names())):
        noisy, denoiser = _beside_fit(
            lambda part: sample(part).noisy_model(layout, booster, seed), fitted
        )
    else:
        denoiser = fitted()
    found = Denoised(coding, denoiser, seed)
    verdict: Verdict | None = None
    way: Any = "draws"
    if denoise == "auto":
        verdict, way = compared(found, sample(denoiser.trial.part), booster, draws, noisy)
        if not verdict.denoise:
            return TrainingRows(release, verdict=verdict)
    clean = [column.dense() for column in found.drawn(release, own, target.y, draws)]
    return TrainingRows(clean, draws, found, verdict, found.posterior(target, way))


def check_choice(denoise: object) -> None:
    """Refuse anything but ``"auto"``, True and False."""
    if denoise not in ("auto", True, False):
        raise ParameterError(f"denoise must be 'auto', True or False; got {denoise!r}.")


def checked_choice(denoise: Choice, sent: Sequence[float], booster: Booster, rows: int) -> Choice:
    """Return whether to denoise this many rows; refuse anything but the three choices."""
    check_choice(denoise)
    if denoise == "auto" and any(share < 1 for share in sent) and not takes_gaps(booster):
        return True  # the booster could not train on noisy rows
    return False if denoise == "auto" and rows < MIN_ROWS else denoise


def spread_of(booster: Booster) -> Spread | None:
    """Return how a booster on a cluster sends rows to workers; None for one on this machine."""
    return getattr(booster, "spread_rows", None)


def label_groups(target: Target) -> Groups:
    """Return the groups of rows that are fitted separately: classes, or bins of numbers."""
    weight = _row_weights(target.weight)
    if target.task == "regression":
        return Groups.bins(target.y, weight)
    return Groups.classes(target.y, target.classes, weight)


def draws_per_row(rows: int) -> int:
    """Return the number of draws of each row, for a table of this many rows.

    >>> draws_per_row(5_000), draws_per_row(50_000), draws_per_row(10_000_000)
    (4, 2, 1)
    """
    if rows <= ENOUGH_ROWS:
        return 4
    return 2 if rows <= PLENTY_OF_ROWS else 1


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRows:
    """Rows that decide whether to denoise.

    ``seen`` and ``held`` are the indices of the rows to train on, and of those to predict.

    ``folder`` is where a booster that trains from disk keeps its bins; None for other boosters.
    """

    release: list[ReleasedColumn]
    own: Matrix
    outputs: Outputs
    target: Target
    groups: Groups
    seen: IntArray
    held: IntArray
    folder: Path | None = None

    @property
    def lack_a_class(self) -> bool:
        """Whether the rows to train on lack a class; then nothing is compared."""
        target = self.target
        known = target.task == "regression"
        return not known and len(np.unique(target.y[self.seen])) < target.classes

    def model(
        self,
        layout: Layout,
        columns: list[ReleasedColumn],
        booster: Booster,
        seed: int,
        times: int = 1,
    ) -> Trained:
        """Train on the rows ``seen``; ``columns`` hold ``times`` stacked draws of these rows."""
        places, target = np.tile(self.seen, times), self.target
        weight = None if target.weight is None else target.weight[places]
        whole = layout.values(columns, self.own[places])
        X: Matrix | Blocks = whole
        if self.folder is not None:
            X = Blocks((len(whole), whole.shape[1]), whole.__getitem__, self.folder)
        problem = Problem(X, target.y[places], target.task, target.classes, weight, seed=seed)
        return fit_booster(booster, problem)

    def noisy_model(self, layout: Layout, booster: Booster, seed: int) -> Trained | None:
        """Train on noisy rows; None if nothing is compared."""
        if self.lack_a_class:
            return None
        return self.model(layout, rows_of(self.release, self.seen), booster, seed)


def trains_beside_fit(booster: Booster, cells: int) -> bool:
    """Return whether to train the model of noisy rows in one thread while the denoiser is fitted.

    On a small table, fitting the denoiser leaves a thread idle for long enough.
    """
    return cells <= MAX_CELLS_BESIDE_FIT and trains_beside(booster, 0, 0)


def _beside_fit(
    train: Callable[[Codes], Trained | None], fitted: Callable[[Parted], Denoiser]
) -> tuple[Trained | None, Denoiser]:
    """Fit the denoiser; once it has assigned each row to a part, train in another thread."""
    part: Future[Codes] = Future()

    def trained() -> Trained | None:
        known = part.result()
        with threads_limited(0):
            return train(known)

    def found() -> Denoiser:
        try:
            return fitted(part.set_result)
        finally:
            part.cancel()  # has an effect only if the fit fails before it assigns parts

    return side_by_side(trained, found)


def compared(
    found: Denoised,
    rows: ComparedRows,
    booster: Booster,
    draws: int,
    noisy: Trained | None = None,
) -> tuple[Verdict, Any]:
    """Train on noisy rows, and on clean rows drawn for them; compare both on other noisy rows.

    There are two ways to predict a noisy row.  One draws clean rows for it, without its label, and
    takes the mean of what the model F of clean rows predicts for them.  The other computes the
    label's chances directly from the denoiser's latent classes.  The better of the two counts as
    the result of denoising, since both follow from the same distribution of clean rows.  The second
    result is the best way of predicting noisy rows: one of these two, or the model itself.
    ``noisy`` is the model of noisy rows, if it has already been trained.
    """
    coding, denoiser = found.coding, found.denoiser
    release, own, outputs, seen, held = rows.release, rows.own, rows.outputs, rows.seen, rows.held
    target = rows.target
    y, task, classes = target.y, target.task, target.classes
    if rows.lack_a_class:
        return Verdict(0.0, 0.0, np.inf), "draws"

    def matrix(columns: list[ReleasedColumn], places: IntArray) -> Matrix:
        return coding.layout.values(columns, own[places])

    model, group = denoiser.trial.member, rows.groups.of[seen]
    shown, test = rows_of(release, seen), rows_of(release, held)
    distribution = JointDistribution.of(model, denoiser.pairing, denoiser.groups)

    def without_draws() -> tuple[Trained, FloatArray]:
        made = rows.model(coding.layout, shown, booster, found.seed) if noisy is None else noisy
        return made, distribution.chances(outputs[held])

    def with_draws() -> Trained:
        states = [
            drawn(model, denoiser.pairing, outputs[seen], group, k, found.seed)
            for k in range(draws)
        ]
        clean = coding.clean(shown, states)
        return rows.model(coding.layout, clean, booster, found.seed, draws)

    cells = len(seen) * len(coding.layout.names())
    if noisy is None and trains_beside(booster, cells, draws * cells):
        (plain, chance), better = side_by_side(without_draws, with_draws)
    else:
        (plain, chance), better = without_draws(), with_draws()
    naive = plain.predict(matrix(test, held))

    def guesses_of(piece: slice) -> FloatArray:
        guessed = distribution.guesses(
            outputs[held[piece]], chance[piece], DRAWS_PER_ROW, found.seed
        )
        clean = coding.clean(rows_of(test, piece), [guessed], DRAWS_PER_ROW)
        answers = better.predict(matrix(clean, np.repeat(held[piece], DRAWS_PER_ROW)))
        return np.reshape(answers, (-1, DRAWS_PER_ROW, *answers.shape[1:]))

    guesses = np.concatenate([guesses_of(piece) for piece in pieces(len(held))])
    guesses = guesses.reshape(len(held), DRAWS_PER_ROW, -1)
    spread = guesses.var(axis=1, ddof=1)[:, 0] / DRAWS_PER_ROW
    by_draws = guesses.mean(axis=1).reshape(naive.shape)
    by_groups = chance
    if task == "regression":
        by_groups = chance @ rows.groups.where(seen).means(y[seen])
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
        len(denoiser.groups.of),
    )
    return verdict, best


def _row_weights(weight: FloatArray | None) -> FloatArray | None:
    """Return weights scaled to a mean of one, so that the weights of n rows add up to n."""
    if weight is None:
        return None
    known = np.maximum(weight, 0.0)
    return np.asarray(known / max(float(known.mean()), 1e-30))


def judges(part: Any) -> tuple[IntArray, IntArray]:
    """Return the rows that both models are trained on, and those that decide.

    In large tables, training uses more rows than the trial's model was fitted to.  With few rows,
    draws would win too often, since training on noisy rows gains more from additional rows than
    training on draws.
    """
    fitted, held = np.flatnonzero(part == 1), np.flatnonzero(part == 0)
    if len(part) <= LARGE_TABLE_ROWS:
        return fitted, held[:MIN_HELD_ROWS]
    if len(part) // 3 > MAX_COMPARED_ROWS:
        some = np.random.default_rng(0).choice(len(part), MAX_COMPARED_ROWS, replace=False)
        idle = some[part[some] == IDLE]
    else:
        idle = np.flatnonzero(part == IDLE)[: len(part) // 3]
    apart = min(MAX_HELD_ROWS, len(part) // 20)
    seen = np.sort(np.concatenate([fitted, idle[apart:]]))
    return seen, np.sort(np.concatenate([held, idle[:apart]]))


class Narration:
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
