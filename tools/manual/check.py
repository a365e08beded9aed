"""Check the built site: every link has a target, and no page loads anything from another host.

python -m tools.manual.check site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""The attribute whose URL a browser loads automatically, by tag."""

_FETCHED = {"stylesheet", "icon", "preconnect", "preload", "prefetch", "dns-prefetch"}
"""The relations of ``<link>`` whose URL a browser loads automatically."""

_OUTSIDE = re.compile(r"^(?:[a-z]+:)?//", re.I)
_IN_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//")


class _Page(HTMLParser):
    """A page's anchors, its links, and the URLs that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and set(found.get("rel", "").split()) & _FETCHED:
            self.loaded.append(found.get("href", ""))
        if found.get(_LOADS.get(tag, "")):
            self.loaded.append(found[_LOADS[tag]])


def problems(site: Path) -> Iterator[str]:
    """Yield a line for each dead link and each URL that would be loaded from another host."""
    pages = {path: _Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.loaded:
            if _OUTSIDE.match(link):
                yield f"{where} loads {link}"
            elif not link.startswith("data:") and _target(path, link, site) is None:
                yield f"{where} loads {link}, which does not exist"
        for link in page.links:
            if urlsplit(link).scheme or _OUTSIDE.match(link):
                continue  # the reader's own click
            target, anchor = _target(path, link, site), unquote(urlsplit(link).fragment)
            if target is None:
                yield f"{where} links to {link}, which does not exist"
            elif anchor and target in pages and anchor not in pages[target].names:
                yield f"{where} links to {link}, but that page has no such anchor"
    for path in sorted(site.rglob("*.css")):
        if _IN_CSS.search(path.read_text()):
            yield f"{path.relative_to(site)} loads from another host"


def _target(page: Path, link: str, site: Path) -> Path | None:
    """Return the file that a link leads to, or None if it is missing or outside the site."""
    place = unquote(urlsplit(link).path)
    if not place:
        return page
    found = site / place.lstrip("/") if place.startswith("/") else page.parent / place
    found = found.resolve()
    found = found / "index.html" if found.is_dir() else found
    return found if found.is_file() and found.is_relative_to(site) else None


def main(site: Path) -> int:
    """Print what is wrong, and return the exit status."""
    found = list(problems(site.resolve()))
    pages = len(list(site.rglob("*.html")))
    fine = f"{pages} pages: no dead links, and nothing is loaded from another host"
    print("\n".join(found) or fine)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
