"""Render the views as HTML: the templates, and the values that fill them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from opboost.config.columns_file import DeclaredTable
from opboost.errors import OpBoostError, visible
from opboost.explorer.changed_file import ChangedFile, with_mechanism, with_record
from opboost.explorer.charts import SHAPES, View, view
from opboost.explorer.choice import KINDS, Choice, Form, chosen, kinds_with
from opboost.explorer.choice_as_toml import as_toml
from opboost.explorer.job_view import JobRun
from opboost.explorer.record_as_toml import record_as_toml
from opboost.explorer.record_form import EXAMPLE_BOUNDS, RecordForm, planned_record
from opboost.explorer.record_words import RECORD, record_words
from opboost.explorer.remaining_budget import LedgerView, Left
from opboost.explorer.trial_process import TrialProgress, TrialResult
from opboost.plots.svg import Series, SvgChart, draw, short, swatch
from opboost.promises import Joint, large_total_warning

PLAN_TITLES = {"radius": "radius, raw units", "sent for": "sent for, share of people"}
"""Column titles of the plan's table that are longer on the page than in a terminal."""


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
    found.globals["RECORD"] = RECORD
    return found


def _legible(value: Any) -> Any:
    """Spell out invisible characters of a text: direction marks work in a browser, too."""
    return visible(value, keep="\n") if type(value) is str else value


def filled(template: str, **values: Any) -> Markup:
    """Render a template with these values; text is escaped."""
    return Markup(_templates().get_template(template).render(**values))


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a page that depends on the form; ``html`` is None if the form has errors."""

    html: Markup | None
    summary: str
    problems: Mapping[str, str]


def mechanism_part(
    form: Form,
    ledger: LedgerView | None = None,
    label: str = "",
    declared: DeclaredTable | None = None,
) -> Part:
    """Render the part of the page "ε per cell" that depends on its form."""
    choice, problems = chosen(form)
    if choice is None:
        return Part(None, _wrong(problems), problems)
    shown = view(choice)
    file = with_mechanism(declared, choice) if declared else None
    promise = file.plan.guarantee() if file and file.plan else choice.guarantee()
    refused = file is not None and file.plan is None
    left, words = _left_by(ledger, promise)
    html = filled(
        "mechanism_part.html",
        v=shown,
        spending=_spending(shown),
        others=_not_drawn(shown, file),
        total=promise.total,
        warning=large_total_warning(promise.total),
        left=left,
        ledger_problem=words,
        file=file,
        toml=file.text if file else as_toml(choice, label),
    )
    return Part(html, _summary(shown, None if refused else promise.total), {})


def _left_by(ledger: LedgerView | None, promise: Joint) -> tuple[list[Left] | None, str]:
    """Return what a ledger has left after a release, or why it cannot be read."""
    if ledger is None:
        return None, ""
    try:
        return ledger.left(promise), ""
    except OpBoostError as error:
        return None, str(error)


def record_part(form: RecordForm, ledger: LedgerView | None = None) -> Part:
    """Render the part of the page "record total" that depends on its form."""
    found, problems = planned_record(form)
    if found is None:
        return Part(None, _wrong(problems, "Not planned"), problems)
    left, words = _left_by(ledger, found.plan.guarantee())
    if left is not None and found.declared is None:
        left = left[-1:]  # the page's example columns are not attributes of the ledger
    file = with_record(found.declared, found) if found.declared else None
    rows = [
        {**row, "sent for": row["sent for"].removesuffix(" of people")}
        for row in found.plan.table()
    ]
    html = filled(
        "record_part.html",
        planned=found,
        titles=[PLAN_TITLES.get(title, title) for title in rows[0]],
        rows=[list(row.values()) for row in rows],
        bounds=EXAMPLE_BOUNDS if found.bounds else None,
        warning=large_total_warning(found.plan.total),
        left=left,
        ledger_problem=words,
        file=file,
        toml=file.text if file else record_as_toml(found),
    )
    return Part(html, found.plan.meaning(), {})


def record_page(
    form: RecordForm, *, ledger: LedgerView | None, table: str, has_job: bool
) -> Markup:
    """Render the first page: one number, and the plan that follows from it."""
    found = record_part(form, ledger)
    return filled(
        "record.html",
        page="record",
        has_job=has_job,
        fields=form.fields,
        source=form.declared.source if form.declared else "",
        count=len(form.declared.columns) if form.declared else 0,
        table=table,
        problems=found.problems,
        summary=found.summary,
        results=found.html or "",
    )


def _wrong(problems: Mapping[str, str], what: str = "Not drawn") -> str:
    first = next(iter(problems.values()))
    more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{what}: {first}{more}"


def _summary(shown: View, total: float | None) -> str:
    choice, cells = shown.choice, shown.choice.mechanism.domain.size
    refused = f"{RECORD}: not known, because the file would be refused."
    person = refused if total is None else record_words(total)
    return (
        f"{person} {KINDS[choice.kind]} on {cells:,} cells: "
        f"neighbouring cells can be told apart by {short(shown.exact)}. Order kept: "
        f"{shown.figures.order:.3f} of 1; a value moves {short(shown.figures.moved)} cells "
        "on average."
    )


def _spending(shown: View) -> list[dict[str, Any]]:
    """Return for each column how wide a cell is, and what one raw unit of distance costs."""
    lines = []
    for name, mapping in shown.choice.mappings.items():
        width = (mapping.bounds[1] - mapping.bounds[0]) / mapping.domain.size
        lines.append({"name": name, "width": width, "unit": shown.exact / width})
    return lines


def _not_drawn(shown: View, file: ChangedFile | None) -> list[dict[str, Any]]:
    """Return the file's columns that the page does not draw, with the most that each reveals."""
    plan = file.plan if file else None
    return [
        {"name": str(column.name), "brief": promise.brief, "total": promise.total}
        for column in (plan.private if plan else ())
        if str(column.name) not in shown.choice.mappings
        for promise in (column.guarantee(),)
    ]


def mechanism_page(
    form: Form,
    *,
    declared: DeclaredTable | None = None,
    ledger: LedgerView | None,
    table: str,
    names: Sequence[str],
    sample: int,
    progress: TrialProgress,
    has_job: bool,
) -> Markup:
    """Render the page of one mechanism and its level, with the trial on a table."""
    found = mechanism_part(form, ledger, declared=declared)
    return filled(
        "mechanism.html",
        page="mechanism",
        has_job=has_job,
        form=form,
        kinds=KINDS,
        only={name: kinds_with(name) for name in form.fields},
        problems=found.problems,
        summary=found.summary,
        results=found.html or "",
        table=table,
        names=names,
        sample=sample,
        trial=trial_part(progress),
    )


def trial_part(progress: TrialProgress) -> Markup:
    """Render the progress and the results of a trial."""
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
        f"{noisy[0].measure} on held-out rows",
        f"Without noise, the sample of {noisy[0].rows:,} rows scores {short(plain)}; {told}.",
        "ε",
        noisy[0].measure,
        series,
        x_log=len(levels) > 1,
        y_top=1.0,
        whole_x=False,
    )


def choice_of(form: Form) -> Choice:
    """Return the choice of a form; raise its first error."""
    choice, problems = chosen(form)
    if choice is None:
        raise OpBoostError(_wrong(problems))
    return choice


def run_page(run: JobRun) -> Markup:
    """Render a job's page."""
    return filled("job.html", page="run", has_job=True, run=run, part=run_part(run))


def run_part(run: JobRun) -> Markup:
    """Render the part of a job's page that changes while the job runs."""
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
    said = (
        f"The {run.curve.measure} on the training rows fell from "
        f"{short(points[0][1])} to {short(points[-1][1])} in {run.curve.rounds[-1]:,} rounds."
    )
    series = [Series("training rows", points, "denoised", "circle")]
    if run.curve.held_out:
        held = [(float(r), v) for r, v in run.curve.held_out]
        best = min(held, key=lambda point: point[1])
        said += (
            f" On held-out rows it went from {short(held[0][1])} to {short(held[-1][1])}, with its "
            f"lowest, {short(best[1])}, after {best[0]:,.0f} rounds. Held-out rows are noisy, so "
            "their loss is usually higher than that of the training rows."
        )
        series.append(Series("held-out rows", held, "plain"))
    return SvgChart("Training curve", said, "round", run.curve.measure, series)
