"""Run notebooks, store them with their output, and show them as pages.

    python -m tools.manual.notebooks           # run all, and store their output

Needs the packages of requirements/docs.txt (``make notebooks`` installs them).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from tools.manual.blocks import DOCS

FOLDER = DOCS / "notebooks"


def as_markdown(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook as a page: text unchanged, code as blocks, output below the code."""
    parts = []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [part for part in map(_shown, cell["outputs"]) if part]
        if number == 0:
            raise ValueError(f"{name} begins with code. Say first what it is about.")
    parts.append(f"*This page is the notebook [{name}]({name}), with its stored output.*")
    return "\n\n".join(parts) + "\n"


def _shown(output: dict[str, Any]) -> str:
    """Return one output as Markdown: a picture, a table, or text."""
    if output["output_type"] == "error":
        raise ValueError(f"A notebook was stored with an error: {output['ename']}.")
    if output["output_type"] == "stream":
        return _block("".join(output["text"]))
    data = output["data"]
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="figure" src="data:image/png;base64,{picture}">'
    if "text/html" in data:
        return re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.S).strip()
    return _block("".join(data["text/plain"]))


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def run(path: Path) -> None:
    """Run a notebook in a fresh kernel, and store it with its output."""
    import nbformat
    from nbclient import NotebookClient

    from opboost.storage import atomic_files

    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(DOCS)}}
    NotebookClient(notebook, timeout=120, coalesce_streams=True, resources=where).execute()
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {}
        cell.id = f"cell-{number}"
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
    }
    atomic_files.write(path, (nbformat.writes(notebook) + "\n").encode())


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(FOLDER.glob("*.ipynb")):
        run(path)
