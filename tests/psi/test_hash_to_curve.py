"""Hashing to Curve25519: RFC 9380's vectors, and a reference in plain Python."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import example, given, settings

from opboost.psi import field25519 as field
from opboost.psi.hash_to_curve import A, hash_to_curve, hashed_to_field, is_on_curve, mapped
from opboost.psi.row_keys import key_digests

P = field.P
EDGES = [0, 1, 2, 19, 2**26 - 1, 2**51, P - 1, P, P + 1, 2**255 - 1, 2**255, 2**256 - 1, 2**384 - 1]

# RFC 9380, appendix J.4.2: message, u[0], first coordinates of Q and of P = 8 Q.
VECTORS = [
    (
        b"",
        0x608D892B641F0328523802A6603427C26E55E6F27E71A91A478148D45B5093CD,
        0x51125222DA5E763D97F3C10FCC92EA6860B9CCBBD2EB1285728F566721C1E65B,
        0x1BB913F0C9DAEFA0B3375378FFA534BDA5526C97391952A7789EB976EDFE4D08,
    ),
    (
        b"abc",
        0x46F5B22494BFEAA7F232CC8D054BE68561AF50230234D7D1D63D1D9ABECA8DA5,
        0x7D56D1E08CB0CCB92BAF069C18C49BB5A0DCD927EFF8DCF75CA921EF7F3E6EEB,
        0x7C22950B7D900FA866334262FCAEA47A441A578DF43B894B4625C9B450F9A026,
    ),
    (
        b"abcdef0123456789",
        0x235FE40C443766CE7E18111C33862D66C3B33267EFA50D50F9E8E5D252A40AAA,
        0x3FBE66B9C9883D79E8407150E7C2A1C8680BEE496C62FABE4619A72B3CABE90F,
        0x31AD08A8B0DEEB2A4D8B0206CA25F567AB4E042746F792F4B7973F3AE2096C52,
    ),
    (
        b"q128_" + b"q" * 128,
        0x001E92A544463BDA9BD04DDBE3D6EED248F82DE32F522669EFC5DDCE95F46F5B,
        0x227E0BB89DE700385D19EC40E857DB6E6A3E634B1C32962F370D26F84FF19683,
        0x027877759D155B1997D0D84683A313EB78BDB493271D935B622900459D52CEAA,
    ),
    (
        b"a512_" + b"a" * 512,
        0x1A68A1AF9F663592291AF987203393F707305C7BAC9C8D63D6A729BDC553DC19,
        0x3BCD651EE54D5F7B6013898AAB251EE8ECC0688166FCE6E9548D38472F6BD196,
        0x5FD892C0958D1A75F54C3182A18D286EFAB784E774D1E017BA2FB252998B5DC1,
    ),
]
TAG = b"QUUX-V01-CS02-with-curve25519_XMD:SHA-512_ELL2_NU_"


def numbers(data, width=32):
    return [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]


def packed(values, width):
    return b"".join(v.to_bytes(width, "little") for v in values)


def square(x):
    return pow(x, (P - 1) // 2, P) in (0, 1)


def on_curve(u):
    return square(u**3 + A * u * u + u)


def elligator(r):
    """RFC 9380, section 6.7.1, with Z = 2."""
    x = -A * pow(1 + 2 * r * r, -1, P) % P
    return x if on_curve(x) else (-x - A) % P


def doubled(u):
    """Return the first coordinate of twice a point."""
    return pow(u * u - 1, 2, P) * pow(4 * u * (u * u + A * u + 1), -1, P) % P


def test_the_vectors_of_the_standard():
    wide = hashed_to_field([message for message, *_ in VECTORS], TAG)
    points = mapped(wide)
    assert [v % P for v in numbers(wide, 48)] == [u for _, u, _, _ in VECTORS]
    assert numbers(points) == [q for _, _, q, _ in VECTORS]
    assert [doubled(doubled(doubled(q))) for q in numbers(points)] == [p for *_, p in VECTORS]


@given(st.lists(st.integers(0, 2**384 - 1), min_size=1, max_size=40))
@example(EDGES)
@settings(max_examples=30, deadline=None)
def test_the_map_equals_its_twin_in_plain_python(values):
    assert numbers(mapped(packed(values, 48))) == [elligator(v % P) for v in values]


@given(st.lists(st.integers(0, P - 1), min_size=1, max_size=40))
@example([e for e in EDGES if e < P])
@settings(max_examples=30, deadline=None)
def test_points_of_the_curve_are_told_from_those_of_its_twist(values):
    assert is_on_curve(packed(values, 32)).tolist() == [on_curve(v) for v in values]


@given(
    st.lists(
        st.tuples(st.integers(0, 2**256 - 1), st.integers(0, 2**256 - 1)), min_size=1, max_size=40
    )
)
@example([(a, b) for a in EDGES for b in EDGES if max(a, b) < 2**256])
@settings(max_examples=30, deadline=None)
def test_the_fields_operations_equal_those_of_whole_numbers(pairs):
    left, right = zip(*pairs, strict=True)
    a, b = (field.from_bytes(packed(side, 32)) for side in (left, right))

    def values(elements):
        return numbers(field.to_bytes(elements, len(pairs)))

    assert values(a) == [x % P for x in left]
    assert values(field.product(a, b)) == [x * y % P for x, y in pairs]
    assert values(field.total(a, b)) == [(x + y) % P for x, y in pairs]
    assert values(field.difference(a, b)) == [(x - y) % P for x, y in pairs]
    both = field.total(a, b)
    assert values(field.product(both, both)) == [(x + y) ** 2 % P for x, y in pairs]
    apart = field.difference(a, b)
    assert values(field.product(apart, both)) == [(x * x - y * y) % P for x, y in pairs]
    one = field.constant(1, a)
    units = field.select(np.array([x % P != 0 for x in left]), a, one)
    assert values(field.inverse(units)) == [pow(x % P or 1, -1, P) for x in left]


def test_an_id_is_hashed_alike_in_any_company_and_always_onto_the_curve():
    digests = key_digests([f"p{i}".encode() for i in range(1000)])
    whole = hash_to_curve(digests)
    assert is_on_curve(whole).all()
    assert len(set(numbers(whole))) == 1000
    for i in (0, 15, 16, 999):
        assert hash_to_curve(digests[i : i + 1]) == whole[i * 32 : i * 32 + 32]
    assert hash_to_curve(digests[:0]) == b""
