"""The tutorial's files: a folder for the bank, one for the shop, and a page of commands."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from opboost.demo.made_up_people import as_csv, organisations
from opboost.errors import ConfigError
from opboost.storage import atomic_files


def write_tutorial(folder: Path) -> list[Path]:
    """Write the tutorial's tables and TOML files into an empty or new folder; return the paths."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file. Name a folder that is empty or does not exist yet.")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(
            f"{folder} is not empty. Name a folder that is empty or does not exist yet."
        )
    written = files("opboost.demo") / "tutorial"
    text = {entry.name: entry.read_bytes() for entry in written.iterdir() if entry.is_file()}
    made = organisations()
    contents = {
        "README.md": text["README.md"],
        "job.toml": text["job.toml"],
        "bank/job.toml": text["job.toml"],
        "bank/bank.toml": text["bank.toml"],
        "bank/bank.csv": as_csv(made.tables["bank"]),
        "bank/new-people.csv": as_csv(made.new),
        "shop/job.toml": text["job.toml"],
        "shop/shop.toml": text["shop.toml"],
        "shop/shop.csv": as_csv(made.tables["shop"]),
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        atomic_files.write(folder / name, content)
    return [folder / name for name in contents]
