"""A model whose cuts are still codes, on disk with its codebooks until split values arrive."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from opboost.boosting.booster import Booster, Problem, Trained, fit_booster
from opboost.boosting.training_curve import curve
from opboost.columns.codebook import Codebook
from opboost.errors import DataError
from opboost.storage import atomic_files
from opboost.training.feature_matrix import Books
from opboost.training.model_file import load_trained, save_trained


def trained_once(booster: Booster, problem: Problem, folder: Path | None) -> Trained:
    """Train, or load the model in codes that an earlier run saved with its codebooks."""
    if folder is None:
        return fit_booster(booster, problem)
    if (folder / "books.json").exists():
        with suppress(DataError, OSError):  # a damaged model is trained again, identically
            atomic_files.verify_checksum(folder / "books.json", atomic_files.AT_LABEL_PARTY)
            return load_trained(folder, problem.task, problem.X.shape[1])
    shutil.rmtree(folder, ignore_errors=True)
    trained = fit_booster(booster, problem)
    save_trained(trained, folder)
    if (learnt := curve(trained, problem)) is not None:
        learnt.save(folder / "curve.json")
    return trained


def digest_of(trained: Trained) -> str:
    """Return the SHA-256 of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        trained.save(file)
        return hashlib.sha256(file.read_bytes()).hexdigest()


def first_books(books: Books, folder: Path | None) -> Books:
    """Return the codebooks that were first saved with the model in codes."""
    if folder is None:
        return books
    file = folder / "books.json"
    if not file.exists():
        plain = {f: None if b is None else b.values.tolist() for f, b in books.items()}
        atomic_files.write(file, atomic_files.with_checksum(json.dumps(plain).encode()))
    found = atomic_files.read_json(
        file, dict[int, list[int] | None], atomic_files.AT_LABEL_PARTY, checksum=True
    )
    try:
        return {f: None if v is None else Codebook(np.array(v, np.int64)) for f, v in found.items()}
    except (DataError, OverflowError):
        raise atomic_files.damaged(file, atomic_files.AT_LABEL_PARTY) from None
