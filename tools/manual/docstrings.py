"""Convert docstrings to Markdown: examples become blocks, and roles become plain names."""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([^`]+)`")


def as_markdown(docstring: str) -> str:
    """Return a docstring with its examples fenced, so that ``>>>`` is not read as a quotation.

    >>> print(as_markdown("It adds, see :func:`add`.\\n\\n>>> 1 + 1\\n2\\n\\nThat is all."))
    It adds, see `add`.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    That is all.
    """
    paragraphs = re.split(r"\n{2,}", _ROLE.sub(r"`\1`", docstring))
    shown = [f"```pycon\n{p}\n```" if p.startswith(">>> ") else p for p in paragraphs]
    return "\n\n".join(shown)


class Markdown(griffe.Extension):
    """An extension of griffe that converts every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        """Convert the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
