"""Checks before a label party's job begins: disk, label and booster."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError, OpBoostError
from opboost.runtime.loading import loading
from opboost.transport.label.label_job import Data, active_parties, label_party

MIN_FREE_BYTES_PER_ROW = 64
"""Free bytes that a job needs per row for received columns, checkpoints and the model."""


def check_label_side(config: LabelConfig, data: Data) -> None:
    """Refuse a job that could not end in a model, before any party spends privacy on it."""
    needed = MIN_FREE_BYTES_PER_ROW * len(data.ids)
    check_folder(config.state, "the state folder ([party] state)", needed)
    check_folder(config.model.parent, "the folder of the model ([label] model)", needed)
    if config.model.is_dir():
        raise ConfigError(
            f"{config.model} is a folder, but the model is written there as a file. Give another "
            "name as model under [label]."
        )
    with loading:  # of boosters
        party = label_party(config, data)
        party.check_parties(active_parties(config))
        party.check_training()


def check_folder(folder: Path, what: str, needed: int) -> None:
    """Refuse a folder that cannot be written or made, or has fewer than ``needed`` bytes free."""
    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not place.is_dir():
        raise ConfigError(f"{folder} cannot be {what}: {place} is a file. Name a folder.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{folder} cannot be {what}: {place} is not writable. Run as its owner, or: "
            f"chmod u+wx {place}"
        )
    free = shutil.disk_usage(place).free
    if free < needed:
        raise OpBoostError(
            f"The disk of {what} has {free / 1e6:,.1f} MB free in {place}, and a table of this "
            f"size needs {needed / 1e6:,.1f} MB at least. Free some space there."
        )
