"""A gap as another symbol of a Window-map: every pair in integers, draws, and whole jobs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.budgets.certificates import certify
from opboost.columns.column_specs import column_from_dict, column_to_dict
from opboost.config import parse
from opboost.denoise.noise_matrix import noise_matrix_of
from opboost.ledger.packed_draws import from_bytes, to_bytes, width_of
from opboost.mechanisms import window_with_missing
from opboost.mechanisms.mechanism import distribution_of
from opboost.randomness.exact import exp_bounds
from tests.support.checks import ScriptedRng, assert_samples_follow

SHAPES = [
    # cells, total, near, width, clipped
    (2, 1.0, None, 0, True),
    (10, 0.72, None, None, False),
    (10, 1e-7, None, 0, False),
    (16, 1.0, None, 2, True),
    (16, 4.0, 4.0 / 7, None, False),
    (16, 4.0, 4.0 / 2.5, 1, True),
    (16, 8.0, 1.0, 0, False),
    (16, 4.0, 0.01, 0, True),
    (300, 2.0, None, 0, False),
    (300, 2.0, 0.3, 4, True),
    (300, 2.0, 0.3, None, False),
    (300, 60.0, 20.0, 2, False),
]


def window(cells, total, near, width, clipped):
    return op.WindowMap(op.Domain(-2, cells - 3), total, near, width, clipped)


def exact_row(m, value):
    """Return the row of a value or a gap as fractions; the last output is "missing"."""
    inner, law = m.mechanism, distribution_of(m.mechanism)
    gap, cell, bits = m.integer_symbol()
    reach, size = inner.reach, inner.domain.size + 2 * inner.reach
    if value is None:
        counts = [1] * inner.outputs.size
        if inner.clipped:
            counts[0] += reach
            counts[-1] += reach
        own, masses = Fraction(gap, 1 << bits), [Fraction(c, size) for c in counts]
    else:
        own = Fraction(cell, 1 << bits)
        if hasattr(law, "weights"):
            row = law.weights[value - inner.domain.L]
            masses = [Fraction(w, 1 << law.bits) for w in row]
        elif hasattr(law, "ratio"):
            low = 1 / (law.ratio + inner.domain.span)
            masses = [low * (law.ratio if x == value else 1) for x in inner.domain.values()]
        else:
            wide = [law.weight(o - value) for o in range(law.beyond.L, law.beyond.R + 1)]
            if inner.clipped:
                flank = reach + 1
                wide = [sum(wide[:flank]), *wide[flank:-flank], sum(wide[-flank:])]
            masses = [Fraction(w, law.whole()) for w in wide]
    row = [*((1 - own) * p for p in masses), own]
    assert sum(row) == 1
    return row


def assert_gap_is_covered(m):
    promise = m.guarantee()
    gap = exact_row(m, None)
    cells = m.mechanism.domain.values().tolist()
    for x in cells if len(cells) < 20 else [*cells[:3], *cells[100:102], *cells[-12:]]:
        row = exact_row(m, x)
        worst = max(max(a / b, b / a) for a, b in zip(gap, row, strict=True))
        bound = promise.bound(None, x)
        assert bound == promise.bound(x, None) == m.mechanism.total == promise.total
        assert worst * (1 << 512) <= exp_bounds(Fraction(bound), 512)[0]
        loss = m.loss(None, x)
        assert loss == m.loss(x, None) <= bound
        assert math.exp(loss) == pytest.approx(float(worst), rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_gap_is_at_most_the_total_from_every_cell_in_integers(shape):
    assert_gap_is_covered(op.WindowWithMissing(window(*shape)))


@pytest.mark.parametrize("shape", SHAPES)
def test_two_cells_lose_what_they_lose_without_gaps(shape):
    inner = window(*shape)
    m = op.WindowWithMissing(inner)
    low, high = inner.domain.L, inner.domain.R
    for x, y in [(low, high), (low, low + 1), (low, low)]:
        rows = exact_row(m, x), exact_row(m, y)
        worst = max(a / b for a, b in zip(*rows, strict=True))
        assert m.loss(x, y) == inner.loss(x, y) <= m.guarantee().bound(x, y)
        assert float(worst) <= math.exp(m.loss(x, y)) * (1 + 1e-12)
    assert m.loss(None, None) == m.guarantee().bound(None, None) == 0.0


def test_a_gap_that_is_reported_more_often_breaks_the_promise(monkeypatch):
    m = op.WindowWithMissing(window(16, 1.0, None, 2, True))
    gap, cell, bits = m.integer_symbol()
    monkeypatch.setattr(window_with_missing, "_integer_symbol", lambda _: (2 * gap, cell, bits))
    window_with_missing._gap_loss.cache_clear()
    with pytest.raises(AssertionError):
        assert_gap_is_covered(m)
    column = op.PrivateColumn(
        "a", op.NumericMapping(op.Domain(-2, 13), (0, 1)), m.mechanism, missing="symbol"
    )
    window_with_missing._gap_loss.cache_clear()
    assert not next(certify([column])).covered
    window_with_missing._gap_loss.cache_clear()


def test_the_total_is_nearly_used_up():
    for total in (0.72, 4.0):
        m = op.WindowWithMissing(op.WindowMap(op.Domain(0, 15), total))
        assert m.loss(None, 3) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("shape", [SHAPES[4], SHAPES[5], SHAPES[8], SHAPES[9]])
def test_reports_and_values_follow_the_distribution(shape):
    m = op.WindowWithMissing(window(*shape))
    outputs = m.mechanism.outputs
    for value in (None, m.mechanism.domain.L + 1):
        n = 200_000
        cells = np.full(n, m.mechanism.domain.L if value is None else value)
        y, reported = m.sample(cells, np.full(n, value is None), op.SeededRng(4))
        counts = np.bincount(y[~reported] - outputs.L, minlength=outputs.size)
        assert_samples_follow([*counts, reported.sum()], [float(p) for p in exact_row(m, value)])
        assert set(y[reported].tolist()) <= {m.stand_in}


def test_the_noise_matrix_is_the_distribution():
    for shape in SHAPES[:8]:
        m = op.WindowWithMissing(window(*shape))
        matrix = noise_matrix_of(m).matrix
        for i, value in enumerate([*m.mechanism.domain.values().tolist(), None]):
            assert matrix[i] == pytest.approx([float(p) for p in exact_row(m, value)], abs=1e-12)


def test_a_coin_on_the_threshold_takes_more_bits():
    m = op.WindowWithMissing(window(16, 1.0, None, 2, True))
    gap, cell, bits = m.integer_symbol()
    rest = bits - 64
    for gone, chance in [(True, gap), (False, cell)]:
        low = chance & ((1 << rest) - 1)
        for more, expected in [(low - 1, True), (low, False)]:
            rng = ScriptedRng([[chance >> rest]], [more])
            assert m._reports(np.array([gone]), rng).tolist() == [expected]


def test_a_uniform_draw_between_two_outputs_takes_more_bits():
    m = op.WindowWithMissing(window(10, 1.0, None, 1, False))  # 12 outputs from -3 on
    word = 2**64 // 12  # the last word before the second output
    for more, expected in [(0, -3), (2**64 - 1, -2)]:
        assert m._uniform(1, ScriptedRng([[word]], [more])).tolist() == [expected]


COLUMN = op.PrivateColumn(
    "age",
    op.NumericMapping(op.Domain(0, 15), (0, 100)),
    op.WindowMap(op.Domain(0, 15), 2.0, near=0.5, clipped=False),
    missing="symbol",
)


def test_a_column_keeps_its_policy_and_its_total():
    assert column_from_dict(column_to_dict(COLUMN)) == COLUMN
    assert COLUMN.guarantee() == op.CappedDLDP(0.5, 2.0, op.Domain(0, 15), gaps=True)
    assert str(COLUMN.guarantee()).endswith("at most 2 for any pair, missing values included")
    assert COLUMN.scaled(0.5).guarantee().total == 1.0
    assert COLUMN.scaled(0.5).flagged() == COLUMN.flagged().scaled(0.5)
    both = COLUMN.guarantee() + COLUMN.guarantee()
    assert both.bound(None, 3) == both.total == 4.0
    assert next(certify([COLUMN])).covered


def test_draws_survive_the_ledger():
    prepared = COLUMN.prepare(pd.DataFrame({"age": np.r_[np.full(300, np.nan), np.arange(100.0)]}))
    out = COLUMN.release(prepared, op.SeededRng(1))
    assert 0 < out[0].missing.sum() < 400
    back = from_bytes(COLUMN, to_bytes(COLUMN, out, width_of(COLUMN)))
    assert (back[0].missing == out[0].missing).all()
    kept = ~out[0].missing
    assert (back[0].values[kept] == out[0].values[kept]).all()


def test_other_mechanisms_have_no_symbol():
    grid = op.Domain(1, 10)
    with pytest.raises(op.ColumnError, match=r"'pay' has missing='symbol'.*ClampMap.*op\.Flag"):
        op.PrivateColumn(
            "pay", op.NumericMapping(grid, (0, 1)), op.ClampMap(grid, 1.0), missing="symbol"
        )
    with pytest.raises(op.ColumnError, match=r"'city' is nominal.*Declare a category"):
        op.PrivateColumn("city", None, op.UnaryEncoding(["a", "b"], 1.0), missing="symbol")
    with pytest.raises(op.ParameterError, match="Only a Window-map"):
        op.WindowWithMissing(op.ClampMap(grid, 1.0))


def test_ordered_categories_with_gaps():
    grid = op.Domain(1, 3)
    column = op.PrivateColumn(
        "size",
        op.OrdinalMapping(grid, op.Ordered(["s", "m", "l"])),
        op.WindowMap(grid, 20.0),
        missing="symbol",
    )
    out = column.release(column.prepare(pd.DataFrame({"size": ["s", None, "l"]})), op.SeededRng(1))
    assert out[0].missing.tolist() == [False, True, False]
    assert out[0].values[[0, 2]].tolist() == [1, 3]


def test_the_audit_finds_nothing_against_it_and_catches_a_broken_one(monkeypatch):
    m = op.WindowWithMissing(window(4, 1.0, None, 1, True))
    found = op.audit(m, samples=60_000, pairs=[(None, 0), (1, None)])
    assert found.sound
    assert max(p.lower for p in found.pairs) > 0.8
    gap, cell, bits = m.integer_symbol()
    monkeypatch.setattr(
        window_with_missing.WindowWithMissing, "integer_symbol", lambda _: (2 * gap, cell, bits)
    )
    assert not op.audit(m, samples=60_000, pairs=[(None, 0)]).sound


def gappy(n=6000):
    """Return a table whose label depends on the value and on the gap."""
    rng = np.random.default_rng(0)
    age, pay = rng.uniform(0, 100, n), rng.uniform(0, 10, n)
    gone = rng.random(n) < 0.3
    y = (np.where(gone, 80, age) + 2 * pay > 60).astype(int)
    return pd.DataFrame({"age": np.where(gone, np.nan, age), "pay": pay}), y


@pytest.mark.parametrize("denoise", ["auto", False])
def test_an_estimator_learns_from_gaps(denoise):
    table, y = gappy()
    model = op.OpBoostClassifier(
        op.WindowMap(op.Domain(0, 15), 4.0, clipped=False),
        bounds={"age": (0, 100), "pay": (0, 10)},
        missing="symbol",
        denoise=denoise,
        noise_rng=op.SeededRng(1),
        random_state=0,
    ).fit(table, y)
    assert model.score(table, y) > 0.9
    gone = table["age"].isna()
    assert model.predict(table[gone]).mean() > 0.9  # a gap indicates the label


def test_a_file_and_two_parties():
    table, y = gappy(3000)
    plan = parse(
        "[grid]\nlower = 0\nupper = 15\n"
        '[mechanism]\nkind = "window-map"\ntotal = 6.0\nnear = 1.5\nclipped = false\n'
        '[columns.age]\nbounds = [0, 100]\nmissing = "symbol"\n[columns.pay]\nbounds = [0, 10]\n',
        "b.toml",
    )
    assert plan.guarantee().total == 12.0
    for settings in ({}, {"codebook": "cuts"}, {"units": "grid", "names": "hidden"}):
        party = op.FeatureParty(table, plan, **settings)
        model = op.LabelParty(None, y, random_state=0).train([op.MemoryChannel(party)])
        assert model.guarantee_.total == 12.0
        if not settings.get("names"):
            assert model.score(table, y) > 0.9
    with pytest.raises(op.ConfigError, match=r"\[columns.age\].*only a Window-map"):
        parse(
            '[mechanism]\nepsilon = 1.0\n[columns.age]\nbounds = [0, 1]\nmissing = "symbol"\n',
            "b.toml",
        )
