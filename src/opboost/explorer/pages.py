"""Views into HTML: the templates, and what they are filled with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opboost.errors import OpBoostError, visible
from opboost.explorer.charts import SHAPES, View, view
from opboost.explorer.choice import KINDS, Choice, Form, chosen
from opboost.explorer.choice_as_toml import as_toml
from opboost.explorer.job_view import JobRun
from opboost.explorer.remaining_budget import LedgerView
from opboost.explorer.trial_process import TrialProgress, TrialResult
from opboost.plots.svg import Series, SvgChart, draw, short, swatch


@lru_cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("opboost.explorer"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_legible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"draw": draw, "swatch": swatch, "short": short, "shapes": SHAPES}
    return found


def _legible(value: Any) -> Any:
    """A text with unseen characters spelt out: direction marks work in a browser, too."""
    return visible(value, keep="\n") if type(value) is str else value


def filled(template: str, **values: Any) -> Markup:
    """A template with its values; what is text is escaped."""
    return Markup(_templates().get_template(template).render(**values))


@dataclass(frozen=True, slots=True)
class Part:
    """What changes with the form; ``html`` is None where something is wrong with it."""

    html: Markup | None
    summary: str
    problems: Mapping[str, str]


def part(form: Form, ledger: LedgerView | None = None, label: str = "") -> Part:
    """Everything that the form's fields decide."""
    choice, problems = chosen(form)
    if choice is None:
        return Part(None, _wrong(problems), problems)
    shown = view(choice)
    left, words = None, ""
    if ledger is not None:
        try:
            left = ledger.left(choice.guarantee())
        except OpBoostError as error:
            words = str(error)
    html = filled(
        "results.html",
        v=shown,
        spending=_spending(shown),
        total=choice.guarantee().total,
        left=left,
        ledger_problem=words,
        toml=as_toml(choice, label),
    )
    return Part(html, _summary(shown), {})


def _wrong(problems: Mapping[str, str]) -> str:
    first = next(iter(problems.values()))
    more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"Not drawn: {first}{more}"


def _summary(shown: View) -> str:
    choice, cells = shown.choice, shown.choice.mechanism.domain.size
    total, count = choice.guarantee().total, len(choice.mappings)
    columns = "one column" if count == 1 else f"all {count} columns"
    whole = "without any limit" if total == float("inf") else f"by {short(total)} at most"
    return (
        f"{KINDS[choice.kind]} on {cells:,} cells: neighbouring cells can be told apart by "
        f"{short(shown.exact)}, one person over {columns} {whole}. Order kept: "
        f"{shown.figures.order:.3f} of 1; a value moves {short(shown.figures.moved)} cells "
        "on average."
    )


def _spending(shown: View) -> list[dict[str, Any]]:
    """By column: how wide a cell is, and what one raw unit of distance costs."""
    lines = []
    for name, mapping in shown.choice.mappings.items():
        width = (mapping.bounds[1] - mapping.bounds[0]) / mapping.domain.size
        lines.append({"name": name, "width": width, "unit": shown.exact / width})
    return lines


def explorer_page(
    form: Form,
    *,
    ledger: LedgerView | None,
    table: str,
    names: Sequence[str],
    sample: int,
    progress: TrialProgress,
    has_job: bool,
) -> Markup:
    """The whole page."""
    found = part(form, ledger)
    return filled(
        "explorer.html",
        page="explorer",
        has_job=has_job,
        form=form,
        kinds=KINDS,
        problems=found.problems,
        summary=found.summary,
        results=found.html or "",
        table=table,
        names=names,
        sample=sample,
        trial=trial_part(progress),
    )


def trial_part(progress: TrialProgress) -> Markup:
    """How far a trial is, and what it found."""
    return filled("trial.html", progress=progress, chart=_accuracy(progress.results))


def _accuracy(results: Sequence[TrialResult]) -> SvgChart | None:
    noisy = [r for r in results if r.epsilon is not None]
    if not noisy:
        return None
    plain = next(r.score for r in results if r.epsilon is None)
    levels = sorted({r.epsilon for r in noisy if r.epsilon is not None})
    last = {r.way: r for r in noisy}
    told = ", ".join(
        f"{r.way} {short(r.score)} at ε {short(r.epsilon or 0)}" for r in last.values()
    )
    series = [Series("plain (no noise)", [(e, plain) for e in levels], "plain")]
    for way, shape in (("naive", "square"), ("denoised", "circle")):
        points = [(r.epsilon or 0.0, r.score) for r in noisy if r.way == way]
        series.append(Series(way, points, way, shape))  # type: ignore[arg-type]
    return SvgChart(
        f"{noisy[0].measure} on rows that were kept out",
        f"Without noise the sample of {noisy[0].rows:,} rows gives {short(plain)}; {told}.",
        "ε",
        noisy[0].measure,
        series,
        x_log=len(levels) > 1,
        y_top=1.0,
        whole_x=False,
    )


def choice_of(form: Form) -> Choice:
    """The choice of a form that was sent to do something with it; its first mistake is raised."""
    choice, problems = chosen(form)
    if choice is None:
        raise OpBoostError(_wrong(problems))
    return choice


def run_page(run: JobRun) -> Markup:
    """A job's whole page."""
    return filled("job.html", page="run", has_job=True, run=run, part=run_part(run))


def run_part(run: JobRun) -> Markup:
    """What changes while a job goes on."""
    return filled("job_part.html", run=run, left=_left(run), chart=_learnt(run))


def _left(run: JobRun) -> str:
    if run.over:
        return "none"
    if run.eta is None:
        return "not known yet"
    return f"about {run.eta / 60:.0f} min" if run.eta >= 90 else f"about {run.eta:.0f} s"


def _learnt(run: JobRun) -> SvgChart | None:
    if run.curve is None:
        return None
    points = [(float(r), v) for r, v in zip(run.curve.rounds, run.curve.loss, strict=True)]
    return SvgChart(
        "Training curve",
        f"The {run.curve.measure} on the rows that were learnt from fell from "
        f"{short(points[0][1])} to {short(points[-1][1])} in {run.curve.rounds[-1]:,} rounds.",
        "round",
        run.curve.measure,
        [Series(run.curve.measure, points, "denoised", "circle")],
    )
