"""Save a whole estimator in one file: the stock model and a small JSON file, zipped; no pickle."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from opboost.boosting import Trained
from opboost.boosting.training_curve import Staged
from opboost.budgets.release_accounting import LOADED
from opboost.budgets.release_terms import counted_from_list
from opboost.columns.column_specs import column_from_dict
from opboost.columns.private_column import PrivateColumn
from opboost.errors import DataError, MissingPackageError, in_words
from opboost.estimators.boosted import OpBoostClassifier, OpBoostRegressor
from opboost.estimators.boosted_base import fitted
from opboost.estimators.desensitizer import Desensitizer
from opboost.grid import NumericMapping
from opboost.randomness.streams import SecureRng
from opboost.runtime.extras import needs_extra
from opboost.storage.archives import read_archive, read_array, read_inner_archive
from opboost.training.column_origins import Origins
from opboost.training.feature_matrix import Layout, OwnColumn
from opboost.training.held_out_score import HeldOutScore
from opboost.training.model_file import (
    MODULES,
    POSTERIOR,
    SCORES,
    VERSION,
    ModelTerms,
    save_model_file,
)
from opboost.training.posterior_prediction import Posterior
from opboost.training.score_by_party import ScoreParts
from opboost.training.trained_model import TrainedModel


def save(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator; the file appears only once it is complete."""
    release: Desensitizer = estimator.desensitizer_
    about = ModelTerms(
        type(estimator).__name__,
        release._plan.names,
        hasattr(estimator, "feature_names_in_"),
        str(estimator.guarantee_),
        estimator.origins_,
        release.account.counted(),
        estimator.label_column_,
    )
    save_model_file(estimator.trained_model_, about, Path(path))


def load(path: str | Path) -> OpBoostClassifier | OpBoostRegressor:
    """Load a saved estimator, with its guarantee.

    >>> import opboost as op, tempfile, pathlib
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
    >>> reg = op.OpBoostRegressor(m, bounds={"bmi": (15, 45)}, booster="gbdt").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "model.opboost"
    ...     reg.save(file)
    ...     again = op.load(file)
    >>> bool((again.predict(X) == reg.predict(X)).all())
    True
    """
    if not Path(path).exists():
        raise DataError(
            f"The model {path} does not exist",
            hint="Give the path of a file that `save` or `opboost train` wrote.",
        )
    try:
        members = read_archive(Path(path))
        description = json.loads(members["estimator.json"])
        if description["version"] not in (1, VERSION):
            raise DataError(
                f"{Path(path).name} is of version {description['version']}; "
                f"this release reads versions 1 and {VERSION}",
                hint="Load it with the release that saved it.",
            )
        module, name = MODULES[description["model"]]
        return _rebuilt(description, module, name, members)
    except (DataError, MissingPackageError):
        raise
    except Exception as e:  # zip, numpy and the boosters may raise anything for a bad file
        why = f"{type(e).__name__}: {in_words(e)}"
        raise DataError(f"{Path(path).name} is not a saved estimator ({why})") from None


MAX_CLASS_BYTES = 2**26
"""The most bytes for all class names; NumPy gives each as much memory as the longest."""


def _rebuilt(
    description: dict[str, Any], module: str, name: str, members: Mapping[str, bytes]
) -> OpBoostClassifier | OpBoostRegressor:
    kinds = {"OpBoostClassifier": OpBoostClassifier, "OpBoostRegressor": OpBoostRegressor}
    private = tuple(column_from_dict(spec) for spec in description["private"])
    own = tuple(
        OwnColumn(c["name"], None if c["categories"] is None else tuple(c["categories"]))
        for c in description["own"]
    )
    layout = Layout(private, own, _parties(description, len(private)))
    mechanisms = {c.name: c.mechanism for c in private}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(members[name])
        with needs_extra("boost", "This model"):
            kind = getattr(import_module(module), description["model"])
            trained = kind.load(file, description["task"], len(layout.names()))
    labels = None if description["classes"] is None else _classes(**description["classes"])
    posterior = None
    if POSTERIOR in members:
        found = read_inner_archive(members[POSTERIOR])
        arrays = {key.removesuffix(".npy"): read_array(data) for key, data in found.items()}
        posterior = Posterior.of_arrays(layout, arrays)
    scores = None
    if SCORES in members:
        scores = ScoreParts.of_plain(json.loads(members[SCORES]))
    release = Desensitizer.of_columns(
        private,
        tuple(description["columns"]),
        named=description["named"],
        rng=SecureRng(),
        released=counted_from_list(_released(description)),
        note=LOADED,
    )
    estimator = kinds[description["class"]](mechanisms)
    label, kept = description.get("label"), description.get("score")
    estimator.label_column_ = label if isinstance(label, str) else None
    score = None if kept is None else HeldOutScore.from_dict(kept)
    model = TrainedModel(
        layout,
        trained,
        posterior,
        labels,
        score=score,
        scores=scores,
        own_rounds=_own_rounds(description, trained),
    )
    return fitted(estimator, model, release, _origins(description, private))


def _origins(description: dict[str, Any], private: tuple[PrivateColumn, ...]) -> Origins:
    """Return which party each column comes from.

    An older file does not record this.  Then only the columns whose party withheld its units are
    marked.
    """
    if "origins" in description:
        return Origins.from_dict(description["origins"])
    return Origins(withheld=frozenset(c.name for c in private if _counts_cells(c.mapping)))


def _counts_cells(mapping: object) -> bool:
    """Return whether a column's "raw" values are only cell numbers.

    This is so if the party withholds its units: the bounds then follow from the grid.
    """
    if not isinstance(mapping, NumericMapping):
        return False
    grid = mapping.domain
    return mapping == NumericMapping(grid, (grid.L - 0.5, grid.R + 0.5))


def _parties(description: dict[str, Any], columns: int) -> tuple[str, ...]:
    """Return the party of each private column; empty if a tree may use several parties' columns."""
    found = tuple(description.get("parties", ()))
    if found and (len(found) != columns or not all(isinstance(name, str) for name in found)):
        raise DataError("The parties of the saved estimator do not fit its columns")
    return found


def _own_rounds(description: dict[str, Any], trained: Trained) -> int:
    """Return how many of the first rounds use only the label party's own columns."""
    found = description.get("own_rounds", 0)
    rounds = trained.rounds if isinstance(trained, Staged) else 0
    if type(found) is not int or not 0 <= found <= rounds:
        raise DataError("The rounds of the saved estimator do not fit its model")
    return found


def _released(description: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the counted releases that a file states, each with its terms.

    A file of version 1 states only how often the estimator itself released the rows.
    """
    if description["version"] == VERSION:
        found: list[dict[str, Any]] = description["released"]
        return found
    return [
        {
            "times": description["releases"],
            "columns": description["private"],
            "columns_per_row": None,
            "caveats": description["caveats"],
            "lacking": "seeded" if description["seeded"] else "",
        }
    ]


def _classes(dtype: str, values: list[Any]) -> np.ndarray[Any, Any]:
    """Return the classes as an array of the stated type, unless it would take too much memory.

    ``training.model_file`` writes this description of the classes.
    """
    kind = np.dtype(dtype)
    if any(isinstance(value, list | dict) for value in values):
        raise DataError("The classes of an estimator are a plain list")
    if kind.itemsize * len(values) > MAX_CLASS_BYTES:
        raise DataError("The classes of an estimator take too much memory in the type it states")
    return np.array(values, dtype=kind)
