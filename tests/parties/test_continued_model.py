"""A continued model needs the columns of its training; they are compared before any draw."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.errors import ColumnError, ParameterError, PeerError
from opboost.parties.channel import MemoryChannel
from opboost.protocol.messages import ColumnSchema, Welcome

GRID = op.Domain(0, 9)
ROWS = 120
PEOPLE = pd.DataFrame(
    {"id": range(ROWS), **{n: np.arange(ROWS) * k % 10 for k, n in enumerate("abc", 3)}}
)
Y = np.arange(ROWS) % 2
SETTINGS = {"booster_params": {"n_estimators": 2}, "denoise": False, "held_out": 0}


def declared(name, upper=10, epsilon=0.6):
    return op.PrivateColumn(name, op.NumericMapping(GRID, (0, upper)), op.ClampMap(GRID, epsilon))


def party(name, *columns, align="given", **more):
    table = PEOPLE[["id", *(c.name for c in columns)]]
    return op.FeatureParty(table, columns, ids="id", name=name, align=align, **more)


def trained(*parties, align="given", **more):
    ids = PEOPLE["id"].tolist()
    bank = op.LabelParty(PEOPLE[["c"]], Y, ids=ids, align=align, **SETTINGS, **more)
    return bank.train([MemoryChannel(p) for p in parties])


@pytest.fixture(scope="module")
def first():
    return trained(party("shop", declared("a")), party("telco", declared("b")))


OTHERS = {
    "bounds": ([declared("b", upper=11)], r"'b' has a mapping that differs from the model"),
    "mechanism": ([declared("b", epsilon=0.5)], r"'b' has a mechanism that differs from the model"),
    "more": ([declared("b"), declared("a")], r"'a' is not private in the model"),
    "another": ([declared("a")], r"'b' is private in the model that is continued"),
}


@pytest.mark.parametrize("align", ["given", "psi"])
@pytest.mark.parametrize("other", OTHERS)
def test_other_columns_are_refused_before_any_party_draws(first, other, align):
    columns, words = OTHERS[other]
    parties = party("shop", declared("a"), align=align), party("telco", *columns, align=align)
    with pytest.raises(ColumnError, match=words):
        trained(*parties, align=align, continue_from=first)
    assert [e.kind for p in parties for e in p.ledger.entries()] == ["open", "open"]
    telco = party("telco", declared("b"), align=align)
    more = trained(parties[0], telco, align=align, continue_from=first)
    assert more.trained_.rounds == 4


def test_a_party_that_says_nothing_and_sends_other_columns_is_refused_by_the_label_party(first):
    class Silent(MemoryChannel):
        refused = ()

        def agree(self, welcome):
            """Accept whatever the job needs."""

        def refuse(self, why):
            self.refused = (why,)

    telco = Silent(party("telco", declared("b", upper=11)))
    bank = op.LabelParty(
        PEOPLE[["c"]], Y, ids=PEOPLE["id"].tolist(), continue_from=first, **SETTINGS
    )
    with pytest.raises(ColumnError, match=r"'b' has a mapping that differs"):
        bank.train([MemoryChannel(party("shop", declared("a"))), telco])
    assert telco.refused == ("The columns are not those of the model that is continued.",)


def test_columns_of_one_name_at_two_parties_and_in_another_order_are_known_again():
    first = trained(
        party("shop", declared("a"), declared("b")), party("telco", declared("a")), record=30
    )
    assert set(first.origins_.parties) == {"shop.a", "b", "telco.a"}
    more = trained(
        party("shop", declared("b"), declared("a")),
        party("telco", declared("a")),
        continue_from=first,
    )
    assert more.trained_.rounds == 4
    with pytest.raises(ColumnError, match=r"^Column 'a' has a mapping that differs"):
        trained(
            party("shop", declared("a", upper=11), declared("b")),
            party("telco", declared("a")),
            continue_from=first,
        )


@pytest.mark.parametrize("shown", [{"names": "hidden"}, {"units": "grid"}])
def test_a_party_that_hides_names_or_units_compares_what_it_shows(shown):
    first = trained(party("shop", declared("a"), **shown))
    assert trained(party("shop", declared("a"), **shown), continue_from=first).trained_.rounds == 4
    other = party("shop", declared("a", epsilon=0.5), **shown)
    with pytest.raises(ColumnError, match=r"has a mechanism that differs from the model"):
        trained(other, continue_from=first)


def test_other_parties_are_refused_by_name(first):
    shop, telco = party("shop", declared("a")), party("telco", declared("b"))
    words = r"parties of its training \(shop, telco\), and 'bakery' has no columns in it"
    with pytest.raises(ParameterError, match=words):
        trained(shop, telco, party("bakery", declared("a")), continue_from=first)
    three = trained(shop, telco, party("bakery", declared("b")))
    with pytest.raises(ParameterError, match=r"'bakery' takes no part in the job"):
        trained(shop, telco, continue_from=three)
    alone = trained(party("features", declared("a")))
    assert trained(shop, continue_from=alone).trained_.rounds == 4  # its only party was renamed


def test_a_model_of_one_machine_names_no_parties():
    model = op.OpBoostClassifier((declared("a"), declared("b")), **SETTINGS).fit(
        PEOPLE[["a", "b", "c"]], Y
    )
    shop, telco = party("shop", declared("a")), party("telco", declared("b"))
    with pytest.raises(ParameterError, match=r"does not say which party holds each"):
        trained(shop, telco, continue_from=model)
    assert not list(shop.ledger.entries("reserve"))
    both = party("shop", declared("a"), declared("b"))
    assert trained(both, continue_from=model).trained_.rounds == 4


@pytest.mark.parametrize("why", ["continues a model", "stops early"])
def test_values_that_a_party_withholds_are_refused_before_any_party_draws(first, why):
    parties = party("shop", declared("a")), party("telco", declared("b"), codebook="cuts")
    given = {"early_stopping_rounds": 2} if why == "stops early" else {"continue_from": first}
    with pytest.raises(ParameterError, match=rf'{why}.*Write codebook = "full"') as refused:
        trained(*parties, **given)
    assert refused.value.refusal == "declaration"
    assert not [e for p in parties for e in p.ledger.entries("reserve")]


def test_another_booster_is_refused_before_anybody_is_met(first):
    with pytest.raises(ParameterError, match=r"LightGBM cannot continue .* that XGBoost trained"):
        op.LabelParty(PEOPLE[["c"]], Y, booster="lightgbm", continue_from=first)


def test_a_description_that_cannot_be_read_is_a_peers_fault():
    shop = party("shop", declared("a"))
    welcome = Welcome("20260102T030405Z-01020304", bytes(32), b"", columns=(ColumnSchema("{}"),))
    with pytest.raises(PeerError, match=r"A column's description cannot be used"):
        shop.check_terms(welcome)


def test_a_model_with_parties_saves_the_file_of_its_estimator(first, tmp_path):
    ids = PEOPLE["id"].tolist()
    for earlier in (None, first):
        bank = op.LabelParty(PEOPLE[["c"]], Y, ids=ids, continue_from=earlier, **SETTINGS)
        parties = party("shop", declared("a")), party("telco", declared("b"))
        model = bank.train_model([MemoryChannel(p) for p in parties])
        estimator = model.estimator()
        estimator.label_column_ = "y"
        model.save(tmp_path / "model", "y")
        estimator.save(tmp_path / "estimator")
        ours, theirs = (zipfile.ZipFile(tmp_path / n) for n in ("model", "estimator"))
        assert ours.namelist() == theirs.namelist()
        assert all(ours.read(n) == theirs.read(n) for n in ours.namelist())
        assert model.guarantee() == estimator.guarantee_
        assert op.load(tmp_path / "model").releases_ == (1 if earlier is None else 2)
