"""The ledger that a configuration file names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opboost.columns.row_ids import Spelling, id_bytes
from opboost.config.columns_file import validated
from opboost.config.sections import LedgerSection
from opboost.config.toml_files import read
from opboost.errors import ConfigError, DataError
from opboost.ledger.chain_witness import missing
from opboost.ledger.store import CHAIN_FILE, Caps, Ledger


def open_ledger(section: LedgerSection, *, new: bool = False) -> Ledger:
    """Open the ledger of a ``[ledger]`` section whose paths are resolved already.

    It is created if neither it nor its key exists; ``new`` creates an empty one even if the key
    exists.
    """
    return Ledger(
        Path(section.folder),
        Path(section.key),
        Caps(section.cap_attribute, section.cap_person),
        new=new,
        ids=section.ids,
        changed=section.changed,
    )


def declared_ledger(config: Path, *, renewing: bool = False) -> Ledger:
    """Open the ledger of a feature party's file, but never create one.

    With ``renewing``, the file's ``changed`` may differ from the ledger's: a new period can
    change it.
    """
    section = declared_section(config)
    if renewing:
        section = section.model_copy(update={"changed": None})
    folder, key = Path(section.folder), Path(section.key)
    if not (folder / CHAIN_FILE).exists():
        if key.exists():
            raise missing(folder, key)
        raise ConfigError(f"There is no ledger in {folder} yet.")
    return open_ledger(section)


def declared_section(config: Path) -> LedgerSection:
    """Return the ``[ledger]`` of a feature party's file, with paths relative to the file."""
    section = validated(read(config), config.name).ledger
    if section is None:
        raise ConfigError(f"{config.name} has no [ledger].")
    return section.based(config.parent)


@dataclass(frozen=True, slots=True)
class Person:
    """A person, identified by an ID that somebody typed: its parts by column, and its bytes."""

    parts: dict[str, str]
    id: bytes

    @property
    def words(self) -> str:
        """The ID as readable text."""
        return ", ".join(f"{name} = {part}" for name, part in self.parts.items())


def declared_person(config: Path, parts: Sequence[str], spelling: Spelling) -> Person:
    """Return the person with these ID parts; ``[align] id`` of the file names their columns."""
    names = validated(read(config), config.name).align.ids()
    if not names:
        raise ConfigError(
            f"{config.name} does not say which columns are a person's ID. Add [align] id to it."
        )
    if len(parts) != len(names):
        raise ConfigError(
            f"An ID has {len(names)} parts ({', '.join(names)}) by [align] id of {config.name}; "
            f"--person was given {len(parts)} times. Give it once for each part, in this order."
        )
    return Person(dict(zip(names, parts, strict=True)), person_bytes(parts, names, spelling))


def person_bytes(parts: Sequence[str], names: Sequence[str], spelling: Spelling) -> bytes:
    """Return the bytes of an ID that somebody typed, spelt as in the ledger."""
    try:
        (who,) = id_bytes([[part] for part in parts], names, spelling=spelling)
    except DataError:
        raise ConfigError(
            "An ID is text or a whole number: not empty, without spaces around it, and not a word "
            f"for a missing value; --person got {', '.join(map(repr, parts))}. Give the ID as "
            f"column {' and '.join(map(repr, names))} of the table holds it."
        ) from None
    return who
