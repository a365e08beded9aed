"""Hooks of MkDocs: make pages from notebooks and from the project's own files."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.manual.notebooks import as_markdown

_PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the decisions to the navigation in order, so that a new one need not be listed."""
    decisions = sorted((Path(config.docs_dir) / "decisions").glob("*.md"))
    project = next(part["Project"] for part in config.nav if "Project" in part)
    project.append({"Decisions": [f"decisions/{path.name}" for path in decisions]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every notebook, and for the files in the project's root folder."""
    docs = Path(config.docs_dir)
    for path in sorted((docs / "notebooks").glob("*.ipynb")):
        page = f"notebooks/{path.stem}.md"
        text = as_markdown(json.loads(path.read_text()), path.name)
        files.append(File.generated(config, page, content=text))
    for name in _PROJECT:
        text = (docs.parent / name).read_text()
        files.append(File.generated(config, name.lower(), content=_from_docs(text)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point links at the pages of notebooks, and colour examples as a Python session."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    linked = re.sub(r"\]\(([^):]+)\.ipynb\)", r"](\1.md)", markdown)
    for name in _PROJECT:  # from a page, the project's root is one folder up; here they are pages
        linked = linked.replace(f"](../{name}", f"]({name.lower()}")
    return linked.replace("```python\n>>> ", "```pycon\n>>> ")


def _from_docs(text: str) -> str:
    """Return a text with its links made relative to the folder of pages."""
    inside = re.sub(r"\]\(docs/", "](", text)
    for name in _PROJECT:
        inside = inside.replace(f"]({name})", f"]({name.lower()})")
    return inside.replace("](decisions)", "](decisions/0001-one-exact-law.md)")
