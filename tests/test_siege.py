"""Peers that mean harm: every attack of the catalogue on one label party, which goes on serving."""

from __future__ import annotations

import pytest
from hardening.hostile import CATALOGUE, run


@pytest.fixture(scope="module")
def report():
    return run(len(CATALOGUE), seed=20, crowd=300)


@pytest.mark.parametrize("name", sorted(attack.name for attack in CATALOGUE))
def test_an_attack_is_refused_and_others_are_served(report, name):
    (outcome,) = (o for o in report.outcomes if o.attack == name)
    assert outcome.survived, outcome
    assert not outcome.died, outcome


def test_the_honest_parties_finish_the_job(report):
    assert report.finished
