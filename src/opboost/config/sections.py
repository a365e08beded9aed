"""The sections of a file about parties rather than columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from opboost.config.csv_format import CsvFormat
from opboost.protocol.messages import MAX_POINTS, PARTY_NAME
from opboost.psi.align_rules import AlignRules, RowChoice
from opboost.psi.row_keys import Normalisation


class Section(BaseModel):
    """A table of a TOML file; unknown settings are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TableSection(Section):
    """``[table]``: columns that are not private."""

    public: list[str] = Field(default_factory=list)
    drop: list[str] = Field(default_factory=list)


class DataSection(Section):
    """``[data]``: the format of the table's CSV files."""

    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."

    @model_validator(mode="after")
    def _fits(self) -> DataSection:
        self.form()
        return self

    def form(self) -> CsvFormat:
        """Return the format as a value."""
        return CsvFormat(self.separator, self.encoding, self.decimal)


Memory = Literal["internal", "external"]
"""Where training keeps the rows: in memory, or in files that are read in blocks."""


def unfit_for(memory: Memory, booster: object) -> str | None:
    """Return why a booster cannot train from disk; None if it can, or does not have to."""
    if memory == "internal":
        return None
    if memory != "external":
        return f"memory is 'internal' or 'external'; got {memory!r}"
    if isinstance(booster, str) and booster != "xgboost":
        return f"memory = 'external' needs booster 'xgboost', which reads blocks; got {booster!r}"
    return None


ClusterEngine = Literal["dask", "spark"]
"""The clusters that can train."""

_ADDRESSES = {
    "dask": (re.compile(r"(tcp|tls)://[^/\s]+:\d+"), '"tcp://scheduler:8786"'),
    "spark": (
        re.compile(r"spark://\S+:\d+|local(\[\S+\])?|yarn|k8s://\S+"),
        '"spark://master:7077"',
    ),
}


class BoosterSection(Section):
    """``[booster]``: the library that trains, its parameters, and where it keeps the rows.

    ``structure = "by-party"`` restricts each tree to the columns of one party.  ``engine`` is where
    training runs: on this machine, or on the cluster at ``address``.  Spark's executors read rows
    from ``folder``; ``workers`` is the number of Spark tasks that train together.
    """

    kind: Literal["xgboost", "lightgbm", "gbdt", "hist-gbdt"] = "xgboost"
    seed: int | None = None
    denoise: Literal["auto"] | bool = "auto"
    memory: Memory = "internal"
    structure: Literal["free", "by-party"] = "free"
    engine: Literal["local", ClusterEngine] = "local"
    address: str | None = None
    folder: str | None = None
    workers: int | None = Field(default=None, ge=1)
    params: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> BoosterSection:
        if problem := unfit_for(self.memory, self.kind) or self._unfit_cluster():
            raise ValueError(problem)
        if self.structure == "by-party" and self.kind == "gbdt":
            raise ValueError(
                "structure = 'by-party' needs kind 'xgboost', 'lightgbm' or 'hist-gbdt'; 'gbdt' "
                "cannot restrict a tree to the columns of one party"
            )
        return self

    def _unfit_cluster(self) -> str | None:
        """Return what is wrong with the settings of a cluster; None if nothing is."""
        engine, address = self.engine, self.address
        if engine == "local":
            given = [n for n in ("address", "folder", "workers") if getattr(self, n) is not None]
            return (
                f"{given[0]} is for engine = 'dask' or 'spark'; set one of them, or leave it out"
                if given
                else None
            )
        if self.kind != "xgboost":
            return f"engine = '{engine}' trains kind 'xgboost'; got '{self.kind}'"
        form, example = _ADDRESSES[engine]
        if address is None:
            return f"engine = '{engine}' needs the cluster's address, such as address = {example}"
        if not form.fullmatch(address):
            return f"address of engine = '{engine}' looks like {example}; got '{address}'"
        if "rows_a_tree" in self.params:
            return "rows_a_tree bounds the memory of one machine; leave it out with an engine"
        if engine == "dask" and (self.folder is not None or self.workers is not None):
            return (
                "folder and workers are for engine = 'spark'; the Dask scheduler knows its workers"
            )
        if engine == "spark" and self.folder is None and not address.startswith("local"):
            return "engine = 'spark' needs folder, an absolute path that every executor sees"
        if self.folder is not None and not Path(self.folder).is_absolute():
            return f"folder is an absolute path that every executor sees; got '{self.folder}'"
        return None


DEFAULT_HELD_OUT = 0.2
"""The fraction of rows that training holds out for its score."""

MAX_HELD_OUT = 0.5
"""Holding out more would score a model that was trained on few rows."""


class TrainSection(Section):
    """``[train]``: the fraction of rows held out to score the model; 0 for no score.

    With ``early_stopping``, training sets aside as many rows again, and stops after this many
    rounds without an improvement on them.
    """

    held_out: float = Field(default=DEFAULT_HELD_OUT, ge=0, le=MAX_HELD_OUT, allow_inf_nan=False)
    early_stopping: int | None = Field(default=None, ge=1, strict=True)


MAX_PURPOSE_CHARACTERS = 2000
"""A longer purpose would not fit on the card's page."""


class CardSection(Section):
    """``[card]``: what a party's officer states about the model."""

    purpose: str = Field(default="", max_length=MAX_PURPOSE_CHARACTERS)


class PartySection(Section):
    """``[party]``: the party's name, its table, and where it keeps its job state.

    The label party states ``listen``, a feature party ``connect``.  With ``units``, ``names`` and
    ``codebook`` a feature party chooses what the label party learns.
    """

    name: str
    job: str
    table: str
    state: str | None = None
    listen: str | None = None
    connect: str | None = None
    units: Literal["grid", "raw"] = "raw"
    names: Literal["shown", "hidden"] = "shown"
    codebook: Literal["full", "cuts"] = "full"

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not PARTY_NAME.fullmatch(name):
            raise ValueError("a party's name consists of a-z, 0-9 and '-' (at most 63)")
        return name

    @field_validator("listen", "connect")
    @classmethod
    def _address(cls, address: str | None) -> str | None:
        if address is not None:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit() or int(port) > 65535:
                raise ValueError('write "host:port", for example "127.0.0.1:8815"')
        return address


class LabelSection(Section):
    """``[label]``: what the label party predicts, and where it saves the model.

    ``ask`` says which values a split query requests: ``"all"`` values of a party, which reveals
    nothing about labels, or those that the model ``"used"``.  ``"if-needed"`` is ``"used"``, but
    sends no query to a party whose release already contains everything.  ``"auto"`` is ``"all"`` if
    a release contains its values and has at most 256 per column, else ``"used"``; ``"always"``
    means ``"used"``.  ``share_weights = false`` withholds from a party which columns its pilot
    found useful; ``weights_epsilon`` applies randomised response at this level to each label before
    weights are computed.  ``presence = true`` adds a column to the model that says whether a
    feature party knows the person; it needs ``rows = "mine"`` in the job file.
    ``share_trees = true`` shows a feature party its own trees in predictions by score, with leaves
    of at least ``smallest_leaf`` people.
    """

    column: str = ""
    task: Literal["auto", "classify", "regress"] = "auto"
    model: str = "model.opboost"
    continue_from: str | None = None
    ask: Literal["auto", "all", "used", "always", "if-needed"] = "auto"
    share_weights: bool = True
    weights_epsilon: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    presence: bool = False
    share_trees: bool = False
    smallest_leaf: int = Field(default=20, ge=1)


class TlsSection(Section):
    """``[tls]``: a kit's folder (``opboost certs new``), or three files.

    ``encryption`` is the key that opens bundles; by default it is next to the certificate's key.
    """

    kit: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    encryption: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> TlsSection:
        single = [self.ca, self.cert, self.key]
        if any(single) if self.kit is not None else None in single:
            raise ValueError('give kit = "folder", or all of ca, cert and key')
        return self


class AlignSection(Section):
    """``[align]``: a party's IDs, and its limits for private set intersection."""

    id: str | list[str] | None = None
    minimum_rows: int = Field(default=100, ge=1)
    most_rows: int = Field(default=5_000_000, ge=1, le=MAX_POINTS)
    repeats: int = Field(default=20, ge=1)

    def ids(self) -> list[str]:
        """Return the columns that form a row's ID."""
        if self.id is None:
            return []
        return [self.id] if isinstance(self.id, str) else list(self.id)

    def rules(self, normalisation: Normalisation) -> AlignRules:
        """Return the limits, with the normalisation that the job's parties agreed on."""
        return AlignRules(normalisation, self.minimum_rows, self.most_rows, self.repeats)


class SpellingSection(Section):
    """``[align]`` of the job file: how spellings of an ID may differ, and the parts of an ID.

    ``rows = "mine"`` uses all rows of the label party, ``"common"`` those that all parties have.
    """

    trim: bool = True
    case: Literal["keep", "lower", "upper", "fold"] = "fold"
    unicode: Literal["none", "NFC", "NFKC"] = "NFKC"
    parts: list[str] = Field(default_factory=list)
    rows: RowChoice = "common"

    def normalisation(self) -> Normalisation:
        """Return the rules as a value."""
        return Normalisation(self.trim, self.case, self.unicode, tuple(self.parts))


class LedgerSection(Section):
    """``[ledger]``: where releases are recorded, and the most that may be spent on a person."""

    folder: str
    key: str
    cap_attribute: float | None = Field(default=None, gt=0)
    cap_person: float | None = Field(default=None, gt=0)
    new_attributes: list[str] = Field(default_factory=list)
    people: str | None = None
    ids: Literal["canonical", "exact"] | None = None
    changed: Literal["keep", "redraw"] | None = None

    def based(self, base: Path) -> LedgerSection:
        """Return the section with its paths relative to ``base``."""
        paths = {"folder": str(base / self.folder), "key": str(base / self.key)}
        return self.model_copy(update=paths)


class LimitsSection(Section):
    """``[limits]``: the resources that a party lets its peers use."""

    memory_mb: int = Field(default=1024, ge=256)
    columns: int = Field(default=4096, ge=1)
    connect_seconds: float = Field(default=60.0, gt=0)
    answer_seconds: float = Field(default=120.0, ge=10)
    wait_seconds: float = Field(default=7 * 24 * 3600.0, gt=0)


class PeerSection(Section):
    """``[peers.NAME]``: what a party states about another party.

    ``public`` is the file of the peer's public key for bundles.  ``revoked`` means that the label
    party no longer admits this feature party.
    """

    revoked: bool = False
    public: str | None = None
