"""Which of the label party's rows each feature party knows, in a job with ``rows = "mine"``.

A party's column has a value or a gap for every row of the label party.  For a person whom the party
does not know, the column counts as not sent.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from opboost._typing import BoolArray, IntArray
from opboost.columns.codebook import distinct
from opboost.columns.dataframes import column_names, is_frame, with_column
from opboost.errors import ColumnError, DataError, ParameterError
from opboost.files.predict_without import presence_columns, presence_name
from opboost.psi.align_rules import RowChoice
from opboost.psi.common_rows import Common
from opboost.psi.row_keys import Digests
from opboost.psi.table_keys import Keys
from opboost.storage import atomic_files
from opboost.training.absent_columns import nobody_sent, spread
from opboost.training.released_columns import ReleasedColumn

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor

FOLDER = "known"
"""The subfolder of a job's folder that stores which rows each party has."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownRows:
    """The places of each party's people among the label party's rows, ascending."""

    digests: Digests
    """The digests of all the label party's row keys, in the order that all parties share."""
    places: Mapping[str, IntArray]
    _keys: dict[str, Keys] = field(default_factory=dict)

    @classmethod
    def of(cls, digests: Digests, rows: IntArray, known: Mapping[str, IntArray]) -> KnownRows:
        """Build from row numbers in the table: all rows in order, and the rows of each party."""
        found = {name: np.flatnonzero(np.isin(rows, some)) for name, some in known.items()}
        return cls(digests[rows], found)

    def expected(self, party: str, nonce: bytes) -> tuple[int, bytes]:
        """Return how many rows a party's release must have, and the digest of their IDs."""
        if party not in self._keys:
            self._keys[party] = Keys.of_digests(self.digests, self.places[party])
        return len(self.places[party]), self._keys[party].digest(nonce)

    def spread(self, column: ReleasedColumn, party: str) -> ReleasedColumn:
        """Spread a party's column over all rows of the label party."""
        return spread(column, self.places[party], len(self.digests))


def save_known(folder: Path, digests: Digests, known: Mapping[str, IntArray]) -> None:
    """Save which rows each party has, without saving any key."""
    for name, rows in known.items():
        data = Common.of(digests, rows).to_bytes()
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        atomic_files.write(folder / FOLDER / name, atomic_files.with_checksum(data))


def load_known(folder: Path, digests: Digests, parties: Sequence[str]) -> dict[str, IntArray]:
    """Return each party's rows that :func:`save_known` saved, in the order all parties share."""
    found = {}
    for name in parties:
        file = folder / FOLDER / name
        data = atomic_files.read_checked(file, atomic_files.AT_LABEL_PARTY)
        found[name] = Common.from_bytes(data).rows(digests)
    return found


def check_presence(own: Any, parties: Sequence[str]) -> None:
    """Refuse a table to which the presence columns cannot be added."""
    if own is None:
        return
    if not is_frame(own):
        raise ParameterError(
            "presence=True adds columns by name, and the label party's features are an array. Give "
            "a pandas, polars or Arrow table."
        )
    for party in parties:
        if presence_name(party) in column_names(own):
            raise ColumnError(
                presence_name(party),
                f"is in the table, and presence = true adds a column of this name for {party!r}",
                hint="Rename the table's column.",
            )


def with_presence(own: Any, present: Mapping[str, BoolArray]) -> Any:
    """Return the own columns, plus one per party that says whether it knows the person (1 or 0)."""
    for party, known in present.items():
        column = known.astype(np.int64)
        if own is None:
            own = pa.table({presence_name(party): column})
        else:
            own = with_column(own, presence_name(party), column)
    return own


def present(
    release: Sequence[ReleasedColumn], parties: Mapping[Hashable, str]
) -> dict[str, BoolArray]:
    """Return, for each party, the rows of people whom it knows."""
    found: dict[str, BoolArray] = {}
    for column in release:
        known = np.ones(len(column), np.bool_) if column.absent is None else ~column.absent
        found.setdefault(parties[column.private.name], known)
    return found


def with_model_presence(
    model: OpBoostClassifier | OpBoostRegressor, own: Any, release: Sequence[ReleasedColumn]
) -> Any:
    """Return the own columns, with the presence columns that the model has."""
    there = [] if own is None else column_names(own)
    lacking = [party for name, party in presence_columns(model).items() if name not in there]
    found = present(release, model.origins_.parties)
    return with_presence(own, {party: found[party] for party in lacking})


def check_row_choice(rows: RowChoice, presence: bool, memory: str, continued: Any) -> None:
    """Refuse settings that are incompatible with a choice of rows, before anybody connects."""
    if presence and rows == "common":
        raise ParameterError(
            "presence is the same for everybody where rows='common'. Leave it out, or choose "
            "rows='mine'."
        )
    if rows == "mine" and memory == "external":
        raise ParameterError(
            "rows='mine' trains in memory. Leave memory='external' out, or choose rows='common'."
        )
    if rows == "mine" and continued is not None:
        raise ParameterError(
            "A model is continued on rows that all parties have. Leave rows='mine' out, or train "
            "a new model."
        )


def check_some_known(release: Sequence[ReleasedColumn], y: Any) -> None:
    """Refuse labels with fewer than two values among the rows that some feature party knows."""
    known = ~nobody_sent(release)
    if not known.any() or len(distinct(y[known])) < 2:
        raise DataError(
            "The label holds fewer than two values in the rows that some feature party knows",
            hint="Check that the parties' rows are those of the same people.",
        )
