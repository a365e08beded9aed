"""Count the split points asked of Party B, which the paper says are fewer at small ε."""

import statistics

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.learning_figures import CLAMP, GLOBAL, LOCALS, PIECEWISE
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.methods import unit_axis
from opboost_lab.reproduce.study import Line, Study, level_heads, notes_on, studies
from opboost_lab.reproduce.task import Results, Scope, Task

SETS = ("Adult", "Pen-digits", "Powerplant", "CASP")
LINES = (GLOBAL, LOCALS[2], CLAMP, PIECEWISE)
EVEN = 0.05
"""Changes up to this share count as none."""
WORDS = Words("split requests")


def _tasks(scope: Scope) -> list[Task]:
    """Return the models of the figures by ε, which are stored already if these were run."""
    chosen = studies(SETS, scope, "hist-gbdt")
    return [t for study in chosen for t in study.tasks(LINES, scope.epsilons)]


def _points(study: Study, line: Line, what: str) -> dict[float, list[float]]:
    found, levels = study.results, study.scope.epsilons
    return {e: [found[study.task(line, e, s)][what] for s in study.seeds] for e in levels}


def _show(scope: Scope, results: Results) -> Finding:
    chosen = studies(SETS, scope, "hist-gbdt", results)
    with_own = [s for s in chosen if s.source.kind == "binary"]
    panels = [_panel(s, "cuts") for s in chosen] + [_panel(s, "share") for s in with_own]
    rows: list[tuple[Cell, ...]] = []
    fewer = more = asked = 0
    for study in chosen:
        for line in LINES:
            means = [statistics.fmean(v) for v in _points(study, line, "cuts").values()]
            rows.append((f"{study.source.title}: {line.label}", *means))
            if line.method.kind == "paper":
                asked += 1
                fewer += means[0] < (1 - EVEN) * means[-1]
                more += means[0] > (1 + EVEN) * means[-1]
    ends = {"low": scope.epsilons[0], "high": scope.epsilons[-1]}
    words = WORDS("summary", even=EVEN, fewer=fewer, more=more, asked=asked, **ends)
    heads = []
    if with_own:
        shares = _points(with_own[0], GLOBAL, "share")
        small, large = (statistics.fmean(shares[e]) for e in ends.values())
        words += WORDS("reason", title=with_own[0].source.title, small=small, large=large, **ends)
        totals = {f"{end}_total": e * GRID.span for end, e in ends.items()}
        what = WORDS("headline", **ends, **totals)
        heads.append(Headline(what, "below 1", small / large if large else None))
    header = ("model", *level_heads(scope.epsilons))
    return Finding(
        words,
        tuple(heads),
        tuple(panels),
        (Grid("Different split points asked for, GBDT", header, tuple(rows), digits=1),),
        notes_on(chosen, noted("split requests")),
        said=Said(WORDS("said"), fewer, asked),
    )


def _panel(study: Study, what: str) -> Panel:
    curves = tuple(
        Curve.of(line.label, _points(study, line, what), line.method.kind) for line in LINES
    )
    title = f"{study.source.title}: {WORDS(what)}"
    return Panel(title, unit_axis(GRID), WORDS(what), curves, logx=True)


ARTEFACT = Artefact(
    "split requests", "Split points asked for, by ε", _tasks, _show, SETS, learning=True
)
