"""The label party's points, as a feature party stores them."""

from __future__ import annotations

import numpy as np
import pytest

from opboost.protocol.messages import Points
from opboost.psi.curve_points import PIECE_POINTS, piece_count, piece_of
from opboost.transport.feature import network_psi
from opboost.transport.feature.network_psi import KeptPoints

JOB = "20260102T030405Z-01020304"


@pytest.mark.parametrize("max_bytes", [1, 1 << 23])
def test_pieces_come_back_in_any_order_and_leave_nothing(tmp_path, monkeypatch, max_bytes):
    monkeypatch.setattr(network_psi, "MAX_BYTES_IN_MEMORY", max_bytes)
    rng, total = np.random.default_rng(0), 2 * PIECE_POINTS + 5
    pieces = []
    for number in range(piece_count(total)):
        place = piece_of(number, total)
        words = rng.integers(0, 2**62, (place.stop - place.start, 4), dtype=np.uint64)
        pieces.append(Points(JOB, "label", bytes(16), total, number, words.tobytes()))
    with KeptPoints(tmp_path) as kept:
        for piece in pieces:
            assert not kept.whole
            kept.add(piece)
            assert kept.piece(0) == pieces[0]  # reading does not affect where pieces are added
        assert kept.whole
        assert len(kept) == 3
        assert [kept.piece(n) for n in (2, 0, 1)] == [pieces[n] for n in (2, 0, 1)]
    assert not list(tmp_path.iterdir())
