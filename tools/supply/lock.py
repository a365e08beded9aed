"""Read a lock: every package with one version and the hashes of all its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name
from pip_requirements_parser import RequirementsFile

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "requirements" / "runtime.txt"
DEV = ROOT / "requirements" / "dev.txt"
DOCS = ROOT / "requirements" / "docs.txt"


@dataclass(frozen=True)
class Pin:
    """One package of a lock; ``marker`` says where it is installed, and is empty for everywhere."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def here(self) -> bool:
        return not self.marker or Marker(self.marker).evaluate()


def read(path: Path) -> list[Pin]:
    """Return the pins of a lock, in its order; refuse a line that pins nothing."""
    lines = RequirementsFile.from_file(str(path))
    if lines.invalid_lines or lines.options:
        odd = (*lines.invalid_lines, *lines.options)[0].dumps()
        raise ValueError(
            f"{path.name} has the line {odd!r}, which does not pin a package. Run make lock."
        )
    pins = []
    for line in lines.requirements:
        version = line.get_pinned_version
        if not version or not line.hash_options:
            raise ValueError(f"{path.name} gives {line.name} no version or no hash. Run make lock.")
        pins.append(
            Pin(
                canonicalize_name(line.name),
                version,
                str(line.marker or ""),
                tuple(line.hash_options),
            )
        )
    return pins
