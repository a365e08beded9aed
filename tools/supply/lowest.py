"""Test the lowest direct versions that pyproject.toml allows: ``python -m tools.supply.lowest``.

The versions are resolved for this Python and installed in a separate environment together with the
wheel of this tree.  Then the trial of :mod:`tools.supply.smoke` runs there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*words: object) -> None:
    """Run a command, and exit with its status if it fails."""
    done = subprocess.run([str(word) for word in words], cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Resolve the versions, install them, and run the trial."""
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        versions, python = folder / "lowest.txt", folder / "env" / "bin" / "python"
        run(
            *(uv, "pip", "compile", "--quiet", "--no-config", "--resolution", "lowest-direct"),
            *("--python", sys.executable, "--extra", "boost", "--no-header", "--no-annotate"),
            *("--output-file", versions, "pyproject.toml"),
        )
        print(versions.read_text())
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
        (wheel,) = folder.glob("*.whl")
        run(uv, "venv", "--quiet", "--no-config", "--python", sys.executable, folder / "env")
        install = (uv, "pip", "install", "--quiet", "--no-config", "--python", python)
        run(*install, "--only-binary", ":all:", "-r", versions)
        run(*install, "--no-deps", wheel)
        run(python, "-P", ROOT / "tools" / "supply" / "smoke.py")


if __name__ == "__main__":
    main()
