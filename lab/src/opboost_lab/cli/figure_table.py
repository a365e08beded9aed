"""A table of figures for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table


def figure_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = ""
) -> Table:
    """A table whose first column holds words and whose others hold figures."""
    table = Table(title=title, caption=caption or None)
    for place, head in enumerate(header):
        table.add_column(head, justify="right" if place else "left", no_wrap=not place)
    for row in rows:
        table.add_row(*row)
    return table
