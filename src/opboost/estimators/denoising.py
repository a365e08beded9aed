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
from opboost.boosting.protocol import Booster, Matrix, Problem, Task, Trained
from opboost.columns import PrivateColumn
from opboost.denoise import (
    Bits,
    Denoiser,
    Groups,
    Outputs,
    Space,
    States,
    Verdict,
    channel_of,
    fit,
    outputs_of,
)
from opboost.denoise.channel import Channel
from opboost.denoise.fit import Progress, drawn, drawn_unlabelled, group_chances
from opboost.denoise.verdict import LEAST_ROWS, losses
from opboost.errors import OpBoostError, ParameterError
from opboost.estimators.features import Layout
from opboost.estimators.features import Released as AnyColumn
from opboost.frames import OutColumn
from opboost.kernels.mixture import UNSENT
from opboost.mechanisms import Mechanism, UnaryEncoding

Release = dict[Hashable, Any]
"""Released columns by private column; of whatever form where nothing is denoised."""

Choice = Literal["auto"] | bool

MANY_ROWS = 20_000
"""Up to so many rows, four draws of each are trained on; above, two."""

HELD = 1_500
"""At most so many held-out rows decide whether to denoise, each by many guesses at it."""

LARGE = 100_000
"""Above so many rows, a quarter of them takes part in the decision ..."""

MOST_HELD = 20_000
"""... and up to so many of those decide."""

GUESSES = 32
OWN_BINS = 16
OWN_COLUMNS = 64


@dataclass(frozen=True, slots=True)
class Learnable:
    """What to train on: columns with all draws one below the other, and how many there are.

    ``verdict`` is None where nothing was compared.
    """

    released: Release
    draws: int
    denoiser: Denoised | None = None
    verdict: Verdict | None = None

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
    cuts: tuple[FloatArray | None, ...]
    seed: int

    def drawn(self, released: Release, own: Matrix, y: Any, draws: int) -> Release:
        """Posterior draws in the shape of a release, all draws one below the other."""
        outputs = _outputs(self.layout, released, own, self.sent, self.cuts)
        states = [self.denoiser.draw(outputs, y, k, self.seed) for k in range(draws)]
        return _as_release(self.layout, released, self.sent, states)


def learnable(
    layout: Layout,
    released: Release,
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
    space, cuts = _space(layout, own, sent)
    if denoise is False or not (space.channels or space.bits):
        return Learnable(released, 1)
    if denoise == "auto" and len(y) < LEAST_ROWS:
        return Learnable(released, 1)
    groups = Groups.bins(y) if task == "regression" else Groups.classes(y, classes)
    outputs = _outputs(layout, released, own, sent, cuts)
    draws = 4 if len(y) <= MANY_ROWS else 2
    with _Talk(verbose) as progress:
        denoiser = fit(space, groups, outputs, seed, draws, progress)
    found = Denoised(layout, sent, denoiser, cuts, seed)
    verdict = None
    if denoise == "auto":
        verdict = _compared(found, released, own, outputs, y, task, classes, weight, booster, draws)
        if not verdict.denoise:
            return Learnable(released, 1, None, verdict)
    return Learnable(found.drawn(released, own, y, draws), draws, found, verdict)


def decoded(layout: Layout, released: Mapping[Hashable, Sequence[AnyColumn]]) -> Release:
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
    released: Release,
    own: Matrix,
    outputs: Outputs,
    y: np.ndarray[Any, Any],
    task: Task,
    classes: int,
    weight: FloatArray | None,
    booster: Booster,
    draws: int,
) -> Verdict:
    """Train on a part both ways; compare on noisy rows of another part.

    A model F of clean rows predicts a noisy row by the mean of F over clean rows drawn for it
    without its label; the latent classes predict its label directly.  The better of the two speaks
    for the draws: both follow from the same law of clean rows.
    """
    layout, sent, denoiser = found.layout, found.sent, found.denoiser
    trial = denoiser.trial
    seen, held = _judges(trial.part)
    if task != "regression" and len(np.unique(y[seen])) < classes:
        return Verdict(0.0, 0.0, np.inf)  # a class is too rare to be left out

    def matrix(columns: Release, rows: IntArray) -> Matrix:
        return layout.values(columns, own[rows])

    def trained(columns: Release, times: int = 1) -> Any:
        rows = np.tile(seen, times)
        part = None if weight is None else weight[rows]
        problem = Problem(matrix(columns, rows), y[rows], task, classes, part, seed=found.seed)
        return train(booster, problem)

    model, group = trial.member, denoiser.groups.of[seen]
    shown, test = _rows(released, seen), _rows(released, held)
    naive = trained(shown).predict(matrix(test, held))
    states = [
        drawn(model, denoiser.pairing, outputs[seen], group, k, found.seed) for k in range(draws)
    ]
    better = trained(_as_release(layout, shown, sent, states), draws)
    chance = group_chances(model, denoiser.pairing, denoiser.groups, outputs[held])
    many = np.repeat(held, GUESSES)
    guessed = drawn_unlabelled(model, denoiser.pairing, chance, outputs[held], GUESSES, found.seed)
    clean = _as_release(layout, _rows(released, many), sent, [guessed])
    guesses = better.predict(matrix(clean, many)).reshape(len(held), GUESSES, -1)
    spread = guesses.var(axis=1, ddof=1)[:, 0] / GUESSES
    ways = [losses(guesses.mean(axis=1).reshape(naive.shape), y[held], task, spread)]
    if task == "regression":
        middle = np.bincount(group, y[seen]) / np.maximum(np.bincount(group), 1)
        ways.append(losses(chance[:, : len(middle)] @ middle, y[held], task))
    else:
        ways.append(losses(chance, y[held], task))
    told = losses(naive, y[held], task)
    return Verdict.of(told, min(ways, key=np.mean), sure=len(y) > LARGE)


def _judges(part: Any) -> tuple[IntArray, IntArray]:
    """The rows that both ways are trained on, and those that decide.

    Of large tables more than the trial's model was fitted to: with more rows, rows as they came
    catch up, and a verdict on few would speak for draws too often.
    """
    fitted, held = np.flatnonzero(part == 1), np.flatnonzero(part == 0)
    if len(part) <= LARGE:
        return fitted, held[:HELD]
    idle = np.flatnonzero(part == 2)[: len(part) // 3]
    apart = min(MOST_HELD, len(part) // 20)
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


def _rows(released: Release, rows: IntArray) -> Release:
    return {
        name: [
            replace(
                out,
                values=out.values[rows],
                missing=None if out.missing is None else out.missing[rows],
            )
            for out in columns
        ]
        for name, columns in released.items()
    }


def _channel(private: PrivateColumn, sent: float) -> Channel | None:
    """The column's channel; None where it stays as it came."""
    if not isinstance(private.mechanism, Mechanism):
        return None
    return channel_of(private.flagged() or private.mechanism, sent)


def _space(layout: Layout, own: Matrix, sent: float) -> tuple[Space, tuple[FloatArray | None, ...]]:
    """The columns as the models see them, and where own numbers are cut into bins."""
    channels, lines, bits = [], [], []
    for private in layout.private:
        if isinstance(private.mechanism, UnaryEncoding):
            bits.append(Bits.of(private.mechanism))
            continue
        channel = _channel(private, sent)
        if channel is not None:
            channels.append(channel)
            lines.append(private.mechanism.domain.size if private.has_order else 0)
    sizes: list[int] = []
    cuts: list[FloatArray | None] = []
    for block in _own_blocks(layout, own):
        if block.shape[1] > 1:
            cuts.append(None)
            sizes.append(block.shape[1] + 1)
        else:
            known = block[np.isfinite(block)]
            steps = np.arange(1, OWN_BINS) / OWN_BINS
            edges = np.unique(np.quantile(known, steps)) if len(known) else np.empty(0)
            cuts.append(edges)
            sizes.append(len(edges) + 2)
    return Space(tuple(channels), tuple(lines), tuple(bits), tuple(sizes)), tuple(cuts)


def _own_blocks(layout: Layout, own: Matrix) -> list[Matrix]:
    blocks, place = [], 0
    for column in layout.own[:OWN_COLUMNS]:
        width = len(column.names())
        blocks.append(own[:, place : place + width])
        place += width
    return blocks


def _outputs(
    layout: Layout,
    released: Mapping[Hashable, Sequence[OutColumn]],
    own: Matrix,
    sent: float,
    cuts: tuple[FloatArray | None, ...],
) -> Outputs:
    """What the rows sent, as codes and bits."""
    codes, bits = [], []
    for private in layout.private:
        out = released[private.name]
        if isinstance(private.mechanism, UnaryEncoding):
            block = np.column_stack([c.values for c in out]).astype(np.uint8)
            if out[0].missing is not None:
                block[out[0].missing, 0] = UNSENT
            bits.append(block)
        elif _channel(private, sent) is not None:
            codes.append(outputs_of(private.mechanism, out[0].values, out[0].missing))
    for block, edges in zip(_own_blocks(layout, own), cuts, strict=True):
        if edges is None:
            codes.append(np.where(block.any(axis=1), block.argmax(axis=1) + 1, 0))
        else:
            place = np.searchsorted(edges, block[:, 0], side="right") + 1
            codes.append(np.where(np.isfinite(block[:, 0]), place, 0))
    rows = len(next(iter(released.values()))[0].values)
    kind = np.uint8 if all(c.max(initial=0) < 256 for c in codes) else np.uint16
    return Outputs(
        np.column_stack(codes).astype(kind) if codes else np.zeros((rows, 0), np.uint8),
        np.hstack(bits) if bits else np.zeros((rows, 0), np.uint8),
    )


def _as_release(layout: Layout, released: Release, sent: float, draws: Sequence[States]) -> Release:
    """Draws in the shape of a release; a column without a channel stays as it came."""
    found: Release = {}
    place, unary = 0, 0
    for private in layout.private:
        out = released[private.name]
        if isinstance(private.mechanism, UnaryEncoding):
            category = np.concatenate([d.categories[:, unary] for d in draws])
            found[private.name] = [
                OutColumn(c.name, (category == a).astype(np.uint8)) for a, c in enumerate(out)
            ]
            unary += 1
        elif _channel(private, sent) is None:
            found[private.name] = [_again(c, len(draws)) for c in out]
        else:
            domain = private.mechanism.domain
            cells = np.concatenate([d.cells[:, place] for d in draws]).astype(np.int64)
            gone = cells >= domain.size if private.flagged() is not None else None
            values = np.minimum(cells, domain.size - 1) + domain.L
            found[private.name] = [OutColumn(out[0].name, values.astype(domain.dtype()), gone)]
            place += 1
    return found


def _again(out: OutColumn, times: int) -> OutColumn:
    gaps = None if out.missing is None else np.tile(out.missing, times)
    return OutColumn(out.name, np.tile(out.values, times), gaps)


class _Talk:
    """A progress bar on a terminal, if asked for."""

    def __init__(self, verbose: int) -> None:
        shown = bool(verbose) and sys.stderr.isatty()
        self._bar = Bar(console=Console(stderr=True), transient=True) if shown else None

    def __enter__(self) -> Progress | None:
        if self._bar is None:
            return None
        bar = self._bar
        bar.start()
        task = bar.add_task("denoising", total=1.0)
        return lambda what, share: bar.update(task, description=what, completed=share)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
