"""The sections of a file that are about parties rather than columns."""

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
    """A table of a TOML file: unknown settings are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TableSection(Section):
    """``[table]``: columns that are not private."""

    public: list[str] = Field(default_factory=list)
    drop: list[str] = Field(default_factory=list)


class DataSection(Section):
    """``[data]``: how CSV files of the table are written."""

    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."

    @model_validator(mode="after")
    def _fits(self) -> DataSection:
        self.form()
        return self

    def form(self) -> CsvFormat:
        """As a value."""
        return CsvFormat(self.separator, self.encoding, self.decimal)


Memory = Literal["internal", "external"]
"""Where rows are while a model is trained: in memory, or in files that are read in blocks."""


def unfit_for(memory: Memory, booster: object) -> str | None:
    """Why a booster cannot train from disk; None if it can, or need not."""
    if memory == "internal":
        return None
    if memory != "external":
        return f"memory is 'internal' or 'external'; got {memory!r}"
    if isinstance(booster, str) and booster != "xgboost":
        return f"memory = 'external' needs booster 'xgboost', which reads blocks; got {booster!r}"
    return None


ClusterEngine = Literal["dask", "spark"]
"""Clusters that train."""

_ADDRESSES = {
    "dask": (re.compile(r"(tcp|tls)://[^/\s]+:\d+"), '"tcp://scheduler:8786"'),
    "spark": (
        re.compile(r"spark://\S+:\d+|local(\[\S+\])?|yarn|k8s://\S+"),
        '"spark://master:7077"',
    ),
}


class BoosterSection(Section):
    """``[booster]``: which library trains, its own parameters, and where rows are meanwhile.

    ``structure = "by-party"`` keeps each tree to the columns of one party.
    ``engine`` is who trains: this machine, or the cluster at ``address``.  Executors of Spark read
    rows from ``folder``; ``workers`` of its tasks train together.
    """

    kind: Literal["xgboost", "lightgbm", "gbdt", "hist-gbdt"] = "xgboost"
    seed: int | None = None
    denoise: Literal["auto"] | bool = "auto"
    memory: Memory = "internal"
    structure: Literal["free", "by-party"] = "free"
    engine: Literal["local"] | ClusterEngine = "local"
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
                "cannot keep a tree to the columns of one party"
            )
        return self

    def _unfit_cluster(self) -> str | None:
        """Why these settings name no cluster that trains; None if they do, or need not."""
        engine, address = self.engine, self.address
        if engine == "local":
            given = [n for n in ("address", "folder", "workers") if getattr(self, n) is not None]
            named = f"{given[0]} has a meaning" if given else None
            return (
                named
                and f"{named} with engine = 'dask' or 'spark' only; write one, or leave it out"
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
"""The share of rows that a training holds out for its score."""

MAX_HELD_OUT = 0.5
"""Holding out more would score a model of few rows."""


class TrainSection(Section):
    """``[train]``: the share of rows that are held out to score a training; 0 for no score.

    With ``early_stopping`` as many rows watch the training, which ends when so many rounds have
    not made it better on them.
    """

    held_out: float = Field(default=DEFAULT_HELD_OUT, ge=0, le=MAX_HELD_OUT, allow_inf_nan=False)
    early_stopping: int | None = Field(default=None, ge=1)


MAX_PURPOSE_LETTERS = 2000
"""A longer purpose would not fit on a card's page."""


class CardSection(Section):
    """``[card]``: what a party's officer states about the model."""

    purpose: str = Field(default="", max_length=MAX_PURPOSE_LETTERS)


class PartySection(Section):
    """``[party]``: who this is, what it brings, and where it keeps its side of a job.

    The label party ``listen``s, a feature party ``connect``s.  ``units``, ``names`` and
    ``codebook`` are a feature party's choice of what the label party learns.
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
            raise ValueError("a party's name is made of a-z, 0-9 and '-' (at most 63)")
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
    """``[label]``: what the label party predicts, and where its model goes.

    ``ask`` says which values a split query asks for: ``"all"`` of a party's, which reveals nothing
    about labels, those that the model ``"used"``, or those only ``"if-needed"``: no query to a
    party whose release already tells everything.  ``"auto"`` is ``"all"`` where a release tells its
    values and has at most 256 per column, else ``"used"``; ``"always"`` means ``"used"``.
    ``share_weights = false`` tells no party which columns its pilot found useful, and
    ``weights_epsilon`` redraws each label by randomised response at this level before that.
    ``presence = true`` makes it a column of the model whether a feature party knows the person; it
    needs ``rows = "mine"`` in the job file.
    ``share_trees = true`` shows a feature party its own trees in predictions by score, with leaves
    of ``smallest_leaf`` people at least.
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

    ``encryption`` is the key that opens bundles; by default it lies beside the certificate's key.
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
    """``[align]``: a party's IDs, and its limits when rows are matched privately."""

    id: str | list[str] | None = None
    minimum_rows: int = Field(default=100, ge=1)
    most_rows: int = Field(default=5_000_000, ge=1, le=MAX_POINTS)
    repeats: int = Field(default=20, ge=1)

    def ids(self) -> list[str]:
        """The columns that make up a row's ID."""
        if self.id is None:
            return []
        return [self.id] if isinstance(self.id, str) else list(self.id)

    def rules(self, normalisation: Normalisation) -> AlignRules:
        """The limits, with the normalisation that the job's parties agreed on."""
        return AlignRules(normalisation, self.minimum_rows, self.most_rows, self.repeats)


class SpellingSection(Section):
    """``[align]`` of the job file: what two spellings of an ID may differ in, and its parts.

    ``rows = "mine"`` is about all rows of the label party, ``"common"`` about those of all parties.
    """

    trim: bool = True
    case: Literal["keep", "lower", "upper", "fold"] = "fold"
    unicode: Literal["none", "NFC", "NFKC"] = "NFKC"
    parts: list[str] = Field(default_factory=list)
    rows: RowChoice = "common"

    def normalisation(self) -> Normalisation:
        """As a value."""
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
        """The same with paths that start at ``base``."""
        paths = {"folder": str(base / self.folder), "key": str(base / self.key)}
        return self.model_copy(update=paths)


class LimitsSection(Section):
    """``[limits]``: what a party lets its peers use up."""

    memory_mb: int = Field(default=1024, ge=256)
    columns: int = Field(default=4096, ge=1)
    connect_seconds: float = Field(default=60.0, gt=0)
    answer_seconds: float = Field(default=120.0, ge=10)
    wait_seconds: float = Field(default=7 * 24 * 3600.0, gt=0)


class PeerSection(Section):
    """``[peers.NAME]``: what a party says of another.

    ``public`` is where the peer's public key for bundles lies; ``revoked`` is the label party's
    word for a feature party that is turned away.
    """

    revoked: bool = False
    public: str | None = None
