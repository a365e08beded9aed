"""The ledger that a configuration file names."""

from __future__ import annotations

from pathlib import Path

from opboost.config.columns import read, validated
from opboost.errors import ConfigError
from opboost.ledger.store import Caps, Ledger


def declared_ledger(config: Path) -> Ledger:
    """Open the ledger of a feature party's file; one that is not there yet is not made."""
    section = validated(read(config), config.name).ledger
    if section is None:
        raise ConfigError(f"{config.name} has no [ledger].")
    folder = config.parent / section.folder
    if not (folder / "ledger.sqlite").exists():
        raise ConfigError(f"There is no ledger in {folder} yet.")
    caps = Caps(section.cap_attribute, section.cap_person)
    return Ledger(folder, config.parent / section.key, caps)
