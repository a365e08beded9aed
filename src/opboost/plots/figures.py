"""Charts, drawn without a screen; a file appears only once it is complete."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opboost.errors import ParameterError
from opboost.runtime.extras import needs_extra
from opboost.storage import atomic_files


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and its axes, row by row."""

    figure: Any
    axes: list[list[Any]]


def load_matplotlib() -> Any:
    """Import pyplot with the backend that needs no screen, or say how to install matplotlib."""
    with needs_extra("plots", "A picture"):
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    return pyplot


def figure(rows: int, columns: int, width: float, height: float, sharey: Any = False) -> Figure:
    """Return an empty figure; ``height`` is that of one row, in inches."""
    drawn, axes = load_matplotlib().subplots(
        rows,
        columns,
        figsize=(width, height * rows),
        squeeze=False,
        sharey=sharey,
        constrained_layout=True,
    )
    return Figure(drawn, [list(row) for row in axes])


def save(chart: Figure, path: Path, about: str = "") -> None:
    """Write the figure under another name and rename it into place; ``about`` is stored inside.

    An SVG has no date, so that the same chart gives the same bytes.
    """
    import matplotlib
    from matplotlib import pyplot as plt

    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"A picture is a .png, .svg or .pdf file; got {path.name!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.suffix.lstrip(".")
    kept = {"Subject" if kind == "pdf" else "Description": about} if about else {}
    dateless = {"Date": None} if kind == "svg" else {}
    try:
        with (
            matplotlib.rc_context({"svg.hashsalt": "opboost"}),
            atomic_files.placing(path, alone=True) as partial,
        ):
            chart.figure.savefig(partial, dpi=130, format=kind, metadata={**kept, **dateless})
    finally:
        plt.close(chart.figure)
