"""What a configuration promises, and its mechanisms' exact loss, for the person who signs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opboost.columns.private_column import PrivateColumn
from opboost.mechanisms import Mechanism, NominalMechanism
from opboost.mechanisms.mechanism import MAX_MATRIX_CELLS
from opboost.mechanisms.order_kept import exact_gamma
from opboost.plots.figures import figure, save


@dataclass(frozen=True, slots=True)
class Line:
    """The largest loss at one distance (of pairs with a promise), its bound, and the order kept."""

    distance: int
    loss: float
    bound: float
    gamma: float | None
    without_promise: int


@dataclass(frozen=True, slots=True)
class ColumnCertificate:
    """One column's promise, its computed loss, and whether the promise covers the loss."""

    name: Hashable
    mechanism: str
    promise: str
    brief: str
    total: float
    exact_epsilon: float
    pairs: int
    covered: bool
    lines: tuple[Line, ...]


def certify(columns: Iterable[PrivateColumn]) -> Iterator[ColumnCertificate]:
    """Yield the certificate of each private column."""
    for column in columns:
        if isinstance(column.mechanism, NominalMechanism):
            yield _of_nominal(column, column.mechanism)
        else:
            yield _of_grid(column, column.mechanism)


def _of_nominal(column: PrivateColumn, mechanism: NominalMechanism) -> ColumnCertificate:
    guarantee, exact = column.guarantee(), mechanism.exact_epsilon()
    count = len(mechanism.categories)
    return ColumnCertificate(
        column.name,
        repr(mechanism),
        str(guarantee),
        guarantee.brief,
        guarantee.total,
        exact,
        count * (count - 1) // 2,
        exact <= guarantee.total,
        (),
    )


def _of_grid(column: PrivateColumn, mechanism: Mechanism) -> ColumnCertificate:
    guarantee, exact = column.guarantee(), mechanism.certificate()
    small = mechanism.domain.size <= MAX_MATRIX_CELLS
    matrix = mechanism.transition_matrix() if small else None
    lines = tuple(
        Line(
            line.distance,
            line.loss,
            line.bound,
            None if matrix is None else exact_gamma(matrix, line.distance),
            line.without_promise,
        )
        for line in exact.lines
    )
    covered = exact.covered and _missing_covered(column, mechanism)
    return ColumnCertificate(
        column.name,
        repr(mechanism),
        str(guarantee),
        guarantee.brief,
        guarantee.total,
        exact.exact_epsilon,
        exact.pairs,
        covered,
        lines,
    )


def _missing_covered(column: PrivateColumn, mechanism: Mechanism) -> bool:
    flagged = column.flagged()
    if flagged is None:
        return True
    guarantee, grid = flagged.guarantee(), mechanism.domain
    cells = range(grid.L, grid.R + 1) if grid.size <= MAX_MATRIX_CELLS else (grid.L, grid.R)
    return all(flagged.loss(None, x) <= guarantee.bound(None, x) for x in cells)


def draw(certificates: list[ColumnCertificate], path: Path) -> None:
    """Draw promised loss, exact loss and kept order by distance, one row per mechanism."""
    distinct = {c.mechanism: c for c in certificates if c.lines}
    chart = figure(rows=max(1, len(distinct)), columns=2, width=9.0, height=2.8)
    for axes, (name, certificate) in zip(chart.axes, distinct.items(), strict=False):
        users = [str(c.name) for c in certificates if c.mechanism == name]
        _draw_row(axes, certificate, ", ".join(users[:4]) + (", ..." if len(users) > 4 else ""))
    save(chart, path)


def _draw_row(axes: list, certificate: ColumnCertificate, title: str) -> None:  # type: ignore[type-arg]
    left, right = axes
    finite = [(line.distance, line.loss) for line in certificate.lines if line.loss < math.inf]
    promised = [(line.distance, line.bound) for line in certificate.lines if line.bound < math.inf]
    if promised:
        left.plot(
            *zip(*promised, strict=True), color="#e6a49b", linewidth=5, marker="o", label="promised"
        )
    if finite:
        left.plot(*zip(*finite, strict=True), color="#1f4e79", marker=".", label="exact")
    open_pairs = any(line.without_promise for line in certificate.lines)
    left.set_xlabel("distance in cells" + (" (across runs: no promise)" if open_pairs else ""))
    left.set_ylabel("loss")
    left.set_title(f"{title}: {certificate.brief}", fontsize=9, loc="left")
    left.legend(frameon=False, fontsize=8)
    gammas = [(line.distance, line.gamma) for line in certificate.lines if line.gamma is not None]
    if gammas:
        right.plot(*zip(*gammas, strict=True), color="#4d6b1f", marker=".")
    right.axhline(0.5, color="#999", linewidth=0.8)
    right.set_ylim(0, 1.02)
    right.set_xlabel("distance in cells")
    right.set_ylabel("order kept, at least")
    wide = bool(certificate.lines) and certificate.lines[-1].distance > 300
    if not wide:
        left.set_ylim(bottom=0)
        left.set_xlim(0.5, certificate.lines[-1].distance + 0.5)
    for axis in (left, right):
        axis.xaxis.get_major_locator().set_params(integer=True)
    if wide:
        left.set_xscale("log", base=2)
        left.set_yscale("log")
        right.set_xscale("log", base=2)
