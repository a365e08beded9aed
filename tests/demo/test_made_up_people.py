"""The made-up people: reproducible, as declared, and too hard to predict for one party."""

from __future__ import annotations

import numpy as np
import pyarrow.csv
import pytest

from opboost.config.columns_file import parse
from opboost.demo import made_up_people
from opboost.demo.made_up_people import (
    CARDS,
    CONTRACTS,
    DECLARED,
    ID,
    LABEL,
    OWN,
    REGIONS,
    declaration,
    organisations,
    people,
    write_tables,
)


def test_a_seed_makes_the_same_people():
    assert people(500).equals(people(500))
    assert not people(500).equals(people(500, seed=1))


def test_the_table_is_as_it_is_documented():
    table = people(5_000)
    assert table.column_names == [ID, *OWN, *(c for d in DECLARED.values() for c in d), LABEL]
    assert len(set(table[ID].to_pylist())) == 5_000
    assert [c for c in table.column_names if table[c].null_count] == ["minutes"]
    assert table["minutes"].null_count == pytest.approx(5_000 / 12, rel=0.2)
    assert 0.2 < np.mean(table[LABEL].to_numpy()) < 0.4
    for words, name in ((CARDS, "card"), (CONTRACTS, "contract"), (REGIONS, "region")):
        assert set(table[name].to_pylist()) == set(words)


def test_values_lie_within_what_is_declared():
    table = people(20_000)
    for declared in DECLARED.values():
        for name, settings in declared.items():
            if "bounds" in settings:
                values = table[name].drop_null().to_numpy()
                assert (
                    settings["bounds"][0] <= values.min() <= values.max() <= settings["bounds"][1]
                )
            if settings.get("integers"):
                assert pyarrow.types.is_integer(table[name].type)


def test_organisations_know_different_people_in_different_orders():
    held = organisations(1_000)
    ids = {name: table[ID].to_pylist() for name, table in held.tables.items()}
    assert {name: len(known) for name, known in ids.items()} == dict.fromkeys(ids, 960)
    assert ids["bank"] != ids["shop"] != ids["phone"]
    everybody = set.intersection(*map(set, ids.values()))
    assert set(held.common[ID].to_pylist()) == everybody
    assert not everybody & set(held.new[ID].to_pylist())
    assert LABEL in held.tables["bank"].column_names
    assert LABEL not in held.tables["shop"].column_names + held.tables["phone"].column_names


@pytest.mark.parametrize("party", list(DECLARED))
def test_a_declaration_keeps_its_total(party):
    plan = parse(declaration(party, 2.0), f"{party}.toml")
    assert plan.record is not None
    assert plan.guarantee().total == plan.record.total == 2.0
    assert [c.name for c in plan.private] == list(DECLARED[party])


def test_files_read_as_the_tables_that_were_written(tmp_path, monkeypatch):
    monkeypatch.setattr(made_up_people, "organisations", lambda: organisations(200))
    written = write_tables(tmp_path / "made", 4.0)
    assert all(path.is_file() for path in written)
    read = pyarrow.csv.read_csv(tmp_path / "made" / "phone.csv")
    assert read.equals(organisations(200).tables["phone"])
    assert "record = 2.0" in (tmp_path / "made" / "phone.toml").read_text()
