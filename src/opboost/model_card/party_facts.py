"""What a party's file adds to a model's card: names, purpose, the job, the ledger and digests.

A file that does not belong to the model is refused, so that no card mixes two jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opboost.columns.private_column import PrivateColumn
from opboost.config import load as load_plan
from opboost.config.columns_file import ColumnsConfig, validated
from opboost.config.job_file import (
    Job,
    LabelConfig,
    is_label_party,
    load_feature,
    load_label,
)
from opboost.config.toml_files import read
from opboost.errors import ConfigError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.estimators import load as load_model
from opboost.ledger.ledger_summary import summary
from opboost.ledger.open_ledger import declared_ledger, declared_section
from opboost.ledger.store import CHAIN_FILE
from opboost.model_card.card import Card, CardDigest, JobFacts, LedgerFacts
from opboost.model_card.model_facts import card_of_model, file_digest
from opboost.transport.label.job_folder import is_done, jobs
from opboost.transport.label.label_job import read_manifest


def card_of(model: Path, config: Path | None, version: str, purpose: str = "") -> Card:
    """Return the card of a saved model, with what a party's file adds to it.

    ``purpose`` overrides ``[card] purpose`` of the file.
    """
    if config is None:
        return card_of_model(load_model(model), model, version, purpose)
    settings = validated(read(config), config.name)
    estimator = load_model(model)
    made = card_of_model(estimator, model, version, purpose or settings.card.purpose)
    if settings.party is None:
        _check_columns(estimator, model, config, "", load_plan(config).private)
        made = _with_ledger(made, settings, config)
    elif is_label_party(config):
        made = _of_label_party(made, model, config)
    else:
        found = load_feature(config)
        made = _named(made, found.job, model, config)
        _check_columns(estimator, model, config, found.party.name, found.plan.private)
        made = _with_ledger(made, settings, config)
    return replace(made, digests=(*made.digests, CardDigest(config.name, file_digest(config))))


def _of_label_party(card: Card, model: Path, config: Path) -> Card:
    found = load_label(config)
    named = _named(card, found.job, model, config)
    if not card.label:
        named = replace(named, label=found.label.column)
    return replace(named, job=_job_facts(found, model, config))


def _named(card: Card, job: Job, model: Path, config: Path) -> Card:
    """Return the card with the label party's name; refuse it if other parties trained the model."""
    parties = [p.name for p in card.parties if p.role == "feature party"]
    unknown = [name for name in parties if name not in job.feature_parties]
    if unknown or not parties:
        theirs = (
            f"holds columns of {', '.join(parties)}"
            if parties
            else "names no feature party (no job made it, or version 0.1 did)"
        )
        raise ConfigError(
            f"{model.name} {theirs}, and the job of {config.name} has the feature parties "
            f"{', '.join(job.feature_parties)}. Give the file of a party that took part, or leave "
            "-c out."
        )
    return replace(
        card,
        recipient=f"{job.label_party}, the label party",
        parties=tuple(
            replace(p, name=job.label_party) if p.role == "label party" else p for p in card.parties
        ),
        digests=(*card.digests, CardDigest(f"job file of {job.name}", job.hash.hex())),
    )


def _check_columns(
    estimator: OpBoostClassifier | OpBoostRegressor,
    model: Path,
    config: Path,
    party: str,
    declared: Sequence[PrivateColumn],
) -> None:
    """Refuse a file whose columns are released differently than for the model.

    A party may hide names and units, so its columns are compared by their order and mechanisms.
    """
    owners = estimator.origins_.parties
    used = [c for c in estimator.trained_model_.layout.private if owners.get(c.name, "") == party]
    whose = f"of party {party!r} " if party else ""
    if not used and declared:
        raise ConfigError(
            f"{model.name} has none of the private columns {whose}that {config.name} declares. "
            "Give the file with which the model was trained, or leave -c out."
        )
    for theirs, ours in zip(used, declared, strict=False):
        if theirs.mechanism != ours.mechanism:
            raise ConfigError(
                f"{config.name} releases column {str(ours.name)!r} through {ours.mechanism!r}, and "
                f"{model.name} was trained on {theirs.mechanism!r}. Give the file with which the "
                "model was trained, or leave -c out."
            )
    if len(used) != len(declared):
        raise ConfigError(
            f"{config.name} declares {len(declared)} private columns, and {model.name} was trained "
            f"on {len(used)} {whose}. Give the file with which the model was trained, or leave -c "
            "out."
        )


def _job_facts(config: LabelConfig, model: Path, file: Path) -> JobFacts | None:
    """Return the finished job that wrote the model; None if the state folder does not show it.

    OpBoost before 0.2 recorded no digest of the model, so its jobs cannot be told apart.
    """
    digest, known = file_digest(model), 0
    for folder in reversed(jobs(config.state)):
        if not is_done(folder):
            continue
        manifest = read_manifest(folder)
        if manifest.get("model_sha256") == digest:
            return JobFacts(manifest["job"], manifest["finished"], manifest["rows"])
        known += "model_sha256" in manifest
    if known:
        raise ConfigError(
            f"No finished job of {file.name} made {model.name}: the digests differ. Give the model "
            f"that the job wrote, {config.model.name}, or leave -c out."
        )
    return None


def _with_ledger(card: Card, settings: ColumnsConfig, config: Path) -> Card:
    """Return the card with the total of the party's ledger, if there is one yet."""
    if settings.ledger is None:
        return card
    if not (Path(declared_section(config).folder) / CHAIN_FILE).exists():
        return card
    with declared_ledger(config) as ledger:
        spent, head = summary(ledger)["spent"][-1], ledger.head()
    facts = LedgerFacts(
        spent["most"], spent["cap"], spent["people"], head.number, head.at, head.hash.hex()
    )
    return replace(
        card,
        ledger=facts,
        digests=(*card.digests, CardDigest(f"ledger, entry {head.number}", facts.hash)),
    )
