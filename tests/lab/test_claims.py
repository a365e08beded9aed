"""The claims' own machinery: what is false must fail."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from claims import FILES
from claims.claim import Claim
from claims.foundation import CLAIMS

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


def test_every_figure_of_the_readmes_table_is_a_claim():
    table = re.search(
        r"\| cells \| ε a cell .*?\n\n", (ROOT / "README.md").read_text(), re.S
    ).group()
    rows = [
        [float(v) for v in line.strip("| ").split("|")] for line in table.strip().splitlines()[2:]
    ]
    stated = sorted(figure for row in rows for figure in row[2:])
    assert stated == sorted(c.target for c in CLAIMS if c.where.startswith("README"))


@pytest.mark.parametrize("file", FILES)
def test_the_recorded_claims_hold(file):
    recorded = json.loads((ROOT / "docs" / "claims.json").read_text())
    lines = recorded[file]
    claims = import_module(f"claims.{file}").CLAIMS
    assert [line["name"] for line in lines] == [c.name for c in claims]
    assert all(line["holds"] for line in lines if not line.get("short"))
    assert all("value" in line for line in lines)
