"""The manual: every block of every page is run, loaded or at least parsed."""

from __future__ import annotations

import re
import shlex
import shutil

import pandas as pd
import pytest

from opboost.config import parse
from opboost.config.columns_file import validated
from opboost.config.job_file import is_label_party, load_feature, load_job, load_label
from opboost.errors import OpBoostError
from tests.cli.test_help import parsed
from tools.manual.blocks import DOCS, ROOT, Block, blocks, commands, pages
from tools.manual.session import Session, followed, typed
from tools.manual.tables import FOLDER, tables

KNOWN = {"console", "csv", "ini", "python", "toml"}
"""The kinds of blocks; ini is a unit file for systemd."""

PAGES = [page for page in pages() if any(blocks(page))]


def named(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_is_of_a_kind_that_is_tested(page):
    for block in blocks(page):
        assert block.language in KNOWN, f"{page.name}:{block.line}"
        if block.language == "python":
            assert ">>> " in block.text, f"{page.name}:{block.line}: not a doctest"


@pytest.mark.parametrize("page", list(followed()), ids=named)
def test_what_a_page_says_to_type_works_as_it_shows(page, tmp_path):
    if page.name == "score.md" and shutil.which("curl") is None:
        pytest.skip("the page asks with curl, which is not installed")
    Session(tmp_path).follow(page)


@pytest.mark.parametrize("name", ["tutorial.md", "federation.md", "bundles.md"])
def test_every_block_of_a_page_about_a_whole_job_is_run(name):
    assert blocks_that_are_not_run(DOCS / name) == []


def blocks_that_are_not_run(page):
    """Return the lines of TOML blocks that no command or other file uses, and of indented commands.

    Sessions run all console blocks, and doctest runs all Python blocks.
    """
    found = list(blocks(page))
    texts = [block.text for block in found if block.language in ("console", "toml")]
    unused = [
        block.line
        for block in found
        if block.language == "toml"
        and (
            not block.file
            or not any(block.file.split("/")[-1] in t for t in texts if t != block.text)
        )
    ]
    indented = re.compile(r"^ {4,}(?:[a-z-]*\$ +)?opboost ")
    lines = enumerate(page.read_text().splitlines(), 1)
    return unused + [number for number, line in lines if indented.match(line)]


def test_a_block_that_is_not_run_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```toml\n# a.toml\n[job]\n```\n```toml\n[tls]\n```\n```toml\n# b.toml\n[job]\n```\n"
        "```console\n$ cat a.toml\n```\n    opboost demo\n"
    )
    assert blocks_that_are_not_run(page) == [5, 8, 15]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(b.language == "toml" for b in blocks(p))], ids=named
)
def test_every_configuration_of_a_page_loads(page, tmp_path):
    found = [block for block in blocks(page) if block.language == "toml"]
    for block in found:
        if block.file:
            (tmp_path / block.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.file).write_text(block.text)
            folder = (tmp_path / block.file).parent
            if (tmp_path / "job.toml").exists() and folder != tmp_path:
                (folder / "job.toml").write_bytes((tmp_path / "job.toml").read_bytes())
    for block in found:
        load_as_what_it_is(block, tmp_path)


def load_as_what_it_is(block, folder):
    path = folder / str(block.file)
    if re.search(r"^\[job\]", block.text, re.M):
        load_job(path)
    elif re.search(r"^\[party\]", block.text, re.M):
        load_label(path) if is_label_party(path) else load_feature(path)
    elif re.search(r"^\[columns\.", block.text, re.M):
        parse(block.text, "the page")
    else:
        validated(block.text, "the page")  # part of a file


def test_a_configuration_with_a_mistake_is_seen(tmp_path):
    for text in ("[mechanism]\nkind = 'clamp'\n[columns.a]\nbounds = [0, 1]", "[tls]\nkitt = 'x'"):
        with pytest.raises(OpBoostError):
            load_as_what_it_is(Block("toml", "", text, 1), tmp_path)


@pytest.mark.parametrize("page", [p for p in pages() if any(commands(p))], ids=named)
def test_every_command_of_a_page_parses(page):
    for number, line in commands(page):
        words = shlex.split(re.split("[|>]", line)[0], comments=True)[1:]
        if words == ["--version"]:
            continue
        path, _ = parsed([w for w in words if w != "&"])
        assert path, f"{page.name}:{number}"


def test_the_manuals_tables_are_those_of_the_script():
    made = tables()
    assert {p.name for p in FOLDER.glob("*.csv")} == set(made)
    for name, table in made.items():
        kept = pd.read_csv(FOLDER / name)
        pd.testing.assert_frame_equal(kept, table.reset_index(drop=True), check_dtype=False)


def test_every_verb_has_a_page():
    from tests.cli.test_help import VERBS

    words = "\n".join(p.read_text() for p in (DOCS / "howto").glob("*.md"))
    for path in VERBS:
        assert f"opboost {' '.join(path)}" in words, path


def test_a_command_that_fails_or_says_something_else_is_seen(tmp_path):
    for text in ("$ false", "$ echo one\ntwo"):
        page = tmp_path / "page.md"
        page.write_text(f"```console\n{text}\n```\n")
        with pytest.raises(AssertionError, match=r"page\.md:2"):
            Session(tmp_path / text.replace("\n", " ")).follow(page)
    (command,) = typed(Block("console", "", "bank$ echo a \\\n  b\nshown", 1))
    assert (command.where, command.words, command.shown) == ("bank", "echo a b", ["shown"])
