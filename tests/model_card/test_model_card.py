"""The card of a model trained on one machine: its content in every format, and refusals."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.model_card.attack_figures import LINKED_PEOPLE, measured_at
from opboost.model_card.card import CardParty, guess_bound
from opboost.model_card.card_markdown import as_markdown
from opboost.model_card.card_page import as_html
from opboost.model_card.model_facts import best_guess
from opboost.model_card.party_facts import card_of
from robustness.command_line import run
from tests.ledger.test_ledger_report import Words, words
from tests.support.pages import browsing

CONFIG = """
[budget]
record = 4.0
rows = 500
task = "classify"

[columns.age]
bounds = [0, 1]

[columns."<script>x|y"]
bounds = [0, 1]

[card]
purpose = "Decide on <small> loans."
"""


def trained(folder, name="m.opboost", **more):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((500, 3)), columns=["age", "<script>x|y", "own"])
    model = op.OpBoostClassifier(
        bounds={"age": (0, 1), "<script>x|y": (0, 1)},
        budget=op.Budget.record(4.0, rows=500, task="classify"),
        booster_params={"n_estimators": 5},
        random_state=0,
        **more,
    )
    model.fit(X, X["age"] + X["own"] > 1)
    model.save(folder / name)
    return model


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("card")
    (home / "local.toml").write_text(CONFIG)
    return home


@pytest.fixture(scope="module")
def model(home):
    return trained(home, held_out=0.25)


def test_a_guess_is_bounded_by_bayes_rule():
    for total in (0.0, 0.5, 4.0, 30.0):
        assert guess_bound(total) == pytest.approx(math.exp(total) / (1 + math.exp(total)))
        for before in (0.001, 0.3, 0.9):
            odds = before / (1 - before) * math.exp(total)
            assert guess_bound(total, before) == pytest.approx(odds / (1 + odds))
    assert guess_bound(math.inf) == 1.0
    assert guess_bound(5000.0, 0.01) == 1.0


@pytest.mark.parametrize(
    "mechanism",
    [op.ClampMap(op.Domain(1, 6), 0.7), op.WindowMap(op.Domain(0, 11), total=2.0, near=0.5)],
)
def test_the_best_guess_is_that_of_an_attacker_who_tries_every_strategy(mechanism):
    """Nobody does better than by guessing the likeliest cell for each output."""
    grid = mechanism.domain
    column = op.PrivateColumn("x", op.NumericMapping(grid, (0, 1)), mechanism)
    rows = [mechanism.pmf(x) for x in range(grid.L, grid.R + 1)]
    right = sum(max(row[out] for row in rows) for out in range(len(rows[0])))
    assert best_guess(column) == pytest.approx(right / grid.size)
    drawn = np.random.default_rng(0).integers(0, len(rows), size=(200, len(rows[0])))
    chances = [sum(rows[x][out] for out, x in enumerate(guess)) / grid.size for guess in drawn]
    assert max(chances) <= best_guess(column)
    assert 1 / grid.size < best_guess(column) <= math.exp(mechanism.guarantee().total) / grid.size


def test_what_attacks_achieve_follows_from_the_total():
    for total in (0.5, 4.0, 20.0):
        linked = guess_bound(total, 1 / LINKED_PEOPLE)
        assert linked == pytest.approx(math.exp(total) / (math.exp(total) + LINKED_PEOPLE - 1))
    totals = [measured_at(total).total for total in (0.1, 1.0, 1.1, 4.0, 9.0, 100.0)]
    assert totals == [1.0, 1.0, 2.0, 4.0, 16.0, 16.0]
    for total in totals:
        found = measured_at(total)
        assert found.sets == ["Adult", "Powerplant", "Pen-digits"]
        ceiling = guess_bound(total, 1 / LINKED_PEOPLE)
        assert all(1 / LINKED_PEOPLE < share <= ceiling for share in found.linked.values())
    assert measured_at(math.inf) is None


@pytest.mark.parametrize(
    ("total", "said"),
    [
        (3.0, "at a total of 4, the smallest measured total that is not below this model's:"),
        (4.0, "at a total of 4, the same as this model's:"),
        (17.5, "at a total of 16, the largest measured one; at this model's total attacks may"),
    ],
)
def test_the_card_says_at_which_total_attacks_were_measured(home, model, total, said):
    card = replace(card_of(home / "m.opboost", None, "0"), total=total)
    assert said in words(as_html(card))
    assert said in as_markdown(card)
    assert "share_trees" not in as_markdown(card)  # no feature party took part
    shop = replace(card, parties=(CardParty("shop", "feature party", 1, total),))
    assert "share_trees" in as_markdown(shop)


def test_the_page_begins_with_the_total_and_says_what_the_model_says(home, model):
    out = home / "card.html"
    status, _, said = run("card", home / "m.opboost", "-c", home / "local.toml", "-o", out)
    assert (status, "Model card ->" in said) == (0, True), said
    page = out.read_text()
    text = words(page)
    assert text.index("one person 4 Revealed to everybody") < text.index(
        "Purpose Decide on <small>"
    )
    assert "98.2%" in text
    assert "(1 + e 4 )" in text
    assert "What attacks achieve at this total Somebody who has the true columns of 1,000" in text
    assert "(e 4 + 999), that is 5.2%. Without the release it is 0.1%" in text
    score = model.held_out_score_
    assert f"{score.metric} on {score.rows:,} rows" in text
    assert f"own columns alone {score.own:.3f}" in text
    assert f"with noise (measured) {score.whole.released:.3f}" in text
    for file in ("m.opboost", "local.toml"):
        assert f"{file} {hashlib.sha256((home / file).read_bytes()).hexdigest()}" in text
    assert "Place, date Name, function Signature" in text
    assert "<script" not in page
    assert Words(page).loads == []


def test_json_and_markdown_say_the_same(home, model):
    status, told, _ = run("card", home / "m.opboost", "--format", "json", "--purpose", "Loans.")
    card = json.loads(told)
    assert (status, card["total"], card["purpose"]) == (0, model.guarantee_.total, "Loans.")
    assert card["guess"][0]["at_most_after"] == pytest.approx(guess_bound(card["total"]))
    assert card["attacks"]["linked_at_most"] == pytest.approx(math.exp(4) / (math.exp(4) + 999))
    assert card["attacks"]["measured"]["total"] == 4.0
    assert card["own_columns"] == ["own"]
    mechanisms = {c.name: c.mechanism for c in model.desensitizer_.columns_}
    for column in card["columns"]:
        mechanism = mechanisms[column["name"]]
        losses = [mechanism.loss(mechanism.domain.L, y) for y in range(*_ends(mechanism))]
        assert max(losses) <= column["exact"] <= column["promised"] == mechanism.guarantee().total
        assert column["covered"]
    text = run("card", home / "m.opboost")[1]
    assert "**The most revealed about one person: 4**" in text
    assert r"\<script\>x\|y" in text
    assert run("card", home / "m.opboost", "-o", home / "card.md")[0] == 0
    assert (home / "card.md").read_text().startswith("# Model card of m.opboost\n")


def _ends(mechanism):
    return mechanism.domain.L, mechanism.domain.R + 1


def test_the_total_includes_scores_that_predictions_may_request(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"id": range(200), "age": rng.random(200)})
    plan = op.RecordPlan.of(op.Budget.record(4), bounds={"age": (0, 1)})
    with op.Ledger(tmp_path / "ledger", tmp_path / "key", op.Caps(person=20)) as book:
        shop = op.FeatureParty(rows, plan.columns, ledger=book, ids="id", name="shop", score=2.5)
        bank = op.LabelParty(
            rows[["age"]].rename(columns={"age": "own"}),
            rows["age"] > 0.5,
            ids=range(200),
            denoise=False,
            held_out=0,
            booster_params={"n_estimators": 2},
        )
        bank.train([op.MemoryChannel(shop)]).save(tmp_path / "m.opboost")
    card = card_of(tmp_path / "m.opboost", None, "0")
    assert (card.total, card.scores) == (6.5, 2.5)
    assert [p.total for p in card.parties] == [0.0, 6.5]
    assert card.guesses()[0]["at_most_after"] == pytest.approx(guess_bound(6.5))
    assert not [limit for limit in card.limits if "scores in predictions" in limit]
    said = "reveal at most 4. Predictions may request scores, which reveal at most 2.5 more"
    assert said in as_markdown(card)
    assert said in words(as_html(card))
    assert (card.to_dict()["total"], card.to_dict()["scores"]) == (6.5, 2.5)


def test_a_seeded_model_has_no_bound(home):
    trained(home, "seeded.opboost", noise_rng=op.SeededRng(1))
    card = card_of(home / "seeded.opboost", None, "0")
    text = words(as_html(card))
    assert card.total == math.inf
    assert "one person no bound Revealed to" in text
    assert "Nothing is promised: seeded" in text
    assert "Nothing bounds a guess" in text
    assert "Nothing bounds linkage" in text
    assert card.to_dict()["attacks"]["measured"] is None
    assert "no rows were held out" in text


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        (["-o", "card.pdf"], 2, "A card is a .html, .md or .json file; got card.pdf"),
        (["-o", "here.html"], 2, "exists already"),
        (["-o", "nowhere/card.html"], 2, "does not exist. Make it first"),
        (["--purpose", "x" * 2001], 2, "--purpose has 2,001 characters"),
        (["-c", "other.toml"], 2, "releases column 'age' through ClampMap"),
        (["-c", "fewer.toml"], 2, "declares 1 private columns"),
        (["-c", "nowhere.toml"], 2, "nowhere.toml"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_nothing_is_written(home, model, given, status, said):
    (home / "here.html").write_text("kept")
    fewer = CONFIG.replace('[columns."<script>x|y"]\nbounds = [0, 1]\n', "")
    (home / "fewer.toml").write_text(fewer)
    levels = '[mechanism]\nkind = "clamp-map"\nepsilon = 0.5\n\n'
    (home / "other.toml").write_text(levels + CONFIG[CONFIG.index("[columns.age]") :])
    before = sorted(home.iterdir())
    given = [home / word if "." in word and word[0] != "x" else word for word in given]
    found, out, words_said = run("card", home / "m.opboost", *given)
    assert (found, out) == (status, ""), words_said
    assert said in words_said.replace("\n", " ")
    assert sorted(home.iterdir()) == before
    assert (home / "here.html").read_text() == "kept"


def test_a_model_that_is_not_there_or_no_model_is_refused(home):
    assert run("card", home / "none.opboost")[0] == 5
    assert run("card", home / "local.toml")[0] == 5


def test_it_fits_every_width_and_one_sheet(home, model, tmp_path):
    page = tmp_path / "card.html"
    page.write_text(as_html(card_of(home / "m.opboost", home / "local.toml", "0.2.0")))
    with browsing() as browser:
        for width in (1280, 390):
            context = browser.new_context(viewport={"width": width, "height": 844})
            seen = context.new_page()
            seen.goto(page.as_uri())
            assert seen.evaluate("document.documentElement.scrollWidth") <= width
            box = seen.locator("#total").bounding_box()
            assert box["y"] + box["height"] <= 844  # visible without scrolling
            context.close()
        context = browser.new_context()
        seen = context.new_page()
        seen.goto(page.as_uri())
        printed = seen.pdf(prefer_css_page_size=True)
        context.close()
    assert printed.count(b"/Type /Page\n") == 1
