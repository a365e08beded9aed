"""The settings of training, which estimators and the label party share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opboost.boosting import make_booster
from opboost.boosting.booster import Booster, check_by_party, check_continues
from opboost.training.denoised_rows import Choice
from opboost.training.trained_model import TrainedModel

Structure = Literal["free", "by-party"]
"""Whether a tree may use the columns of several parties, or only those of one."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings of training.

    Attributes:
        booster: The booster: a library on this machine, or a Dask or Spark cluster.
        denoise: As for ``op.OpBoostClassifier``.
        seed: The seed of booster and denoiser; None for a new one each time.
        early_stopping: Training ends after this many rounds without a better held-out loss.
        verbose: Above zero, progress goes to stderr.
        name: The name at the start of each progress line.
        continue_from: A model of the same columns to which trees are added, or None.
        structure: ``"by-party"`` restricts each tree to the columns of one party.
    """

    booster: Booster
    denoise: Choice = "auto"
    seed: int | None = None
    early_stopping: int | None = None
    verbose: int = 0
    name: str = "opboost"
    continue_from: TrainedModel | None = None
    structure: Structure = "free"

    def __post_init__(self) -> None:
        if self.structure == "by-party":
            check_by_party(self.booster)
        if self.continue_from is not None:
            check_continues(self.booster, self.continue_from.trained)

    @classmethod
    def of(
        cls,
        booster: str | Booster,
        booster_params: Mapping[str, Any] | None,
        denoise: Choice,
        random_state: Any,
        **more: Any,
    ) -> TrainingSettings:
        """Build the settings from the parameters that estimators and the label party accept."""
        seed = None
        if random_state is not None:
            seed = int(_generator(random_state).randint(2**31 - 1))
        return cls(make_booster(booster, booster_params), denoise, seed, **more)

    def say(self, words: str) -> None:
        """Print how far training is, if ``verbose`` asks for it."""
        if self.verbose:
            print(f"{self.name}: {words}", file=sys.stderr)

    def say_not_denoised(self, why: str) -> None:
        """Print why rows are not denoised, unless denoising was turned off."""
        if self.denoise is not False:
            print(f"{self.name}: denoising is off, because {why}.", file=sys.stderr)


def _generator(random_state: Any) -> Any:
    """Return numpy's generator for a ``random_state``, as scikit-learn understands it."""
    if type(random_state) is int:
        return np.random.RandomState(random_state)
    from sklearn.utils import check_random_state

    return check_random_state(random_state)
