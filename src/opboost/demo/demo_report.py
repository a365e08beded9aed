"""The demo's report: one HTML page with a chart, without network and without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from opboost.demo.styles import style
from opboost.demo.three_parties import Demo
from opboost.plots.svg import SvgBars, draw_bars, picture_file
from opboost.storage import atomic_files

_LOOKS = {"federated": "kept", "joined in the clear": "other", "own columns alone": "other"}


def write_report(found: Demo, folder: Path) -> Path:
    """Write the report and its chart; the page says who sent what, and what it was worth."""
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
        "ε per person, at most": f"{found.per_person:g}",
        "people in common": f"{found.aligned.common:,}",
        "AUC, federated": f"{found.auc['federated']:.3f}",
        "from start to model": f"{found.seconds:.1f}\u00a0s",
    }
    people = [(name, f"{count:,}") for name, count in found.aligned.people.items()]
    sent = [
        (
            s.party,
            *(f"{n:,}" for n in (s.columns, s.rows, s.bytes)),
            f"{s.per_cell:g}",
            f"{s.per_person:g}",
        )
        for s in found.sent
    ]
    scores = [(way, f"{value:.4f}") for way, value in found.auc.items()]
    titles = ("party", "columns", "rows", "bytes", "ε a cell", "ε a person")
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>OpBoost: one model over three organisations</title>
<style>
{style("charts.css")}{style("report.css")}</style>
</head>
<body>
<header>
<h1>One model, three organisations</h1>
<p>A clinic holds the label and a few columns. Two laboratories hold other measurements. Each ran as
a process of its own, over mutual TLS, for {found.seconds:.1f}&nbsp;s in all.</p>
</header>
<main>
<dl class="facts">{"".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items())}</dl>
<section>
<h2>Whom they have in common</h2>
{_table(("known to", "people"), people, ("all of them", f"{found.aligned.common:,}"))}
<p class="note">Found by private set intersection in {found.aligned.seconds:.1f}&nbsp;s: no
organisation showed its list of people. The model is trained on the {found.rows:,} people that all
know.</p>
</section>
<section>
<h2>What left each laboratory</h2>
{_table(titles, sent)}
<p class="note">All releases together: at most ε = {found.per_person:g} about one person.</p>
</section>
<section>
<h2>What it was worth</h2>
<div class="beside">
{_table(("trained on", "AUC on unseen rows"), scores)}
<div class="small">{chart}</div>
</div>
</section>
</main>
</body>
</html>
"""


def _table(
    titles: tuple[str, ...], rows: Iterable[tuple[str, ...]], total: tuple[str, ...] | None = None
) -> str:
    """Return a table; on a narrow screen one of many columns shows its rows as lists."""
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "".join(f"<tr>{_cells(titles, row)}</tr>" for row in rows)
    if total is not None:
        body += f'<tr class="total">{_cells(titles, total)}</tr>'
    look = "many" if len(titles) > 3 else "few"
    return f'<table class="{look}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _cells(titles: tuple[str, ...], row: tuple[str, ...]) -> str:
    name, *values = row
    cells = "".join(
        f'<td data-label="{title}">{escape(value)}</td>'
        for title, value in zip(titles[1:], values, strict=True)
    )
    return f'<th scope="row">{escape(name)}</th>{cells}'
