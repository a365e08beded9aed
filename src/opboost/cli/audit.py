"""``opboost audit``: attack the mechanisms of a configuration and print what that proves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    echo,
    print_json,
    record_line,
    stderr,
    stdout,
    steps_progress,
)

if TYPE_CHECKING:
    from opboost.auditing import Audit
    from opboost.config import Plan

_SHOWN = 12


def audit(
    config: ConfigOption,
    samples: Annotated[
        int, typer.Option(min=1000, max=10**9, help="Draws per attacked value.")
    ] = 1_000_000,
    pairs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of value pairs per mechanism.")
    ] = 45,
    confidence: Annotated[
        float,
        typer.Option(min=0.5, max=1 - 1e-12, help="Probability that a sound file passes."),
    ] = 1 - 1e-6,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the pairs; noise is never seeded.")] = 0,
    format: FormatOption = Format.text,
) -> None:
    """Attack each mechanism by drawing from it; print the loss that this proves and the promise.

    Exit status 3 if a bound exceeds the promise or certificate, or if draws depend on each other.

    \b
    Examples:
      opboost audit -c b.toml
      opboost audit -c b.toml --samples 100000 --pairs 10
    """
    from opboost.auditing import audit as attack
    from opboost.config import load

    plan = load(config)
    targets = _targets(plan)
    found: list[tuple[list[str], Audit]] = []
    with steps_progress() as progress:
        for mechanism, names in targets:
            title = ", ".join(names)
            found.append(
                (
                    names,
                    attack(
                        mechanism,
                        samples=samples,
                        pairs=pairs,
                        confidence=1 - (1 - confidence) / len(targets),
                        seed=seed,
                        progress=lambda done, of, title=title: progress(title, done, of),  # type: ignore[misc]
                    ),
                )
            )
    sound = all(one.sound for _, one in found)
    total = plan.guarantee().total
    if format is Format.json:
        audits = [_plain(names, one) for names, one in found]
        print_json({"audits": audits, "confidence": confidence, "sound": sound, "total": total})
    else:
        for names, one in found:
            _print(names, one)
        stdout().print(
            f"If every promise holds, the chance of any finding is at most {1 - confidence:.1g}."
        )
        echo(record_line(total))
    if not sound:
        for names, one in found:
            for finding in one.findings[:3]:
                stderr().print(f"opboost: {', '.join(names)}: {finding}")
        raise typer.Exit(3)


def _targets(plan: Plan) -> list[tuple[object, list[str]]]:
    """Return each distinct mechanism with its columns, and a whole record if rows are sampled."""
    from opboost.auditing import Record
    from opboost.mechanisms import Mechanism

    names: dict[Any, list[str]] = {}
    for column in plan.private:
        names.setdefault(column.flagged() or column.mechanism, []).append(str(column.name))
    targets: list[tuple[object, list[str]]] = list(names.items())
    if plan.budget is not None and plan.budget.columns_per_row is not None:
        on_grids = {str(c.name): c.mechanism for c in plan.private}
        grids = {n: m for n, m in on_grids.items() if isinstance(m, Mechanism)}
        if len(grids) == len(plan.private):
            targets.append((Record(grids, plan.budget), ["a whole record"]))
    return targets


def _print(names: list[str], one: Audit) -> None:
    table = Table(
        title=f"{', '.join(names)}: {one.samples:,} samples per value", caption=one.mechanism
    )
    for title in ("pair", "promised", "exact", "at least", "of exact", "seen at"):
        table.add_column(title, justify="left" if title in ("pair", "seen at") else "right")
    worst_first = sorted(
        one.pairs, key=lambda p: (not (p.broken or p.beyond_distribution), -p.reached)
    )
    for p in worst_first[:_SHOWN]:
        mark = " BROKEN" if p.broken else " WRONG DISTRIBUTION" if p.beyond_distribution else ""
        table.add_row(
            f"{_value(p.x)}, {_value(p.y)}",
            _level(p.promised),
            _level(p.exact),
            f"{p.lower:.4f}{mark}",
            f"{p.reached:.1%}" if math.isfinite(p.exact) else "-",
            p.event if len(p.event) <= 40 else p.event[:37] + "...",
        )
    stdout().print(table)
    if len(one.pairs) > _SHOWN:
        stdout().print(
            f"{len(one.pairs) - _SHOWN} more pairs, all within promise and distribution."
        )
    dependent = [c.between for c in one.independence if c.dependent]
    stdout().print(
        f"Draws depend on each other: {'; '.join(dependent)}."
        if dependent
        else f"No dependence between draws was found in {len(one.independence)} checks."
    )


def _value(value: object) -> str:
    return "missing" if value is None else str(value)


def _level(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:.4f}"


def _plain(names: list[str], one: Audit) -> dict[str, Any]:
    return {
        "columns": names,
        "mechanism": one.mechanism,
        "samples": one.samples,
        "sound": one.sound,
        "findings": list(one.findings),
        "pairs": [
            {
                "x": p.x,
                "y": p.y,
                "promised": p.promised,
                "exact": p.exact,
                "lower": p.lower,
                "reached": p.reached,
                "event": p.event,
            }
            for p in one.pairs
        ],
        "independence": [
            {"between": c.between, "chance": c.chance, "dependent": c.dependent}
            for c in one.independence
        ],
    }
