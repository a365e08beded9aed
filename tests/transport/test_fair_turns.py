"""Parties that send at the same time take turns, and none waits for another's network."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from opboost.columns.codebook import Codebook
from opboost.errors import WireError
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.protocol.column_streams import PIECE_ROWS, ColumnHead, batch, digest, pieces
from opboost.protocol.entropy_coding import Coder
from opboost.protocol.messages import ColumnSchema, Schema
from opboost.protocol.stored_columns import read_column
from opboost.transport.label.fair_turns import FairTurns
from opboost.transport.label.receive_columns import receive_column
from robustness.fuzz.targets.messages import columns

JOB = "20260102T030405Z-00000000"


def waiting(turns, party, work, order):
    """Start a thread that waits for a turn; return it once it waits."""
    before = len(turns._waiting)

    def wait():
        with turns.turn(party, work):
            order.append(party)

    thread = threading.Thread(target=wait)
    thread.start()
    end = time.monotonic() + 30
    while len(turns._waiting) == before and time.monotonic() < end:
        time.sleep(0.001)
    return thread


def test_the_party_with_the_least_work_is_next_and_of_two_the_one_that_waits_longer():
    turns, order = FairTurns(1), []
    with turns.turn("shop", 100):
        names = ["shop", "shop", "clinic", "clinic", "gym", "gym"]
        threads = [waiting(turns, name, 40, order) for name in names]
    for thread in threads:
        thread.join(30)
    # Work so far:  100 0 0, 100 40 0, 100 40 40, 100 80 40, 100 80 80
    assert order == ["clinic", "gym", "clinic", "gym", "shop", "shop"]


def test_work_that_comes_to_nothing_counts_and_the_turn_passes_on():
    turns, order = FairTurns(1), []
    with pytest.raises(WireError), turns.turn("shop", 100):
        raise WireError("A piece of codes is damaged.")
    with turns.turn("gym", 1):
        threads = [waiting(turns, name, 1, order) for name in ("shop", "clinic")]
    for thread in threads:
        thread.join(30)
    assert order == ["clinic", "shop"]
    with turns.turn("shop", 1):
        assert order[-1] == "shop"


def test_no_more_turns_are_granted_than_there_are():
    turns, lock, at_once, most = FairTurns(2), threading.Lock(), [], []

    def work(party):
        for _ in range(20):
            with turns.turn(party, 1):
                with lock:
                    at_once.append(party)
                    most.append(len(at_once))
                time.sleep(0.0005)
                with lock:
                    at_once.remove(party)

    threads = [threading.Thread(target=work, args=(f"party-{n}",)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert max(most) == 2
    assert len(most) == 100


def test_a_turn_is_taken_for_a_piece_that_has_come_and_given_back_before_the_next(tmp_path):
    rows = 2 * PIECE_ROWS + 7
    codes = np.random.default_rng(0).integers(0, 3, rows).astype(np.uint8)
    coder = Coder.of_counts(np.bincount(codes))
    parts = [codes[piece] for piece in pieces(rows)]
    head = ColumnHead(0, rows, False, coder, Codebook(np.array([2, 3, 5])), digest(parts, 3))
    described = (ColumnSchema.of(columns()[0], "age", "raw"),)
    announced = AnnouncedColumns.of(
        Schema("shop", JOB, rows, bytes(32), "full", "raw", described, 0)
    )
    seen, held = [], []

    @contextmanager
    def turn(work):
        held.append(work)
        seen.append(work)
        yield
        held.pop()

    def arriving():
        for part in parts:
            assert not held, "a turn is held while waiting for the network"
            yield batch(coder.encode(part))
        assert not held

    target = tmp_path / "00000.arrow"
    schema = head.to_schema()
    receive_column(target, 0, announced, schema, arriving(), lambda size: None, turn)
    assert seen == [PIECE_ROWS, PIECE_ROWS, 7]
    assert (read_column(target)[1].codes == codes).all()
