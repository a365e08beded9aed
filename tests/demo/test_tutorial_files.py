"""``opboost tutorial`` writes the files of its page, and never overwrites a user's file."""

from __future__ import annotations

import json

import pytest

from opboost.config.job_file import load_feature, load_label
from opboost.demo.made_up_people import write_tables
from opboost.demo.tutorial_files import write_tutorial
from opboost.errors import ConfigError
from robustness.command_line import run
from tools.manual.blocks import DOCS, blocks
from tools.manual.session import typed

PAGE = DOCS / "tutorial.md"


@pytest.fixture(scope="module")
def credit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tutorial") / "new" / "credit"
    return folder, write_tutorial(folder)


def test_the_files_are_those_that_the_page_shows(credit):
    folder, written = credit
    shown = {block.file: block.text + "\n" for block in blocks(PAGE) if block.file}
    assert set(shown) == {"job.toml", "bank/bank.toml", "shop/shop.toml"}
    for name, text in shown.items():
        assert (folder / name).read_text() == text, name
    for party in ("bank", "shop"):
        assert (folder / party / "job.toml").read_text() == shown["job.toml"]
    assert "each feature party learns which of its people the label party has" in shown["job.toml"]
    assert {p for p in folder.rglob("*") if p.is_file()} == set(written)


def test_its_readme_has_the_commands_of_the_page_in_their_order(credit):
    folder, _ = credit
    page = [c for b in blocks(PAGE) if b.language == "console" for c in typed(b)]
    there = next(number for number, c in enumerate(page) if c.words == "cd credit")
    wanted = [
        f"{c.where}$ {c.words}" for c in page[there + 1 :] if not c.words.startswith("head -2")
    ]
    lines = (folder / "README.md").read_text().splitlines()
    assert [line.strip() for line in lines if line.startswith("    ")] == wanted


def test_the_tables_are_those_of_the_demo(credit, tmp_path):
    folder, _ = credit
    write_tables(tmp_path, 4.0)
    for name in ("bank/bank.csv", "bank/new-people.csv", "shop/shop.csv"):
        assert (folder / name).read_bytes() == (tmp_path / name.split("/")[1]).read_bytes()


def test_both_parties_files_load(credit):
    folder, _ = credit
    assert load_label(folder / "bank/bank.toml").table == folder / "bank/bank.csv"
    assert load_feature(folder / "shop/shop.toml").table == folder / "shop/shop.csv"


def test_a_folder_with_something_in_it_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"is not empty\. Name a folder"):
        write_tutorial(tmp_path)
    with pytest.raises(ConfigError, match=r"is a file\. Name a folder"):
        write_tutorial(tmp_path / "mine.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_the_verb_lists_what_it_wrote(tmp_path):
    status, out, said = run("tutorial", tmp_path / "credit", "--format", "json")
    assert status == 0, said
    made = sorted(str(p) for p in (tmp_path / "credit").rglob("*") if p.is_file())
    assert sorted(json.loads(out)["files"]) == made
    status, out, said = run("tutorial", tmp_path / "credit")
    assert (status, out, len(said.splitlines())) == (2, "", 1)
    assert "is not empty" in said
