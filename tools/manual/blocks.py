"""Read the code blocks of a page as a reader sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^( *)```(.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_NAMED = re.compile(r"# (\S+\.toml)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its first line, its text, and its line number."""

    language: str
    about: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that the block shows, by its title or by a TOML comment in its first line."""
        title = _TITLE.search(self.about)
        if title:
            return title.group(1)
        named = _NAMED.match(self.text.split("\n", 1)[0])
        return named.group(1) if named and self.language == "toml" else None


def pages() -> list[Path]:
    """Return every page of the manual, including decisions and proofs."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page; raise if one has no language or no end."""
    opened: tuple[str, str, int] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, lines = (fence.group(1), fence.group(2), number), []
        elif fence and not fence.group(2):
            indent, about, began = opened
            language, _, rest = about.strip().partition(" ")
            if not language:
                raise ValueError(f"{page.name}:{began}: a block without a language.")
            text = "\n".join(li.removeprefix(indent) for li in lines)
            yield Block(language, rest, text, began)
            opened = None
        else:
            lines.append(line)
    if opened is not None:
        raise ValueError(f"{page.name}:{opened[2]}: a block without an end.")


def commands(page: Path) -> Iterator[tuple[int, str]]:
    """Yield every line of a page's blocks that begins with ``opboost``, also in indented blocks."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        found = re.match(r"^(?: {4,}|\$ | *[a-z-]+\$ +)(?:[a-z-]+\$ +)?(opboost .*)$", line)
        if found:
            yield number, found.group(1)
