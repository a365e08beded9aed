"""The style sheets of the demo's page and pictures."""

from __future__ import annotations

from importlib.resources import files


def style(name: str) -> str:
    """Return the text of a style sheet of this package."""
    return (files("opboost.demo") / name).read_text(encoding="utf-8")
