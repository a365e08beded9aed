"""Scores instead of columns: exact rules, charges, repeats and refusals, in one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.budgets.record_plan import RecordPlan
from opboost.config import Plan
from opboost.config.sections import BoosterSection
from opboost.errors import ParameterError, PeerError, PrivacyError
from opboost.ledger import Caps, Ledger
from opboost.ledger.person_totals import totals
from opboost.ledger.renewal import renew
from opboost.protocol.messages import Schema, ScoreTask
from opboost.scores.score_budget import ScoreBudget
from opboost.scores.score_model import ScoreModel

N = 3000
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "id": [f"p{i}" for i in range(2 * N)],
        "age": RNG.uniform(18, 90, 2 * N),
        "pay": RNG.uniform(0, 100, 2 * N),
        "town": RNG.choice(["north", "south", "east"], 2 * N),
        "own": RNG.uniform(0, 1, 2 * N),
    }
)
TRUTH = (
    TABLE.age / 20 + (TABLE.pay > 50) * 3 + (TABLE.town == "south") * 2 + 2 * TABLE.own
).to_numpy()
PLAN = RecordPlan.of(
    op.Budget.record(8.0),
    bounds={"age": (18, 90), "pay": (0, 100)},
    categories={"town": ["north", "south", "east"]},
)
OLD, NEW = TABLE[:N], TABLE[N:]


def schema(score: Any = 6.0, plan: RecordPlan = PLAN, **more: Any) -> Plan:
    names = tuple(str(c.name) for c in plan.columns)
    budget = None if score is None else ScoreBudget(score, **more)
    return Plan(
        "shop.toml",
        plan.columns,
        (),
        (),
        plan.budget,
        BoosterSection(),
        names,
        plan,
        score=budget,
    )


def ledger(folder: Path, caps: Caps | None = None) -> Ledger:
    return Ledger(folder / "ledger", folder / "ledger.key", caps or Caps(person=100.0))


def shop(
    table: pd.DataFrame, book: Ledger, plan: Plan | None = None, **more: Any
) -> op.FeatureParty:
    columns = ["id", "age", "pay", "town"]
    plan = plan or schema()
    return op.FeatureParty(table[columns], plan, ledger=book, ids="id", name="shop", **more)


def asking(table: pd.DataFrame, **more: Any) -> op.LabelParty:
    return op.LabelParty(
        table[["own"]], None, ids=table["id"].tolist(), **{"share_trees": True, **more}
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ledger(tmp_path_factory.mktemp("train")) as book:
        bank = op.LabelParty(
            OLD[["own"]],
            TRUTH[:N],
            ids=OLD["id"].tolist(),
            structure="by-party",
            random_state=0,
            booster_params={"n_estimators": 40, "max_depth": 3},
        )
        return bank.train([op.MemoryChannel(shop(OLD, book))])


def predicted(model: Any, book: Ledger, table: pd.DataFrame = NEW, **more: Any) -> Any:
    channel = op.MemoryChannel(shop(table, book, **more))
    return asking(table).predict(model, [channel], release="score")


def r2(found: Any, truth: Any) -> float:
    return 1 - float(np.mean((found - truth) ** 2) / np.var(truth))


def test_a_released_score_predicts_better_than_released_columns(model: Any, tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        by_score = predicted(model, book)
        channel = op.MemoryChannel(shop(NEW, book))
        by_columns = asking(NEW).predict(model, [channel])
    truth = TRUTH[N:]
    assert r2(by_score.prediction, truth) > r2(by_columns.prediction, truth) + 0.05
    assert r2(by_score.prediction, truth) > 0.7
    assert by_score.guarantee.total == pytest.approx(8.0 + 6.0)
    assert "scores in predictions" not in str(by_score.guarantee)


def test_the_total_that_training_prints_includes_scores_to_come(
    model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model.scores_later_ == 6.0
    assert "not covered: scores in predictions of shop, at most 6 more" in str(model.guarantee_)
    with ledger(tmp_path) as book:
        bank = op.LabelParty(
            OLD[["own"]],
            TRUTH[:N],
            ids=OLD["id"].tolist(),
            denoise=False,
            booster_params={"n_estimators": 2},
        )
        bank.train([op.MemoryChannel(shop(OLD, book))])
    assert capsys.readouterr().err.rstrip().endswith("at most 14 revealed per person")


def test_a_saved_model_asks_for_the_same_score(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "m.opboost")
    again = op.load(tmp_path / "m.opboost")
    for party, part in model.trained_model_.scores.parties.items():
        other = again.trained_model_.scores.parties[party]
        assert part.model.to_plain() == other.model.to_plain()
        assert part.step == other.step


def test_leaves_are_few_bits_and_of_enough_people(model: Any) -> None:
    part = model.trained_model_.scores.parties["shop"]
    assert np.abs(part.model.trees.value).max() == 127
    assert (part.model.trees.value == np.rint(part.model.trees.value)).all()
    plain = PLAN.columns
    desensitizer = {c.name: c.prepare(OLD) for c in plain}
    from opboost.scores.clean_features import feature_block

    rows = np.hstack([feature_block(c, desensitizer[c.name]) for c in plain])
    counts = part.model.trees.counts(rows)[part.model.trees.left < 0]
    assert counts.min() >= 5  # clean rows; training enforces the rule on denoised ones


def test_one_draw_stands_whatever_the_values_are_now(model: Any, tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        first = predicted(model, book)
        spent = totals(book)[""].most
        changed = NEW.assign(age=18.0, pay=0.0)
        again = predicted(model, book, changed)
        assert (first.prediction == again.prediction).all()
        assert totals(book)[""].most == spent == 6 * 10**9


def test_a_ledger_that_draws_changed_values_anew_repeats_scores_too(
    model: Any, tmp_path: Path
) -> None:
    with Ledger(
        tmp_path / "ledger", tmp_path / "key", Caps(person=100.0), changed="redraw"
    ) as book:
        first = predicted(model, book)
        again = predicted(model, book, NEW.assign(age=18.0, pay=0.0))
        assert (first.prediction == again.prediction).all()


def altered(model: Any) -> Any:
    """The same model with one leaf changed by one step."""
    made = op.load(saved(model))
    part = made.trained_model_.scores.parties["shop"]
    value = part.model.trees.value
    leaf = int(np.flatnonzero(part.model.trees.left < 0)[0])
    value[leaf] += -1 if value[leaf] > 0 else 1
    return made


def saved(model: Any) -> Path:
    import tempfile

    path = Path(tempfile.mkdtemp()) / "m.opboost"
    model.save(path)
    return path


def test_one_leaf_changed_is_another_model_and_refused_in_the_same_period(
    model: Any, tmp_path: Path
) -> None:
    with ledger(tmp_path) as book:
        predicted(model, book)
        entries = book.head().number
        with pytest.raises(PrivacyError, match="scored by another model in this period"):
            predicted(altered(model), book)
        assert book.head().number == entries
        renew(book)
        predicted(altered(model), book)
        assert totals(book)[""].most == 12 * 10**9  # caps cover all periods


def test_two_models_where_the_party_allows_them_are_charged_both(
    model: Any, tmp_path: Path
) -> None:
    with ledger(tmp_path) as book:
        plan = schema(models=2)
        predicted(model, book, plan=plan)
        predicted(altered(model), book, plan=plan)
        assert totals(book)[""].most == 12 * 10**9
        assert plan.total == 8 + 12


def test_a_score_is_charged_in_full_to_every_attribute_that_it_reads(
    model: Any, tmp_path: Path
) -> None:
    with ledger(tmp_path) as book:
        predicted(model, book)
        found = totals(book)
        assert {name: found[name].most for name in ("age", "pay", "town")} == dict.fromkeys(
            ("age", "pay", "town"), 6 * 10**9
        )
    with ledger(tmp_path / "capped", Caps(attribute=5.0, person=100.0)) as book:
        with pytest.raises(PrivacyError, match="no more than 5 may be spent"):
            predicted(model, book)
        assert not book.runs()


def test_people_of_the_training_are_charged_both(model: Any, tmp_path: Path) -> None:
    with ledger(tmp_path, Caps(person=14.0)) as book:
        bank = op.LabelParty(OLD[["own"]], TRUTH[:N], ids=OLD["id"].tolist(), denoise=False)
        bank.train([op.MemoryChannel(shop(OLD, book))])
        predicted(model, book, OLD)  # the period's record total does not include it
        assert totals(book)[""].most == pytest.approx(14 * 10**9, rel=1e-6)
    with ledger(tmp_path / "less", Caps(person=13.9)) as book:
        bank.train([op.MemoryChannel(shop(OLD, book))])
        with pytest.raises(PrivacyError, match=r"no more than 13\.9 may be spent"):
            predicted(model, book, OLD)


def test_columns_may_be_released_after_a_score(model: Any, tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        predicted(model, book)
        asking(NEW).predict(model, [op.MemoryChannel(shop(NEW, book))])
        assert totals(book)[""].most == pytest.approx(14 * 10**9, rel=1e-6)


def refused(match: str, model: Any, book: Ledger, **more: Any) -> None:
    """Check that the score is refused in one sentence, and that nothing of the job is left."""
    party = shop(NEW, book, **more)
    entries = book.head().number
    with pytest.raises(PrivacyError, match=match):
        asking(NEW).predict(model, [op.MemoryChannel(party)], release="score")
    assert book.head().number == entries
    assert not list(party._jobs.state.glob("*"))


def test_a_party_that_declined_says_so_and_leaves_nothing(model: Any, tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        refused("releases no scores", model, book, plan=schema(None))


def test_nobody_draws_if_one_of_several_parties_declined(tmp_path: Path) -> None:
    few = TABLE[:200]
    near = op.RecordPlan.of(op.Budget.record(8.0), bounds={"own": (0, 1)})

    def telco(table: pd.DataFrame, book: Ledger, score: Any) -> op.MemoryChannel:
        plan, columns = schema(score, near), ["id", "own"]
        return op.MemoryChannel(
            op.FeatureParty(table[columns], plan, ledger=book, ids="id", name="telco")
        )

    with ledger(tmp_path / "shop") as book, ledger(tmp_path / "telco") as other:
        given = {"structure": "by-party", "denoise": False, "booster_params": {"n_estimators": 8}}
        bank = op.LabelParty(None, TRUTH[:200], ids=few["id"].tolist(), **given, held_out=0)
        made = bank.train([op.MemoryChannel(shop(few, book)), telco(few, other, 6.0)])
        heads = book.head(), other.head()
        asks = op.LabelParty(None, None, ids=few["id"].tolist(), share_trees=True)
        parties = [op.MemoryChannel(shop(few, book)), telco(few, other, None)]
        with pytest.raises(PrivacyError, match="releases no scores"):
            asks.predict(made, parties, release="score")
        assert (book.head(), other.head()) == heads


def test_scores_need_a_cap_per_person(model: Any, tmp_path: Path) -> None:
    with ledger(tmp_path, Caps(attribute=50.0)) as book:
        refused("only under a cap", model, book)


def test_a_party_with_a_radius_opts_in(model: Any, tmp_path: Path) -> None:
    near = tuple(
        replace(c, mechanism=replace(c.mechanism, near=c.mechanism.total / 4))
        if isinstance(c.mechanism, op.WindowMap)
        else c
        for c in PLAN.columns
    )
    with ledger(tmp_path) as book:
        plan = replace(schema(), private=near)
        refused("near values can have distant scores", model, book, plan=plan)
        allowed = replace(plan, score=ScoreBudget(6.0, despite_radius=True))
        assert len(predicted(model, book, plan=allowed).prediction) == N


def test_the_label_party_opts_in_and_needs_a_sum_over_parties(model: Any, tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        party = op.MemoryChannel(shop(NEW, book))
        with pytest.raises(ParameterError, match="share_trees"):
            asking(NEW, share_trees=False).predict(model, [party], release="score")
        bank = op.LabelParty(OLD[["own"]], TRUTH[:N], ids=OLD["id"].tolist(), denoise=False)
        free = bank.train([op.MemoryChannel(shop(OLD, book))])
        with pytest.raises(ParameterError, match="not a sum over parties"):
            asking(NEW).predict(free, [party], release="score")
        with pytest.raises(ParameterError, match="'columns' or 'score'"):
            asking(NEW).predict(model, [party], release="rows")  # type: ignore[arg-type]


class Meddling(op.MemoryChannel):
    """A label party that asks for something other than its model's score."""

    def __init__(self, party: op.FeatureParty, change: Any) -> None:
        super().__init__(party)
        self._change = change

    def want_score(self, task: ScoreTask) -> None:
        plain = task.score_model().to_plain()
        self._change(plain)
        super().want_score(ScoreTask.of(task.job, _Raw(plain)))  # type: ignore[arg-type]


class _Raw:
    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def to_plain(self) -> Any:
        return self._plain


def _tree(plain: Any) -> Any:
    return next(t for t in plain[3] if len(t[1]) > 1)


def _strange_column(plain: Any) -> None:
    _tree(plain)[1][0] = 99


def _between_cells(plain: Any) -> None:
    _tree(plain)[2][0] = 1000


def _circle(plain: Any) -> None:
    _tree(plain)[3][0] = 0


def _large_leaf(plain: Any) -> None:
    _tree(plain)[6][-1] = 5000


def _many_cells(plain: Any) -> None:
    plain[1] = list(range(64))


def _fraction(plain: Any) -> None:
    _tree(plain)[2][0] = 1.5


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (_strange_column, "not in the training plan"),
        (_between_cells, "where no cell of its declaration ends"),
        (_circle, "reached twice or never"),
        (_large_leaf, "too many bits"),
        (_many_cells, "too many"),
        (_fraction, "whole numbers"),
    ],
)
def test_trees_that_are_not_over_declared_cells_are_refused(
    model: Any, tmp_path: Path, change: Any, match: str
) -> None:
    with ledger(tmp_path) as book:
        party = shop(NEW, book)
        with pytest.raises(PeerError, match=match):
            asking(NEW).predict(model, [Meddling(party, change)], release="score")
        assert not book.runs()
        assert not list(party._jobs.state.glob("*"))


def test_a_second_score_in_one_job_is_refused(model: Any, tmp_path: Path) -> None:
    from opboost.parties.label.label_party import _new_job

    with ledger(tmp_path) as book:
        party, welcome = shop(NEW, book, plan=schema(models=5)), _new_job()
        part = model.trained_model_.scores.parties["shop"].model
        first = party.score_release(welcome, ScoreTask.of(welcome.job, part))
        assert party.score_release(welcome, ScoreTask.of(welcome.job, part)) == first
        other = ScoreModel(part.trees, part.cuts[:-1])
        with pytest.raises(PrivacyError, match="second, different score"):
            party.score_release(welcome, ScoreTask.of(welcome.job, other))


def test_an_answer_of_another_kind_is_refused(model: Any, tmp_path: Path) -> None:
    class Columns(op.MemoryChannel):
        """A feature party that sends columns although a score was requested."""

        def open_score(self, welcome: Any) -> Schema:
            return self.open(welcome)

    with ledger(tmp_path) as book:
        channel = Columns(shop(NEW, book))
        with pytest.raises(PeerError, match="something other than the requested score"):
            asking(NEW).predict(model, [channel], release="score")


def test_forgotten_people_have_no_score(model: Any, tmp_path: Path) -> None:
    from opboost.columns.row_ids import id_bytes
    from opboost.ledger.forget_person import erase

    with ledger(tmp_path) as book:
        predicted(model, book)
        erase(book, id_bytes([["p3001"]], ["id"], spelling="canonical")[0])
        found = predicted(model, book)
        assert len(found.rows) == N - 1


@pytest.mark.parametrize("booster", ["lightgbm", "hist-gbdt"])
def test_several_classes_go_through_a_codebook(booster: str, tmp_path: Path) -> None:
    y = np.digitize(TRUTH, np.quantile(TRUTH, [0.25, 0.5, 0.75]))
    classes = np.array(["a", "b", "c", "d"])[y]
    rounds = "n_estimators" if booster == "lightgbm" else "max_iter"
    with ledger(tmp_path) as book:
        bank = op.LabelParty(
            OLD[["own"]],
            classes[:N],
            ids=OLD["id"].tolist(),
            structure="by-party",
            booster=booster,
            booster_params={rounds: 20},
            random_state=0,
        )
        made = bank.train([op.MemoryChannel(shop(OLD, book))])
        found = predicted(made, book)
        columns = asking(NEW).predict(made, [op.MemoryChannel(shop(NEW, book))])
    assert found.probabilities.sum(axis=1) == pytest.approx(1)
    right = np.mean(found.prediction == classes[N:])
    assert right > np.mean(columns.prediction == classes[N:]) + 0.03
