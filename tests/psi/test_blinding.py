"""Private set intersection: properties of keys, blinding and matching."""

from __future__ import annotations

import hashlib

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from opboost.errors import DataError, ParameterError, WireError
from opboost.psi.blinding import Secret, at_once
from opboost.psi.common_rows import Common, packed, unpacked
from opboost.psi.curve_points import LOW_ORDER, POINT_BYTES, check_on_curve, piece_count, piece_of
from opboost.psi.hash_to_curve import hash_to_curve
from opboost.psi.point_matching import PointList, common_places
from opboost.psi.row_keys import Normalisation, key_digests, row_keys
from opboost.psi.table_keys import refuse_repeats
from opboost.storage.framing import framed

names = st.text("abcde", min_size=1, max_size=3)
id_lists = st.lists(names, unique=True, max_size=40)
rules = st.builds(
    Normalisation,
    trim=st.booleans(),
    case=st.sampled_from(["keep", "lower", "upper"]),
    unicode=st.sampled_from(["none", "NFC", "NFKC"]),
)


def keys(ids):
    return key_digests(row_keys([ids], ["id"], Normalisation()))


def matched(ours, theirs):
    with PointList() as left, PointList() as right:
        left.add(ours)
        right.add(theirs)
        return common_places(left, right)


def intersection(ours, theirs):
    """Run both sides of the protocol; return each one's common rows, in the shared order."""
    a, b = Secret.fresh(), Secret.fresh()
    x, y = keys(ours), keys(theirs)
    order_x, order_y = a.order(x), b.order(y)
    back = b.raised(a.blinded(x[order_x]))  # what the label party gets for its own points
    theirs = a.raised(b.blinded(y[order_y]))
    left, right = matched(back, theirs)
    bits = unpacked(packed(right, len(y)), len(y))
    return (
        Common.of(x, order_x[left]).rows(x),
        Common.of(y, order_y[bits]).rows(y),
    )


@given(id_lists, id_lists)
@settings(max_examples=40, deadline=None)
def test_both_sides_find_the_intersection_in_one_order(ours, theirs):
    left, right = intersection(ours, theirs)
    assert {ours[i] for i in left} == set(ours) & set(theirs)
    assert [ours[i] for i in left] == [theirs[i] for i in right]


@given(id_lists, st.randoms())
@settings(max_examples=20, deadline=None)
def test_the_common_order_does_not_depend_on_the_tables_or_the_secrets(ids, random):
    other = random.sample(ids, len(ids))
    left, right = intersection(ids, other)
    again, _ = intersection(other, ids)
    assert [ids[i] for i in left] == [other[i] for i in right] == [other[i] for i in again]
    plain = sorted(ids, key=lambda i: hashlib.sha256(b"opboost row key 1\0" + i.encode()).digest())
    assert [ids[i] for i in left] == plain


def test_points_keep_the_order_and_pieces_are_what_the_whole_is():
    ids = keys([f"p{i}" for i in range(300)])
    a, b = Secret.fresh(), Secret.fresh()
    whole = a.blinded(ids)
    apart = b"".join(at_once(a.blinded, (ids[i : i + 7] for i in range(0, 300, 7)), threads=3))
    assert whole == apart
    assert len(whole) == 300 * POINT_BYTES
    for i in (0, 13, 299):
        assert whole[i * POINT_BYTES : (i + 1) * POINT_BYTES] == a.blinded(ids[i : i + 1])
    assert b.raised(whole) == a.raised(b.blinded(ids))


def test_fresh_secrets_give_other_points_and_another_order():
    ids = keys([f"p{i}" for i in range(50)])
    a, b = Secret.fresh(), Secret.fresh()
    points = {
        bytes(p) for s in (a, b) for p in np.frombuffer(s.blinded(ids), f"V{POINT_BYTES}").tolist()
    }
    assert len(points) == 100
    assert a.order(ids).tolist() != b.order(ids).tolist()
    assert sorted(a.order(ids).tolist()) == list(range(50))
    assert a.tag != b.tag
    assert a.key.hex() not in repr(a)


def test_the_secret_order_follows_the_keys_not_the_table():
    ids = keys([f"p{i}" for i in range(50)])
    a, turned = Secret.fresh(), ids[::-1]
    assert np.array_equal(ids[a.order(ids)], turned[a.order(turned)])


P = 2**255 - 19
TWIST = (2, P - 1)


@pytest.mark.parametrize(
    "bad",
    [
        *(u.to_bytes(32, "little") for u in (*LOW_ORDER, *TWIST)),
        *(u.to_bytes(32, "little") for u in (P, P + 1, P + 9, 2**255, 2**255 + 9, 2**256 - 1)),
        b"\2" * (POINT_BYTES - 1),
        b"\2" * (POINT_BYTES + 1),
        b"\0",
    ],
)
def test_what_is_no_point_is_refused(bad):
    a = Secret.fresh()
    good = a.blinded(keys(["x"]))
    with pytest.raises(WireError, match="point"):
        a.raised(good + bad)


def test_half_of_all_altered_points_lie_on_no_curve_and_none_goes_unnoticed():
    a, b = Secret.fresh(), Secret.fresh()
    point = a.blinded(keys(["x"]))
    honest = b.raised(point)
    refused = 0
    for i in range(60):
        altered = bytearray(point)
        altered[i % 32] ^= 1 + i // 32
        try:
            assert b.raised(bytes(altered)) != honest
        except WireError:
            refused += 1
    assert 10 < refused < 50


def test_a_point_that_occurs_twice_is_refused():
    a, b = Secret.fresh(), Secret.fresh()
    one = b.raised(a.blinded(keys(["x"])))
    for ours, theirs in ((one, one + one), (one + one, one)):
        with pytest.raises(WireError, match="occurs twice"):
            matched(ours, theirs)


def test_every_secret_raises_a_point_of_low_order_to_nothing_and_is_not_asked_to():
    good = Secret.fresh().blinded(keys(["x"]))
    check_on_curve(good)
    for u in LOW_ORDER:
        point = u.to_bytes(32, "little")
        with pytest.raises(WireError, match="does not lie on the curve"):
            check_on_curve(good + point)
        with pytest.raises(WireError, match="does not lie on the curve"):
            Secret.fresh().raised(point, checked=True)


def test_what_is_raised_lies_in_the_subgroup_of_prime_order():
    # A point outside the subgroup would reveal bits of the ID's hash despite the secret.
    points = Secret.fresh().blinded(keys([f"p{i}" for i in range(40)]))
    order = 2**252 + 27742317777372353535851937790883648493
    for i in range(0, len(points), POINT_BYTES):
        assert ladder(order, int.from_bytes(points[i : i + POINT_BYTES], "little")) is None


def test_libsodium_raises_as_the_plain_ladder_does():
    secret, ids = Secret.fresh(), keys(["ann", "bob"])
    scalar = int.from_bytes(secret.key, "little") & ~7 & (2**254 - 1) | 2**254
    hashed, blinded = hash_to_curve(ids), secret.blinded(ids)
    for i in range(0, len(hashed), POINT_BYTES):
        u = int.from_bytes(hashed[i : i + POINT_BYTES], "little")
        assert ladder(scalar, u) == int.from_bytes(blinded[i : i + POINT_BYTES], "little")


def test_a_secret_of_another_length_is_refused():
    with pytest.raises(ValueError, match="has 32 bytes; got 31"):
        Secret(bytes(31))


def ladder(scalar, u):
    """Return a multiple's first coordinate, or None for infinity (RFC 7748, section 5)."""
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in bin(scalar)[2:]:
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        x3, z3 = pow(d * a + c * b, 2, P), u * pow(d * a - c * b, 2, P) % P
        x2, z2 = a * a * b * b % P, (a * a - b * b) * (a * a + 121665 * (a * a - b * b)) % P
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
    return x2 * pow(z2, -1, P) % P if z2 else None


@given(st.text(max_size=12), rules)
def test_the_normal_form_of_a_normal_form_is_itself(text, rule):
    once = rule.text(text)
    assert rule.text(once) == once


def test_spellings_meet_under_a_rule_and_only_under_it():
    spelt = ["Ab-7", " ab-7 ", "ＡＢ-７"]
    whole = Normalisation(trim=True, case="lower", unicode="NFKC")
    assert len(set(row_keys([spelt], ["id"], whole))) == 1
    with pytest.raises(DataError, match="has spaces around it"):
        row_keys([spelt], ["id"], Normalisation.exact())
    assert len(set(row_keys([["Ab", "ab", "ÀB"]], ["id"], Normalisation.exact()))) == 3
    assert row_keys([["Ab", "ab", "ÀB"]], ["id"], Normalisation()) == [b"ab", b"ab", "àb".encode()]
    assert Normalisation().spelling == "canonical"
    assert Normalisation.exact().spelling == "exact"
    assert whole.spelling is None
    assert row_keys([[7, 8]], ["id"], whole) == row_keys([["7", " 8"]], ["id"], whole)
    with pytest.raises(DataError, match="is missing"):
        row_keys([["  "]], ["id"], whole)


@pytest.mark.parametrize("word", ["NA", "NULL", "nan", "None", "#N/A", "null"])
def test_words_for_a_gap_are_no_ids(word):
    for rule in (Normalisation(), Normalisation(True, "lower", "NFKC")):
        with pytest.raises(DataError, match="word for a missing value") as refused:
            row_keys([["7", word]], ["id"], rule)
        assert word not in refused.value.public
    both = Normalisation(parts=("country", "number"))
    assert len(row_keys([["NA"], ["7"]], ["country", "number"], both)) == 1  # Namibia


@pytest.mark.parametrize("seen", ["a\u200bb", "\ufeffa", "a\u00adb", "a\x00", "a\u200e", "a\tb"])
def test_characters_that_cannot_be_seen_are_refused(seen):
    for rule in (Normalisation(), Normalisation(True, "lower", "NFKC")):
        with pytest.raises(DataError, match="invisible character") as refused:
            row_keys([["b", seen]], ["id"], rule)
        assert refused.value.public.isprintable()
    assert row_keys([["a\u00a0b", "Straße"]], ["id"], Normalisation())


def test_parts_of_a_composite_key_are_kept_apart():
    rule = Normalisation(case="upper")
    both = row_keys([["a", "ab"], ["bc", "c"]], ["first", "second"], rule)
    assert both == [framed([b"A", b"BC"]), framed([b"AB", b"C"])]


def test_composite_keys_meet_only_where_their_parts_are_agreed_on():
    columns = [["1", "2"], ["2", "1"]]  # swapped columns would match every row
    rule = Normalisation(parts=("branch", "number"))
    found = row_keys(columns, ["filiale", "nummer"], rule)
    assert found == row_keys(columns, ["branch", "number"], rule)
    other = Normalisation(parts=("number", "branch"))
    assert not set(found) & set(row_keys(columns, ["a", "b"], other))
    assert not set(found) & set(row_keys(columns, ["a", "b"], Normalisation()))
    for names, words in (
        (["number", "branch"], "List them in that order"),
        (["branch"], "have 2 parts"),
        (["branch", "number", "year"], "have 2 parts"),
    ):
        with pytest.raises(ParameterError, match=words):
            row_keys([["1"]] * len(names), names, rule)
    with pytest.raises(ParameterError, match="have not agreed on its parts"):
        Normalisation().check_columns(["branch", "number"])
    with pytest.raises(ParameterError, match="different names"):
        Normalisation(parts=("number", "number"))


@given(st.lists(names, max_size=60))
def test_repeats_are_refused_with_counts_and_without_ids(ids):
    digests = keys(ids) if ids else key_digests([])
    times = [ids.count(i) for i in set(ids)]
    several = [t for t in times if t > 1]
    if not several:
        refuse_repeats(digests)
        return
    with pytest.raises(DataError) as refused:
        refuse_repeats(digests)
    said = refused.value.public
    assert said.startswith(f"{len(several):,} ID")
    assert f"in {sum(several):,} rows" in said


def test_a_bitmap_of_another_length_or_with_a_bit_beyond_is_refused():
    assert unpacked(packed(np.array([0, 8]), 9), 9).tolist() == [True, *[False] * 7, True]
    for bad in (b"", b"\0", b"\0\0\0", b"\0\1"):
        with pytest.raises(WireError, match="does not fit 9 points"):
            unpacked(bad, 9)


def test_common_rows_come_back_from_a_file_and_another_table_is_refused():
    ids = keys(["a", "b", "c", "d"])
    common = Common.of(ids, np.array([3, 1]))
    again = Common.from_bytes(common.to_bytes())
    assert again == common
    assert again.size == 2
    assert set(again.rows(ids).tolist()) == {1, 3}
    turned = ids[::-1]
    assert np.array_equal(turned[again.rows(turned)], ids[again.rows(ids)])
    with pytest.raises(DataError, match="not those that were aligned"):
        again.rows(keys(["a", "b", "c", "e"]))


def test_pieces_cover_all_points_once():
    for total in (0, 1, 8192, 8193, 20_000):
        pieces = [piece_of(number, total) for number in range(piece_count(total))]
        assert [i for piece in pieces for i in range(total)[piece]] == list(range(total))
