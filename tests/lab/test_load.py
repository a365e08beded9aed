"""The load benchmark on a small scale: parties that send at the same time."""

from __future__ import annotations

from opboost_lab.bench.load import LIMIT_MB, Load, run


def test_all_parties_are_served_and_the_gate_stays_small():
    found = run(Load(parties=3, rows=20_000, columns=3))
    assert set(found.parties) == {"party-1", "party-2", "party-3"}
    assert min(found.parties.values()) > 0
    assert 0 < found.gate_mb < LIMIT_MB
    assert found.bytes > 3 * 3 * 20_000 * 2 / 8
    assert found.training > 0
