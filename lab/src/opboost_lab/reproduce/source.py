"""The rows of a learning artefact: the paper's set, a stand-in, or a user's own table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from opboost_lab.accuracy import parted
from opboost_lab.data.bundled import BUNDLED
from opboost_lab.data.datasets import DataSet, halves
from opboost_lab.data.own_table import LEAK, digest, own_table
from opboost_lab.reproduce.finding import Note, noted
from opboost_lab.reproduce.task import Json, OwnTable, Scope

QUICK_ROWS = 2000
"""The most rows for training, and for testing, in a quick run."""
KINDS = {
    "Adult": "binary",
    "Pen-digits": "multiclass",
    "Powerplant": "regression",
    "CASP": "regression",
    "Industrial": "regression",
}
MEASURE = {"binary": "AUC", "multiclass": "accuracy", "regression": "MSE"}
"""The measure that a figure shows, by task."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set in the settings of a task; ``data`` returns its rows for a seed.

    ``name`` is that of the paper's set or the user's file, ``rows`` the most rows that are used,
    and ``digest`` that of the user's files, so that other content makes another source.
    """

    name: str
    rows: int | None = None
    stand_in: str = ""
    path: str = ""
    label: str = ""
    config: str = ""
    digest: str = ""
    anew: bool = False
    """Whether to split the rows by the seed even if there is an official split."""

    @classmethod
    def of(cls, name: str, scope: Scope, *, anew: bool = False) -> Source:
        """Return the source of a set in a run of this scope."""
        rows = QUICK_ROWS if scope.quick else None
        if own := scope.table:
            path, config = (str(file.absolute()) if file else "" for file in (own.path, own.config))
            known = digest(own.path, own.config)
            return cls(own.path.name, rows, "", path, own.label, config, known)
        if scope.bundled:
            return cls(name, rows, BUNDLED[name]().name)
        return cls(name, rows, anew=anew)

    def as_json(self) -> Json:
        """Return it as settings of a task; ``Source(**...)`` is the inverse."""
        return asdict(self)

    @property
    def title(self) -> str:
        """Its name in titles."""
        if self.path:
            return f"{self.name}, your table"
        if self.stand_in:
            return f"{self.stand_in}, standing in for {self.name}"
        return "Flights of 2013 (stand-in)" if self.name == "Industrial" else self.name

    @property
    def kind(self) -> str:
        """``binary``, ``multiclass`` or ``regression``."""
        return self._own().task if self.path else KINDS[self.name]

    @property
    def narrow(self) -> bool:
        """Whether it is a user's table with one private column, so that no level can be split."""
        return bool(self.path) and len(self._own().bounds) + len(self._own().categories) < 2

    def _own(self) -> DataSet:
        return _read(self.path, self.label, self.config, self.digest)

    @property
    def measure(self) -> str:
        """The measure that a figure shows."""
        return MEASURE[self.kind]

    @property
    def better(self) -> int:
        """+1 if a higher value of the measure is better, −1 if a lower one is."""
        return -1 if self.kind == "regression" else 1

    def data(self, seed: int) -> DataSet:
        """Return the rows, split and chosen by the seed."""
        data = self._parted(seed)
        if self.rows is None:
            return data
        picks = np.random.default_rng([seed, 1])
        train, test = (_some(t, self.rows, picks) for t in (data.train, data.test))
        return replace(data, train=train, test=test)

    def _parted(self, seed: int) -> DataSet:
        if not self.path and not self.stand_in and not self.anew:
            return parted(self.name, seed)
        data = BUNDLED[self.name]() if self.stand_in else None
        data = data or (self._own() if self.path else parted(self.name, 0))
        train, test = halves(pa.concat_tables([data.train, data.test]), seed)
        return replace(data, train=train, test=test)

    def notes(self) -> tuple[Note, ...]:
        """Return what a reader must know about these rows."""
        figures: Json = {"title": self.title, "rows": self.rows, "stand_in": self.stand_in}
        if self.path:
            data = self._own()
            figures |= {"table": self.name, "kind": self.kind, "label": self.label}
            figures |= {"numeric": len(data.bounds), "leak": not self.config and _leak(data)}
        return noted("rows", **figures)


def _leak(data: DataSet) -> str:
    return LEAK.format(columns=", ".join(data.bounds))


def sources(names: tuple[str, ...], scope: Scope, *, anew: bool = False) -> list[Source]:
    """Return the sources of several sets; a user's table replaces all of them."""
    return list(dict.fromkeys(Source.of(n, scope, anew=anew) for n in names))


def checked(own: OwnTable) -> tuple[str, ...]:
    """Check that a user's table can be read, and return the warnings about it."""
    data = own_table(own.path, own.label, own.config)
    return () if own.config else (_leak(data),)


@lru_cache(maxsize=2)
def _read(path: str, label: str, config: str, known: str) -> DataSet:
    return own_table(Path(path), label, Path(config) if config else None)


def _some(table: pa.Table, rows: int, picks: np.random.Generator) -> pa.Table:
    if table.num_rows <= rows:
        return table
    return table.take(np.sort(picks.permutation(table.num_rows)[:rows]))
