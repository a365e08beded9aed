"""The time of denoising, compared with plain training: docs/denoising-results.md."""

from functools import partial

from claims.claim import LEARNING, Page
from opboost_lab.bench.training import measure

SIZES = ((45_000, 9, 3.0), (300_000, 40, 2.0))


def ratio(way: str, rows: int, columns: int) -> list[float]:
    """Return the ratios of a way's time to that of plain training, measured in turns."""
    pairs = ([measure(each, rows, columns, 3) for each in (way, "plain xgboost")] for _ in range(5))
    return [ours.seconds / plain.seconds for ours, plain in pairs]


HERE = Page("docs/denoising-results.md")
COVERS = LEARNING
CLAIMS = [
    HERE.at_most(
        f"{what} over plain XGBoost, {rows:,} × {columns}, time",
        target,
        partial(ratio, way, rows, columns),
        short=rows == 45_000,
    )
    for rows, columns, most in SIZES
    for what, way, target in (
        ("fitting and drawing", "denoiser", most),
        ("whole denoised fit", "denoised", 4.0),
    )
]
