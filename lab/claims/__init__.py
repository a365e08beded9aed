"""Every figure that the project states, as a claim that can be recomputed and can fail.

``python -m claims`` runs all and writes ``docs/claims.json``; ``python -m claims foundation`` runs
those of one file.  A claim is a function that returns a value (or several, for a spread) and the
rule that the value must meet.  A file's ``COVERS`` names the modules on which its figures depend.
A hash of their sources is recorded with each figure, and ``make check`` lists the figures whose
sources have changed since.
"""

from pathlib import Path

_MACHINERY = {"__init__", "__main__", "claim", "covered_sources"}
FILES = tuple(sorted({file.stem for file in Path(__file__).parent.glob("*.py")} - _MACHINERY))
