"""What the printed pages share: the page layout, tables, and levels for people to read.

The caller escapes texts that come from files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from importlib.resources import files

SIGNATURE = """\
<section class="lines" aria-label="Signature">
  <p>Place, date</p><p>Name, function</p><p>Signature</p>
</section>"""
"""Lines for the officer who signs."""


def printed_style() -> str:
    """Return the style sheet of pages that are printed and signed."""
    return (files("opboost.pages") / "printed_page.css").read_text(encoding="utf-8")


def html_page(title: str, style: str, header: str, sections: Iterable[str]) -> str:
    """Return a whole HTML page; empty sections are left out.

    >>> page = html_page("A & B", "p { margin: 0 }", "<h1>A</h1>", ["<p>One.</p>", ""])
    >>> "<title>A &amp; B</title>" in page, page.count("<p>")
    (True, 1)
    """
    body = "\n".join(section for section in sections if section)
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
{header}
</header>
<main>
{body}
</main>
</body>
</html>
"""


def dated_header(title: str, made: str, version: str) -> str:
    """Return the header of a printed page: its title, when it was made, and by which release."""
    return f"""\
  <h1>{escape(title)}</h1>
  <p class="soft">As of <time>{escape(made)}</time>, by OpBoost {escape(version)}.</p>"""


def section(name: str, title: str, content: str) -> str:
    """Return a section with a heading; ``content`` is HTML."""
    return f"""\
<section aria-labelledby="{name}-title">
  <h2 id="{name}-title">{escape(title)}</h2>
  {content}
</section>
"""


def heads(*columns: tuple[str, str]) -> str:
    """Return the head of a table: titles, each with its class."""
    cells = (
        f'<th scope="col" class="{look}">{title}</th>' if look else f'<th scope="col">{title}</th>'
        for title, look in columns
    )
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def cell(label: str, text: str, look: str = "number") -> str:
    """Return a cell of a table; a narrow screen shows its label before it."""
    return f'<td class="{look}" data-label="{label}">{text}</td>'


def level(amount: float | None) -> str:
    """Return a level as people read it.

    >>> level(4.0), level(None), level(math.inf)
    ('4', 'none', 'no bound')
    """
    if amount is None:
        return "none"
    return "no bound" if math.isinf(amount) else f"{amount:g}"


def factor(total: float) -> str:
    """Return by how much the odds may change: e to the total, in HTML.

    >>> print(factor(0.0), factor(0.5), factor(11.52), factor(57.6))
    1 1.65 101,000 1.04 × 10<sup>25</sup>
    """
    power = total / math.log(10)
    if power < 2:
        return f"{math.exp(total):.3g}"
    if power < 9:
        return f"{float(f'{math.exp(total):.3g}'):,.0f}"
    whole = math.floor(power)
    mantissa, more = f"{10 ** (power - whole):.2e}".split("e")  # 9.999 is 1.00e+01
    return f"{mantissa} × 10<sup>{whole + int(more)}</sup>"
