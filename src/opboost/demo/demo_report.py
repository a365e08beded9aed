"""The demo's report: one HTML page with a chart, which needs no network and no scripts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from opboost.budgets.record_plan import meaning_of
from opboost.demo.styles import style
from opboost.demo.three_parties import Demo, Sent
from opboost.pages.printed_page import html_page
from opboost.plots.svg import SvgBars, draw_bars, picture_file
from opboost.storage import atomic_files

_LOOKS = {"federated": "kept", "joined in the clear": "other", "own columns alone": "other"}


def write_report(found: Demo, folder: Path) -> Path:
    """Write the report and its chart; the page shows who sent what, and the accuracy."""
    folder.mkdir(parents=True, exist_ok=True)
    chart = draw_bars(_accuracy(found))
    atomic_files.write(folder / "accuracy.svg", picture_file(chart, style("charts.css")))
    target = folder / "report.html"
    atomic_files.write(target, _page(found, chart).encode())
    return target


def _accuracy(found: Demo) -> SvgBars:
    bars = [(way, value, _LOOKS.get(way, "other")) for way, value in found.auc.items()]
    words = ", ".join(f"{way} {value:.3f}" for way, value in found.auc.items())
    axis = "AUC on unseen rows (0.5 is guessing)"
    return SvgBars("AUC of the three ways of training", f"{words}.", axis, bars, 0.5, 1.0)


def _page(found: Demo, chart: str) -> str:
    facts = {
        "most about one person": f"{found.per_person:g}",
        "people in common": f"{found.aligned.common:,}",
        "AUC, federated": f"{found.auc['federated']:.3f}",
        "from start to model": f"{found.seconds:.1f}\u00a0s",
    }
    people = [(name, f"{count:,}") for name, count in found.aligned.people.items()]
    sent = [
        (s.party, *(f"{n:,}" for n in (s.columns, s.rows, s.bytes)), f"{s.per_person:g}")
        for s in found.sent
    ]
    scores = [(way, f"{value:.4f}") for way, value in found.auc.items()]
    titles = ("party", "columns", "rows", "bytes", "most about a person")
    header = f"""\
<h1>One model, three organisations</h1>
<p class="record">{escape(meaning_of(found.per_person))}</p>
<p>{escape(found.about)} Each ran as a process of its own, over mutual TLS.{_made(found)}</p>"""
    content = f"""\
<dl class="facts">{"".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items())}</dl>
<section>
<h2>What the total means</h2>
<p>A level, ε, bounds how much a noisy value reveals about the true one: what is sent is at most
e<sup>ε</sup> times as likely for one value as for another. The levels of all columns that are sent
for a person add up, over all parties, to at most {found.per_person:g}: the person’s total. A
smaller total is more private, and a total of 0 reveals nothing. The noise comes from
{_mechanisms(found)}.</p>
</section>
<section>
<h2>What each party sends about a person</h2>
<p class="note">{_chosen(found)} add up to the party’s total at most. “Sent for” is a share of
the people.</p>
{"".join(_plan(s) for s in found.sent)}
</section>
<section>
<h2>Accuracy</h2>
<div class="beside">
<div>
{_table(("trained on", "AUC on unseen rows"), scores)}
{_varies(found)}</div>
<div class="small">{chart}</div>
</div>
<p class="note">{escape(_said(found))}</p>
</section>
<section>
<h2>People in common</h2>
{_table(("known to", "people"), people, ("all of them", f"{found.aligned.common:,}"))}
<p class="note">Found by private set intersection in {found.aligned.seconds:.1f}&nbsp;s: no
organisation showed its list of people. The model is trained on the {found.rows:,} people whom
all know.</p>
</section>
<section>
<h2>What each party sent</h2>
{_table(titles, sent)}
<p class="note">Together at most {found.per_person:g} about one person. Bytes include every
message, certificate and receipt.</p>
</section>"""
    look = style("charts.css") + style("report.css")
    return html_page("OpBoost: one model over three organisations", look, header, [content])


def _said(found: Demo) -> str:
    """Return the score that the label party printed; it is about the party's own rows."""
    return f"The label party’s own score. {found.score_line}." if found.score_line else ""


def _made(found: Demo) -> str:
    if not found.made:
        return ""
    return f" As of <time>{escape(found.made)}</time>, by OpBoost {escape(found.version)}."


def _mechanisms(found: Demo) -> str:
    names = dict.fromkeys(c.mechanism for s in found.sent for c in s.plan)
    return escape(" and ".join(names))


def _varies(found: Demo) -> str:
    """Return how much the score varies with the noise, measured by drawing it again."""
    if not found.redrawn:
        return ""
    scores = [found.auc["federated"], *found.redrawn]
    times = "once" if len(found.redrawn) == 1 else f"{len(found.redrawn)} times"
    listed = ", ".join(f"{score:.4f}" for score in found.redrawn)
    return f"""\
<p class="note" id="varies">Noise is random, so the federated score varies. Drawing noise {times}
more for the same people, in one process, gave {listed}: from {min(scores):.3f} to
{max(scores):.3f} over {len(scores)} draws, on the same unseen rows.</p>
"""


def _chosen(found: Demo) -> str:
    if all(c.sent_per_thousand == (1000, 1000) for s in found.sent for c in s.plan):
        return "For each person, all columns are sent. Their levels"
    return "Which columns are sent for a person is chosen at random, once. Their levels"


def _plan(sent: Sent) -> str:
    titles = ("column", "mechanism", "cells", "level if sent", "sent for")
    rows = [
        (
            str(c.name),
            c.mechanism,
            f"{c.cells}",
            f"{c.level:.4g}",
            c.sent_for,
        )
        for c in sent.plan
    ]
    return (
        f"<h3>{escape(sent.party)}: at most {sent.per_person:g} about a person</h3>"
        f"{_table(titles, rows, look='many plan')}"
    )


def _table(
    titles: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    total: tuple[str, ...] | None = None,
    look: str = "",
) -> str:
    """Return a table; on a narrow screen, a table with many columns shows its rows as lists."""
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "".join(f"<tr>{_cells(titles, row)}</tr>" for row in rows)
    if total is not None:
        body += f'<tr class="total">{_cells(titles, total)}</tr>'
    look = look or ("many" if len(titles) > 3 else "few")
    return f'<table class="{look}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _cells(titles: tuple[str, ...], row: tuple[str, ...]) -> str:
    name, *values = row
    cells = "".join(
        f'<td data-label="{title}">{escape(value)}</td>'
        for title, value in zip(titles[1:], values, strict=True)
    )
    return f'<th scope="row">{escape(name)}</th>{cells}'
