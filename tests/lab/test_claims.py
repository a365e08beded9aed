"""The machinery of the claims: false claims must fail."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from claims import FILES, covered_sources
from claims import __main__ as run_claims
from claims.__main__ import record, recorded
from claims.claim import Claim
from claims.covered_sources import source_files, source_hash, stale
from claims.foundation import CLAIMS
from opboost_lab.code_alone import code_alone, code_without_messages

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("rule", "value", "holds"),
    [
        ("equals", 1.0, True),
        ("equals", 1.2, False),
        ("at least", 0.9, False),
        ("at most", 0.9, True),
    ],
)
def test_a_claim_holds_only_if_its_rule_is_met(rule, value, holds):
    assert Claim("x", "here", rule, 1.0, lambda: [value] * 3, 0.05).judge()["holds"] is holds


def test_a_claim_that_cannot_be_computed_fails():
    line = Claim("x", "here", "equals", 1.0, lambda: 1 / 0).judge()
    assert line["holds"] is False
    assert "ZeroDivisionError" in line["error"]


def test_every_figure_of_the_table_of_mechanisms_is_a_claim():
    page = (ROOT / "docs" / "reference" / "mechanisms.md").read_text()
    table = re.search(r"\| cells \| ε per cell .*?\n\n", page, re.S).group()
    rows = [
        [float(v) for v in line.strip("| ").split("|")] for line in table.strip().splitlines()[2:]
    ]
    stated = sorted(figure for row in rows for figure in row[2:])
    assert stated == sorted(c.target for c in CLAIMS if c.where.endswith("mechanisms.md"))


@pytest.mark.parametrize("file", FILES)
def test_the_recorded_claims_hold(file):
    recorded = json.loads((ROOT / "docs" / "claims.json").read_text())
    lines = recorded[file]
    claims = import_module(f"claims.{file}").CLAIMS
    assert [line["name"] for line in lines] == [c.name for c in claims]
    assert all(line["holds"] for line in lines if not line.get("short"))
    assert all("value" in line for line in lines)


@pytest.mark.parametrize("file", FILES)
def test_claims_of_a_file_have_different_names(file):
    names = [claim.name for claim in import_module(f"claims.{file}").CLAIMS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("file", FILES)
def test_every_file_of_claims_says_which_sources_it_covers(file):
    covers = import_module(f"claims.{file}").COVERS
    assert all(prefix.startswith("opboost.") for prefix in covers)
    assert len(list(source_files(covers))) > len(set(covers))


CODE = '''"""A module."""

LIMIT = 3  # per person
"""What it limits."""


def f(a):
    # why
    """Return it."""
    return "# kept"
'''


def test_words_for_readers_make_no_claim_stale():
    reworded = CODE.replace("A module", "This module\n\nis long").replace("# why", "# because")
    reworded = reworded.replace("per person", "for each person").replace("What it", "Which it")
    assert reworded != CODE
    assert code_alone(reworded) == code_alone(CODE)
    for changed in (CODE.replace("3", "4"), CODE.replace("# kept", "# lost")):
        assert code_alone(changed) != code_alone(CODE)
    assert [line.strip() for line in code_alone(CODE).splitlines()] == [
        "LIMIT = 3",
        "def f(a):",
        'return "# kept"',
    ]


REFUSING = """
def f(a):
    if a < 3:
        raise ValueError(
            f"Too small: {a}; "
            "write 3."
        )
    raise errors.Lost from None
"""


def test_the_words_of_an_error_make_no_claim_stale():
    known = code_without_messages(REFUSING)
    shorter = REFUSING.replace(
        '\n            f"Too small: {a}; "\n            "write 3."\n        ', '"ü"'
    )
    assert code_without_messages(shorter) == known
    for changed in (REFUSING.replace("a < 3", "a < 4"), REFUSING.replace("ValueError", "KeyError")):
        assert code_without_messages(changed) != known
    lines = [line.strip() for line in known.splitlines()]
    assert lines == ["def f(a):", "if a < 3:", "raise ValueError", "raise errors.Lost"]


def write_sources(root, **texts):
    for name, text in texts.items():
        path = root / "opboost" / name / "__init__.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def test_the_hash_follows_covered_sources_alone(tmp_path):
    write_sources(tmp_path, grid=b"a = 1\n", cli=b"b = 2\n")
    covers = ("opboost.grid",)
    first = source_hash(covers, tmp_path)
    write_sources(tmp_path, grid=b"a = 1\r\n", cli=b"b = 3\n")
    assert source_hash(covers, tmp_path) == first
    write_sources(tmp_path, grid=b"a = 2\n")
    assert source_hash(covers, tmp_path) != first
    (tmp_path / "opboost" / "grid" / "__init__.py").rename(tmp_path / "opboost" / "grid" / "b.py")
    write_sources(tmp_path, cli=b"")
    assert source_hash(covers, tmp_path) not in (first, source_hash(("opboost.cli",), tmp_path))


def test_a_prefix_without_sources_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"No source file belongs to 'opboost\.gone'"):
        source_hash(("opboost.gone",), tmp_path)


def test_claims_of_other_or_unknown_sources_are_stale(tmp_path, monkeypatch, capsys):
    now = source_hash(import_module("claims.order").COVERS)
    recorded = {"order": [{"sources": now}], "speed": [{"sources": "0" * 16}], "scale": [{}, {}]}
    monkeypatch.setattr(covered_sources, "FILES", tuple(recorded))
    monkeypatch.setattr(covered_sources, "RECORDED", tmp_path / "claims.json")
    assert stale(recorded) == {"speed": 1, "scale": 2}
    assert stale({"order": recorded["order"]}) == {"speed": 1, "scale": 1}  # never recorded
    (tmp_path / "claims.json").write_text(json.dumps(recorded))
    assert covered_sources.main([]) == 0
    assert "speed (1), scale (2)" in capsys.readouterr().out
    assert covered_sources.main(["--strict"]) == 1
    (tmp_path / "claims.json").write_text(json.dumps({"order": recorded["order"]}))
    monkeypatch.setattr(covered_sources, "FILES", ("order",))
    assert covered_sources.main(["--strict"]) == 0


def test_runs_side_by_side_keep_each_others_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(run_claims, "RECORDED", tmp_path / "claims.json")
    first, second = (Claim(name, "", "equals", 1, lambda: 1) for name in ("first", "second"))
    record("speed", [second], {"name": "second", "value": 1})
    record("scale", [first], {"name": "first", "value": 2})
    record("speed", [first, second], {"name": "first", "value": 3})
    assert recorded() == {
        "speed": [{"name": "first", "value": 3}, {"name": "second", "value": 1}],
        "scale": [{"name": "first", "value": 2}],
    }
    record("speed", [first], {"name": "first", "value": 4})
    assert recorded()["speed"] == [{"name": "first", "value": 4}]  # the other claim is gone
