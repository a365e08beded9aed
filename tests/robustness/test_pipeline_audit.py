"""The whole pipeline, audited with fixed randomness: sound ones pass, faulty ones are caught."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import opboost as op
from opboost.mechanisms.mechanism import distribution_of
from robustness.audits.faulty_pipelines import FAULTY, RECORD_BUDGET, SOME_RECORDS, SOUND
from robustness.audits.pipeline_trial import (
    Pipeline,
    audit,
    cases_of,
    distribution,
    keys_of,
    scripted,
    table_cases,
    worst_ratio,
)


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_pipeline_keeps_its_promise_in_everything_that_it_sends(name):
    found = audit(SOUND[name], SOME_RECORDS)
    assert found.finding is None
    assert 0.999 < found.worst <= 1  # and the audit sees the whole loss


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_pipeline_is_caught(name):
    assert audit(FAULTY[name], SOME_RECORDS).finding is not None


def test_the_cases_of_a_word_have_the_chances_of_the_table():
    """The enumeration equals sampling exactly, even where a word equals a threshold."""
    m = op.ClampMap(op.Domain(1, 3), 0.5)
    weights, bits = m.integer_table()
    cases = table_cases(distribution_of(m))
    for x in (1, 2, 3):
        chances = dict.fromkeys((1, 2, 3), Fraction(0))
        for case in cases:
            with scripted([case]):
                chances[int(m.sample(np.array([x]))[0])] += case.chance
        assert [chances[y] * 2**bits for y in (1, 2, 3)] == list(weights[x - 1])


def test_the_cases_of_every_word_add_up_to_one():
    for pipeline in SOUND.values():
        for column in pipeline.promised().private:
            for cases in cases_of(column):
                assert sum(case.chance for case in cases) == 1


def test_a_record_leaves_a_transcript_for_each_output_and_no_more():
    pipeline = Pipeline(RECORD_BUDGET)
    for key, chosen in keys_of(RECORD_BUDGET):
        found = distribution(pipeline, (2, 2), key, chosen)
        assert len(found) == (4 if chosen[0] else 3)  # three cells and the symbol for a gap


def test_transcripts_that_only_one_record_gives_have_no_ratio():
    ours = {(b"a",): Fraction(1)}
    assert worst_ratio(ours, {(b"b",): Fraction(1)}) is None
    assert worst_ratio(ours, ours) == 1
