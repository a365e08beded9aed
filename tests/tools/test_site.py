"""The site: its content, and the check of its links."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tools.manual import attack_figures, claimed_cells, record_figures
from tools.manual.blocks import DOCS, ROOT, pages
from tools.manual.check import problems
from tools.manual.picture import TARGET, digest, points, table

PAGE = "<html><body id='top'>{}</body></html>"


def site(folder, **pages):
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(PAGE.format(body))
    return list(problems(folder))


def test_a_site_whose_links_lead_somewhere_is_well(tmp_path):
    (tmp_path / "a.css").write_text("p { background: url(data:image/png;base64,AB) }")
    body = (
        '<link rel="stylesheet" href="a.css"><a href="two.html#top">x</a><a href="#top">y</a>'
        '<a href="https://example.org/">elsewhere</a><img src="data:image/png;base64,AB">'
    )
    assert site(tmp_path, one=body, two="") == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<a href="three.html">x</a>', "three.html, which does not exist"),
        ('<a href="../outside.txt">x</a>', "outside.txt, which does not exist"),
        ('<a href="two.html#bottom">x</a>', "no such anchor"),
        ('<img src="picture.png">', "picture.png, which does not exist"),
        ('<script src="https://cdn.example.org/x.js"></script>', "loads https://cdn.example.org"),
        ('<link rel="preconnect" href="//fonts.example.org">', "loads //fonts.example.org"),
    ],
)
def test_a_dead_link_or_another_host_is_seen(tmp_path, body, words):
    (tmp_path / "outside.txt").touch()
    (tmp_path / "site").mkdir()
    (found,) = site(tmp_path / "site", one=body, two="")
    assert words in found


def test_a_style_that_loads_from_another_host_is_seen(tmp_path):
    (tmp_path / "a.css").write_text('@import "https://fonts.example.org/a.css";')
    assert site(tmp_path, one="") == ["a.css loads from another host"]


def test_the_figures_at_record_totals_are_those_of_the_claims():
    text = record_figures.PAGE.read_text()
    found = record_figures.lines()
    assert record_figures.written(text, found) == text, "Run: python -m tools.manual.record_figures"


def test_the_figures_of_attacks_are_those_of_the_claims():
    found = attack_figures.values()
    again = "Run: python -m tools.manual.attack_figures"
    text = attack_figures.PAGE.read_text()
    assert attack_figures.written(text, found) == text, again
    assert attack_figures.shipped(found) == attack_figures.SHIPPED.read_text(), again
    assert attack_figures.digest(found) in attack_figures.PICTURE.read_text(), again
    assert attack_figures.PICTURE.stat().st_size < 100_000
    with pytest.raises(ValueError, match="0 places for 'answer'"):
        attack_figures.written("# Another page", found)


@pytest.mark.parametrize("page", claimed_cells.PAGES)
def test_the_figures_in_tables_are_those_of_the_claims(page):
    text, cells = (DOCS / page).read_text(), list(claimed_cells.PAGES[page]())
    found = claimed_cells.recorded()
    again = "Run: python -m tools.manual.claimed_cells"
    assert claimed_cells.written(text, cells, found) == text, again
    first = found[cells[0].claims][cells[0].name]
    first["value"] += 1
    assert claimed_cells.written(text, cells, found) != text
    with pytest.raises(ValueError, match="0 rows begin with"):
        claimed_cells.written("# Another page", cells, found)


def test_the_accuracy_picture_is_drawn_from_the_table_as_it_stands():
    rows = table()
    found = points(rows)
    assert len(found) == 20
    assert all(max(p.paper, p.clamp) < p.ours < p.plain for p in found)
    assert digest(rows) in TARGET.read_text(), "Run: python -m tools.manual.picture"


@pytest.mark.parametrize("page", [*pages(), *ROOT.glob("*.md")], ids=lambda p: p.name)
def test_links_between_files_lead_somewhere_in_the_repository_too(page):
    words = re.sub(r"(?m)^ {4}.*$|`[^`]*`", "", page.read_text())
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", words):
        assert (page.parent / link).exists(), link


def test_every_public_name_is_in_the_reference():
    import opboost as op

    words = "\n".join(p.read_text() for p in (DOCS / "reference").glob("*.md"))
    for name in op.__all__:
        assert f".{name}\n" in words + "\n" or name == "theory", name
    for name in op.theory.__all__:
        assert f"::: opboost.theory.{name}" in words


def test_the_site_builds_and_is_well(tmp_path):
    pytest.importorskip("mkdocstrings_handlers.python", reason="make docs installs and builds")
    pytest.importorskip("material", reason="make docs installs and builds")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(problems(tmp_path)) == []
    page = (tmp_path / "notebooks" / "researcher.html").read_text()
    assert "data:image/png;base64" in page
    reference = (tmp_path / "reference" / "mechanisms.html").read_text()
    assert "ClampMap" in reference
    assert "<blockquote>" not in reference, "an example is read as a quotation"
    assert ":class:" not in reference
