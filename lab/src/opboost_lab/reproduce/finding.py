"""What an artefact shows: headlines, notes, and whether the paper's statement holds here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from opboost_lab.reproduce.charts import Cell, Grid, Panel
from opboost_lab.reproduce.task import Json, Results, Scope, Task
from opboost_lab.toml_data import toml_data

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Headline:
    """A line of the summary: one quantity as printed, by the paper's method, and at our best."""

    what: str
    paper: Cell
    ours: Cell
    best: Cell = None
    plain: Cell = None
    """No noise, raw values."""
    on_grid: Cell = None
    """No noise, values on the grid."""

    @property
    def ratio(self) -> float | None:
        """Our figure by the paper's method over the printed one."""
        if isinstance(self.paper, int | float) and isinstance(self.ours, int | float):
            return self.ours / self.paper if self.paper else None
        return None


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence on a difference, and the erratum that explains it."""

    text: str
    erratum: int | None = None


def noted(label: str, /, **figures: object) -> tuple[Note, ...]:
    """Return the notes of ``notes.toml`` on an artefact or a column; most columns have none.

    A note with an ``if`` is left out unless the figure of this name is given and true.
    """
    found = toml_data("opboost_lab.reproduce", "notes").get(label, ())
    said = [note for note in found if figures.get(note.get("if"), "if" not in note)]
    return tuple(Note(note["text"].format(**figures), note.get("erratum")) for note in said)


class Words:
    """The sentences, titles and headers of an artefact, from ``words.toml``."""

    def __init__(self, label: str) -> None:
        self._known = toml_data("opboost_lab.reproduce", "words")[label]

    def __call__(self, name: str, /, **figures: object) -> str:
        """Return a sentence with its figures in place."""
        return str(self._known[name].format(**figures))

    def header(self, name: str = "header") -> tuple[str, ...]:
        """Return the heads of a table's columns."""
        return tuple(self._known[name])


AGREES = 0.9
"""A statement agrees with our figures if it holds in at least this share of the cases."""


@dataclass(frozen=True, slots=True)
class Said:
    """A statement of the paper, and in how many cases it holds here."""

    text: str
    held: int
    cases: int

    @property
    def verdict(self) -> Literal["agrees", "in part", "does not"]:
        """Whether our figures agree with the paper's statement."""
        if self.held >= AGREES * self.cases:
            return "agrees"
        return "in part" if 2 * self.held >= self.cases else "does not"


@dataclass(frozen=True, slots=True)
class Finding:
    """All that is shown of an artefact; ``short`` is its sentence at the top of the report."""

    summary: str
    headlines: tuple[Headline, ...] = ()
    panels: tuple[Panel, ...] = ()
    grids: tuple[Grid, ...] = ()
    notes: tuple[Note, ...] = ()
    short: str = ""
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class Artefact:
    """A table, figure or statement of the paper, by its label."""

    label: str
    title: str
    tasks: Callable[[Scope], list[Task]]
    show: Callable[[Scope, Results], Finding]
    needs: tuple[str, ...] = ()
    """Data sets of the paper; if they are missing, a quick run uses bundled ones."""
    learning: bool = False
    """Whether it trains models, so that a user's own table can replace its data."""

    @classmethod
    def keyed(
        cls,
        label: str,
        title: str,
        tasks: Callable[[Scope], Mapping[Key, Task]],
        show: Callable[[Scope, dict[Key, Json]], Finding],
        needs: tuple[str, ...] = (),
    ) -> Artefact:
        """Return an artefact whose ``show`` gets the results by key instead of by task."""

        def shown(scope: Scope, results: Results) -> Finding:
            return show(scope, {key: results[task] for key, task in tasks(scope).items()})

        return cls(label, title, lambda scope: list(tasks(scope).values()), shown, needs)

    @property
    def slug(self) -> str:
        """The label as the name of a folder."""
        return "".join(c if c.isalnum() else "-" for c in self.label)
