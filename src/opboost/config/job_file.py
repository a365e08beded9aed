"""The files of feature and label parties, and the job file that they agree on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from opboost.config.columns_file import ColumnsConfig, planned, validated
from opboost.config.csv_format import PLAIN_CSV, CsvFormat
from opboost.config.plan_limits import check_job_record
from opboost.config.sections import (
    AlignSection,
    BoosterSection,
    LabelSection,
    LedgerSection,
    LimitsSection,
    PartySection,
    PeerSection,
    Section,
    SpellingSection,
    TrainSection,
)
from opboost.config.table_plan import Plan
from opboost.config.toml_files import first_problem, read, toml
from opboost.errors import ConfigError, ParameterError
from opboost.protocol.messages import PARTY_NAME
from opboost.psi.align_rules import AlignRules, RowChoice
from opboost.psi.row_keys import Normalisation
from opboost.sources.table_address import TableAddress, table_address

Purpose = Literal["train", "predict"]
"""What a job produces from the received columns: a model, or predictions by an existing one."""


class _Job(Section):
    name: str
    label_party: str
    feature_parties: list[str] = Field(min_length=1)
    align: Literal["psi", "given"] = "psi"
    purpose: Purpose = "train"
    record: float | None = Field(default=None, gt=0, allow_inf_nan=False, strict=True)


class _JobFile(Section):
    job: _Job
    align: SpellingSection = Field(default_factory=SpellingSection)


@dataclass(frozen=True, slots=True)
class Job:
    """What all parties agree on; ``hash`` is the hash of the file's bytes."""

    name: str
    label_party: str
    feature_parties: tuple[str, ...]
    hash: bytes
    align: Literal["psi", "given"]
    normalisation: Normalisation
    purpose: Purpose
    record: float | None = None
    """The most that all feature parties together reveal about one person; None for no limit."""
    rows: RowChoice = "common"
    """The rows of the job: those common to all parties, or all of the label party's."""

    def alignment(self, section: AlignSection) -> AlignRules | Literal["given"]:
        """Return how rows are matched, within one party's limits."""
        return "given" if self.align == "given" else section.rules(self.normalisation)


@dataclass(frozen=True, slots=True)
class Tls:
    """The PEM files of a party: the authority, its certificate and key, and keys for bundles."""

    ca: Path
    cert: Path
    key: Path
    encryption: Path
    public: dict[str, Path]
    """The public key files of some peers; all others are next to the kit, as ``NAME.public``."""

    def public_of(self, party: str) -> Path:
        """Return the path of a party's public key."""
        return self.public.get(party, self.key.resolve().parent.parent / f"{party}.public")


@dataclass(frozen=True, slots=True)
class FeatureConfig:
    """Everything that a feature party's file says."""

    plan: Plan
    job: Job
    party: PartySection
    table: TableAddress
    state: Path
    tls: Tls | None
    align: AlignSection
    ledger: LedgerSection
    """Its paths are relative to the file's folder."""
    limits: LimitsSection


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """Everything that the label party's file says."""

    job: Job
    party: PartySection
    label: LabelSection
    """Empty in a prediction job, whose file does not need the section."""
    table: TableAddress
    state: Path
    model: Path
    continue_from: Path | None
    """A model to add trees to."""
    tls: Tls | None
    align: AlignSection
    booster: BoosterSection
    drop: tuple[str, ...]
    peers: dict[str, PeerSection]
    limits: LimitsSection
    train: TrainSection = field(default_factory=TrainSection)
    data: CsvFormat = PLAIN_CSV


def load_job(path: Path) -> Job:
    """Return the agreed job file."""
    text = read(path)
    try:
        whole = _JobFile.model_validate(toml(text, path.name))
    except ValidationError as error:
        sections: dict[str, type[Section]] = {"job": _Job, "align": SpellingSection}
        raise ConfigError(first_problem(error, path.name, _JobFile, sections)) from None
    job = whole.job
    names = [job.label_party, *job.feature_parties]
    for name in names:
        if not PARTY_NAME.fullmatch(name):
            raise ConfigError(
                f"{path.name}: a party's name consists of a-z, 0-9 and '-' (at most 63); "
                f"got {name!r}."
            )
    if len(set(names)) < len(names):
        raise ConfigError(f"{path.name} names a party twice.")
    digest = hashlib.sha256(path.read_bytes()).digest()
    try:
        normalisation = whole.align.normalisation()
    except ParameterError as error:
        raise ConfigError(f"{path.name}, [align]: {error}") from None
    return Job(
        job.name,
        job.label_party,
        tuple(job.feature_parties),
        digest,
        job.align,
        normalisation,
        job.purpose,
        job.record,
        whole.align.rows,
    )


def state_folder(party: PartySection, base: Path) -> Path:
    """Return the folder of a party's job state; ``base`` is the folder of its file."""
    return base / (party.state or f"state-{party.name}")


def is_label_party(path: Path) -> bool:
    """Return whether a file belongs to its job's label party."""
    party, job = _party(validated(read(path), path.name), path)
    return party.name == job.label_party


def load_feature(path: Path) -> FeatureConfig:
    """Return the content of a feature party's file, with paths relative to its folder."""
    config = validated(read(path), path.name)
    _check_role(config, path, label=False)
    _check_sections(config, path, "a feature party", ("label", "booster", "train"))
    base = path.parent
    party, job = _party(config, path)
    if party.name not in job.feature_parties:
        raise ConfigError(
            f"{path.name}: party {party.name!r} is not a feature party of job {job.name!r}; "
            f"those are {', '.join(job.feature_parties)}. Correct the name here, or in "
            f"{party.job} at every party."
        )
    if job.purpose == "predict" and party.codebook == "cuts":
        raise ConfigError(
            f'{path.name}: codebook = "cuts" sends codes without values, but job {job.name!r} is '
            'a prediction, which needs them. Write codebook = "full" under [party]: it reveals '
            "nothing that the noise does not cover."
        )
    if config.ledger is None:
        raise ConfigError(
            f"{path.name} has no [ledger], which records every release. Add [ledger] with "
            'folder = "ledger" and key = "keys/ledger.key".'
        )
    for name, peer in config.peers.items():
        if name != job.label_party or peer.revoked:
            raise ConfigError(
                f"{path.name}: [peers.{name}]{' revoked' if peer.revoked else ''} has no meaning "
                f"for a feature party; it may say where the public key of {job.label_party!r} is."
            )
    plan = planned(config, path.name)
    check_job_record(plan, job.record, party.name)
    ids = config.align.ids()
    if public := [name for name in plan.public if name not in ids]:  # IDs are not sent anyway
        raise ConfigError(
            f"{path.name}: a feature party sends only desensitised columns; "
            f"{', '.join(public)} cannot be public. Declare them, or drop them."
        )
    return FeatureConfig(
        plan,
        job,
        party,
        table_address(party.table, base),
        state_folder(party, base),
        _tls(config, base),
        config.align,
        config.ledger.based(base),
        config.limits,
    )


def load_label(path: Path) -> LabelConfig:
    """Return the content of the label party's file, with paths relative to its folder."""
    config = validated(read(path), path.name)
    foreign = ("ledger", "grid", "mechanism", "budget")
    _check_role(config, path, label=True)
    _check_sections(config, path, "the label party", foreign)
    base = path.parent
    party, job = _party(config, path)
    if party.name != job.label_party:
        raise ConfigError(
            f"{path.name}: party {party.name!r} is not the label party of job {job.name!r}; "
            f"that is {job.label_party!r}. Correct the name here, or in {party.job} at every party."
        )
    if (config.label is None or not config.label.column) and job.purpose == "train":
        raise ConfigError(f'{path.name} names no label. Add [label] with column = "...".')
    if config.columns:
        raise ConfigError(
            f"{path.name}: the label party's own columns stay with it and need no [columns]."
        )
    for name in config.peers:
        if name not in job.feature_parties:
            raise ConfigError(f"{path.name}: [peers.{name}] is not a feature party of the job.")
    label = config.label or LabelSection()
    return LabelConfig(
        job,
        party,
        label,
        table_address(party.table, base),
        state_folder(party, base),
        base / label.model,
        None if label.continue_from is None else base / label.continue_from,
        _tls(config, base),
        config.align,
        config.booster,
        tuple(config.table.drop),
        dict(config.peers),
        config.limits,
        config.train,
        config.data.form(),
    )


def _check_role(config: ColumnsConfig, path: Path, *, label: bool) -> None:
    """Refuse the file of a party in the other role, and name the command for it."""
    if config.party is None:
        return
    name, job = config.party.name, load_job(path.parent / config.party.job)
    if label and name in job.feature_parties:
        raise ConfigError(
            f"{path.name} is the file of {name!r}, a feature party of job {job.name!r}. Run: "
            f"opboost join -c {path.name}. The label party, {job.label_party!r}, serves and trains."
        )
    if not label and name == job.label_party:
        verb = "serve" if job.purpose == "train" else "predict MODEL TABLE --with-peers"
        raise ConfigError(
            f"{path.name} is the file of {name!r}, the label party of job {job.name!r}. Run: "
            f"opboost {verb} -c {path.name}. Parties that join: {', '.join(job.feature_parties)}."
        )


def _check_sections(config: ColumnsConfig, path: Path, kind: str, foreign: tuple[str, ...]) -> None:
    for name in foreign:
        if name in config.model_fields_set:
            raise ConfigError(f"{path.name}: [{name}] has no meaning for {kind}. Leave it out.")


def _party(config: ColumnsConfig, path: Path) -> tuple[PartySection, Job]:
    if config.party is None:
        raise ConfigError(
            f"{path.name} has no [party]. Add [party] with name, job (the agreed file) and table."
        )
    if not config.align.ids():
        raise ConfigError(
            f'{path.name} has no row ID. Add [align] with id = "customer_id", which matches rows.'
        )
    job = load_job(path.parent / config.party.job)
    if job.align == "psi" or job.normalisation.parts:
        try:
            job.normalisation.check_columns(config.align.ids())
        except ParameterError as error:
            raise ConfigError(f"{path.name}: {error}") from None
    return config.party, job


def _tls(config: ColumnsConfig, base: Path) -> Tls | None:
    section = config.tls
    if section is None:
        return None
    if section.kit is not None:
        kit = base / section.kit
        ca, cert, key = (kit / name for name in ("ca.pem", "cert.pem", "key.pem"))
    else:
        ca, cert, key = (base / str(file) for file in (section.ca, section.cert, section.key))
    own = base / section.encryption if section.encryption else key.parent / "encryption.key"
    public = {name: base / p.public for name, p in config.peers.items() if p.public}
    return Tls(ca, cert, key, own, public)
