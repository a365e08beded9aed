"""The held-out score of a job's model, kept beside the model in codes for a restart."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from opboost.boosting.training_curve import Curve
from opboost.errors import DataError
from opboost.storage import atomic_files
from opboost.training.held_out_score import HeldOutScore
from opboost.training.score_training import Scored


def scored_once(score: Callable[[], Scored], held_out: float, folder: Path | None) -> HeldOutScore:
    """Score a model, or load the score that an earlier run saved for the same share.

    The held-out loss per round is added to the training curve, which the job page draws.
    """
    if folder is None:
        return score().score
    file = folder / "score.json"
    if file.exists():
        with suppress(DataError, OSError, TypeError):  # a damaged score is computed again
            kept: dict[str, Any] = atomic_files.read_json(
                file, dict[str, Any], atomic_files.AT_LABEL_PARTY, checksum=True
            )
            found = HeldOutScore.from_dict(kept)
            if found.held_out == held_out:
                return found
    scored = score()
    with suppress(DataError, OSError):  # the curve is only for display
        curve = Curve.load(folder / "curve.json")
        replace(curve, held_out=tuple(scored.loss_by_round.items())).save(folder / "curve.json")
    plain = json.dumps(scored.score.to_dict(), ensure_ascii=False).encode()
    atomic_files.write(file, atomic_files.with_checksum(plain))
    return scored.score
