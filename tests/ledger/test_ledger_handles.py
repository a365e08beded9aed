"""Look-ups in runs find people in any order, and read their records as written."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from opboost.columns.row_ids import id_bytes
from opboost.errors import DataError
from opboost.ledger import Drawing
from opboost.ledger.handle_index import Handles, rough_order
from opboost.ledger.lookup import whole_rows
from opboost.ledger.search_kernel import recall
from tests.support.ledger import AGE, CITY, opened, release, table


def some_handles(rng, count, shape):
    """Return pairs of words: uniform, all in one corner, or with few different first words."""
    words = rng.integers(0, 2**64, size=(count, 2), dtype=np.uint64)
    if shape == "corner":
        words[:, 0] >>= np.uint64(40)
    if shape == "alike":
        words[:, 0] = rng.choice(np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64), count)
    return np.unique(words, axis=0)


@pytest.mark.parametrize("shape", ["uniform", "corner", "alike"])
@pytest.mark.parametrize("count", [0, 1, 31, 64, 5000])
def test_handles_are_found_where_they_stand(shape, count):
    rng = np.random.default_rng(count)
    known = some_handles(rng, count, shape)
    others = some_handles(rng, 300, shape)
    wanted = rng.permutation(np.concatenate([known, others, known[:5]]))
    where = {tuple(pair): place for place, pair in enumerate(known.tolist())}
    expected = [where.get(tuple(pair), -1) for pair in wanted.tolist()]
    index = Handles(known)
    assert index.places(wanted).tolist() == expected
    assert index.places(wanted, np.arange(len(wanted))).tolist() == expected
    assert sorted(rough_order(wanted)) == list(range(len(wanted)))


def recalled(rng_seed, *, whole, width=20, people=400, rows=700):
    """Return what two runs hold, by the shortcut for whole records or column by column."""
    rng = np.random.default_rng(rng_seed)
    columns = np.array([(j, j, j, j, 1, -1) for j in range(width)], dtype=np.int64)
    columns = columns[rng.permutation(width)[: width - 3 * (rng_seed % 2)]]
    run = SimpleNamespace(columns=range(width))
    state = [np.zeros((rows, width), dtype=t) for t in (np.bool_, np.bool_, np.uint8)]
    touched, tags = np.zeros(rows, dtype=np.bool_), np.zeros((rows, width), dtype=np.uint64)
    repeats, marked = 0, []
    for share in (0.5, 0.0):
        says = rng.random((people, width)) >= share * (rng.random((people, 1)) < 0.5)
        sent = says & (rng.random((people, width)) >= share * (rng.random((people, 1)) < 0.5))
        draws = rng.integers(1, 255, size=(people, width), dtype=np.uint8)
        records = (np.packbits(says, axis=1), np.packbits(sent, axis=1), draws)
        places = rng.integers(-1, people, size=rows)
        bits, spans = whole_rows(run, columns)
        fast = (bits if whole else bits[:0], spans)
        members = np.zeros(people, dtype=np.bool_)
        order = rng.permutation(rows)
        found = recall(order, places, records, columns, fast, tags, members, touched, *state)
        repeats += found[0]
        marked.append(members)
    return repeats, [*marked, touched, *state]


@pytest.mark.parametrize("seed", range(6))
def test_whole_records_are_read_as_columns_are(seed):
    repeats, found = recalled(seed, whole=True)
    expected, slow = recalled(seed, whole=False)
    assert repeats == expected
    for one, other in zip(found, slow, strict=True):
        np.testing.assert_array_equal(one, other)


def test_two_columns_of_a_run_that_answer_for_one_are_read_one_by_one():
    run = SimpleNamespace(columns=range(2))
    once = np.array([(0, 0, 0, 0, 1, -1), (1, 1, 1, 1, 1, -1)], dtype=np.int64)
    twice = np.array([(0, 0, 0, 0, 1, -1), (0, 1, 1, 0, 1, -1)], dtype=np.int64)
    tagged = np.array([(0, 0, 0, 0, 1, 1), (1, 1, 9, 1, 1, 10)], dtype=np.int64)
    assert [len(whole_rows(run, columns)[0]) for columns in (once, twice, tagged)] == [1, 0, 0]
    assert whole_rows(run, once)[1].tolist() == [[0, 0, 2]]


@pytest.mark.parametrize("apart", [True, False])
def test_a_known_person_who_stands_twice_is_refused(tmp_path, apart):
    """Both rows may be in one piece of the table or in two; everybody is already known."""
    people = table()
    with opened(tmp_path) as ledger:
        release(ledger, people)
        rows = people.iloc[[*range(50), 7, 7]]
        pieces = [rows[:50], rows[50:]] if apart else [rows]
        with pytest.raises(DataError, match=r"2 rows repeat an ID"):
            _drawn(ledger, pieces)
        assert ledger.head().kind == "abort"


@pytest.mark.parametrize("both", [True, False])
def test_a_person_of_several_runs_who_stands_once_is_no_repeat(tmp_path, both):
    people = table(city=["a"] * 200)
    with opened(tmp_path) as ledger:
        release(ledger, people, (AGE,))
        release(ledger, people, (CITY,), job="2", new_attributes=["city"])
        _, made = release(ledger, people, (AGE, CITY) if both else (CITY,), job="3")
        assert (made.new_cells, made.old_cells) == (0, 400 if both else 200)
        twice = people.assign(id=[*range(199), 7])
        with pytest.raises(DataError, match=r"1 rows repeat an ID"):
            release(ledger, twice, (AGE, CITY), job="4")


def _drawn(ledger, pieces):
    with Drawing(ledger, (AGE,), ["age"], job="2", recipient="rival") as drawing:
        for piece in pieces:
            ids = id_bytes([piece["id"].tolist()], ["id"], spelling=ledger.ids)
            drawing.draw(ids, [AGE.prepare(piece)])
