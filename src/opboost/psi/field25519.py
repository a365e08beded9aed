"""Arithmetic modulo 2**255 - 19 on many elements at once, compiled to vector instructions.

An element is ten limbs of 26 and 25 bits in turn.  Sixteen elements fill a block of 160 words
side by side, limb by limb, so that one instruction works on the same limb of several of them.
A product takes about 8 ns per element and a power about 2 µs with AVX-512.  No branch and no
address depends on a value.  Only hashing to the curve and checks of points use this module; secret
scalars are left to libsodium (see ``blinding.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost.runtime.compiling import njit

LANES = 16
"""The number of elements in a block."""

P = 2**255 - 19
"""The prime."""

Elements = np.ndarray[Any, np.dtype[np.uint32]]
"""Blocks of elements: one row of 160 limbs per block."""

Limbs = np.ndarray[Any, np.dtype[np.uint64]]
"""One row of ten limbs per element."""

_19, _25, _26 = np.uint64(19), np.uint64(25), np.uint64(26)
_LOW_25, _LOW_26 = np.uint64(2**25 - 1), np.uint64(2**26 - 1)
_STARTS = [(51 * i + 1) // 2 for i in range(16)]
_WIDTHS = [26, 25] * 8
_TWICE_P = [2 * (2**26 - 19), *[2 * (2**25 - 1), 2 * (2**26 - 1)] * 4, 2 * (2**25 - 1)]


# These are schoolbook products: limb k of a product is the sum of f[i] * g[j] over i + j = k,
# and over i + j = k + 10 times 19.  Two odd limbs overlap by a bit, so their product counts twice.
# fmt: off
@njit(cache=True, nogil=True)
def _multiply(r, a, b):  # type: ignore[no-untyped-def]
    """Set ``r`` to a times b, lane by lane; ``r`` must be neither a nor b."""
    for j in range(LANES):
        f0, f1 = np.uint64(a[0 * LANES + j]), np.uint64(a[1 * LANES + j])
        f2, f3 = np.uint64(a[2 * LANES + j]), np.uint64(a[3 * LANES + j])
        f4, f5 = np.uint64(a[4 * LANES + j]), np.uint64(a[5 * LANES + j])
        f6, f7 = np.uint64(a[6 * LANES + j]), np.uint64(a[7 * LANES + j])
        f8, f9 = np.uint64(a[8 * LANES + j]), np.uint64(a[9 * LANES + j])
        g0, g1 = np.uint64(b[0 * LANES + j]), np.uint64(b[1 * LANES + j])
        g2, g3 = np.uint64(b[2 * LANES + j]), np.uint64(b[3 * LANES + j])
        g4, g5 = np.uint64(b[4 * LANES + j]), np.uint64(b[5 * LANES + j])
        g6, g7 = np.uint64(b[6 * LANES + j]), np.uint64(b[7 * LANES + j])
        g8, g9 = np.uint64(b[8 * LANES + j]), np.uint64(b[9 * LANES + j])
        g1_19, g2_19, g3_19 = _19 * g1, _19 * g2, _19 * g3
        g4_19, g5_19, g6_19 = _19 * g4, _19 * g5, _19 * g6
        g7_19, g8_19, g9_19 = _19 * g7, _19 * g8, _19 * g9
        f1_2, f3_2, f5_2 = f1 + f1, f3 + f3, f5 + f5
        f7_2, f9_2 = f7 + f7, f9 + f9
        h0 = (f0 * g0 + f1_2 * g9_19 + f2 * g8_19 + f3_2 * g7_19 + f4 * g6_19
              + f5_2 * g5_19 + f6 * g4_19 + f7_2 * g3_19 + f8 * g2_19 + f9_2 * g1_19)
        h1 = (f0 * g1 + f1 * g0 + f2 * g9_19 + f3 * g8_19 + f4 * g7_19
              + f5 * g6_19 + f6 * g5_19 + f7 * g4_19 + f8 * g3_19 + f9 * g2_19)
        h2 = (f0 * g2 + f1_2 * g1 + f2 * g0 + f3_2 * g9_19 + f4 * g8_19
              + f5_2 * g7_19 + f6 * g6_19 + f7_2 * g5_19 + f8 * g4_19 + f9_2 * g3_19)
        h3 = (f0 * g3 + f1 * g2 + f2 * g1 + f3 * g0 + f4 * g9_19
              + f5 * g8_19 + f6 * g7_19 + f7 * g6_19 + f8 * g5_19 + f9 * g4_19)
        h4 = (f0 * g4 + f1_2 * g3 + f2 * g2 + f3_2 * g1 + f4 * g0
              + f5_2 * g9_19 + f6 * g8_19 + f7_2 * g7_19 + f8 * g6_19 + f9_2 * g5_19)
        h5 = (f0 * g5 + f1 * g4 + f2 * g3 + f3 * g2 + f4 * g1
              + f5 * g0 + f6 * g9_19 + f7 * g8_19 + f8 * g7_19 + f9 * g6_19)
        h6 = (f0 * g6 + f1_2 * g5 + f2 * g4 + f3_2 * g3 + f4 * g2
              + f5_2 * g1 + f6 * g0 + f7_2 * g9_19 + f8 * g8_19 + f9_2 * g7_19)
        h7 = (f0 * g7 + f1 * g6 + f2 * g5 + f3 * g4 + f4 * g3
              + f5 * g2 + f6 * g1 + f7 * g0 + f8 * g9_19 + f9 * g8_19)
        h8 = (f0 * g8 + f1_2 * g7 + f2 * g6 + f3_2 * g5 + f4 * g4
              + f5_2 * g3 + f6 * g2 + f7_2 * g1 + f8 * g0 + f9_2 * g9_19)
        h9 = (f0 * g9 + f1 * g8 + f2 * g7 + f3 * g6 + f4 * g5
              + f5 * g4 + f6 * g3 + f7 * g2 + f8 * g1 + f9 * g0)
        h1, h0 = h1 + (h0 >> _26), h0 & _LOW_26
        h2, h1 = h2 + (h1 >> _25), h1 & _LOW_25
        h3, h2 = h3 + (h2 >> _26), h2 & _LOW_26
        h4, h3 = h4 + (h3 >> _25), h3 & _LOW_25
        h5, h4 = h5 + (h4 >> _26), h4 & _LOW_26
        h6, h5 = h6 + (h5 >> _25), h5 & _LOW_25
        h7, h6 = h7 + (h6 >> _26), h6 & _LOW_26
        h8, h7 = h8 + (h7 >> _25), h7 & _LOW_25
        h9, h8 = h9 + (h8 >> _26), h8 & _LOW_26
        h0, h9 = h0 + _19 * (h9 >> _25), h9 & _LOW_25
        h1, h0 = h1 + (h0 >> _26), h0 & _LOW_26
        r[0 * LANES + j], r[1 * LANES + j] = np.uint32(h0), np.uint32(h1)
        r[2 * LANES + j], r[3 * LANES + j] = np.uint32(h2), np.uint32(h3)
        r[4 * LANES + j], r[5 * LANES + j] = np.uint32(h4), np.uint32(h5)
        r[6 * LANES + j], r[7 * LANES + j] = np.uint32(h6), np.uint32(h7)
        r[8 * LANES + j], r[9 * LANES + j] = np.uint32(h8), np.uint32(h9)


@njit(cache=True, nogil=True)
def _square(r, a):  # type: ignore[no-untyped-def]
    """Set ``r`` to the square of ``a``, lane by lane; ``r`` must not be ``a``."""
    for j in range(LANES):
        f0, f1 = np.uint64(a[0 * LANES + j]), np.uint64(a[1 * LANES + j])
        f2, f3 = np.uint64(a[2 * LANES + j]), np.uint64(a[3 * LANES + j])
        f4, f5 = np.uint64(a[4 * LANES + j]), np.uint64(a[5 * LANES + j])
        f6, f7 = np.uint64(a[6 * LANES + j]), np.uint64(a[7 * LANES + j])
        f8, f9 = np.uint64(a[8 * LANES + j]), np.uint64(a[9 * LANES + j])
        f5_19, f6_19, f7_19 = _19 * f5, _19 * f6, _19 * f7
        f8_19, f9_19 = _19 * f8, _19 * f9
        f0_2, f1_2, f2_2 = f0 + f0, f1 + f1, f2 + f2
        f3_2, f4_2, f5_2 = f3 + f3, f4 + f4, f5 + f5
        f6_2, f7_2, f8_2 = f6 + f6, f7 + f7, f8 + f8
        f9_2 = f9 + f9
        h0 = (f0 * f0 + f1_2 * (f9_19 + f9_19) + f2_2 * f8_19
              + f3_2 * (f7_19 + f7_19) + f4_2 * f6_19 + f5_2 * f5_19)
        h1 = f0_2 * f1 + f2_2 * f9_19 + f3_2 * f8_19 + f4_2 * f7_19 + f5_2 * f6_19
        h2 = (f0_2 * f2 + f1_2 * f1 + f3_2 * (f9_19 + f9_19)
              + f4_2 * f8_19 + f5_2 * (f7_19 + f7_19) + f6 * f6_19)
        h3 = f0_2 * f3 + f1_2 * f2 + f4_2 * f9_19 + f5_2 * f8_19 + f6_2 * f7_19
        h4 = (f0_2 * f4 + f1_2 * (f3 + f3) + f2 * f2
              + f5_2 * (f9_19 + f9_19) + f6_2 * f8_19 + f7_2 * f7_19)
        h5 = f0_2 * f5 + f1_2 * f4 + f2_2 * f3 + f6_2 * f9_19 + f7_2 * f8_19
        h6 = (f0_2 * f6 + f1_2 * (f5 + f5) + f2_2 * f4
              + f3_2 * f3 + f7_2 * (f9_19 + f9_19) + f8 * f8_19)
        h7 = f0_2 * f7 + f1_2 * f6 + f2_2 * f5 + f3_2 * f4 + f8_2 * f9_19
        h8 = f0_2 * f8 + f1_2 * (f7 + f7) + f2_2 * f6 + f3_2 * (f5 + f5) + f4 * f4 + f9_2 * f9_19
        h9 = f0_2 * f9 + f1_2 * f8 + f2_2 * f7 + f3_2 * f6 + f4_2 * f5
        h1, h0 = h1 + (h0 >> _26), h0 & _LOW_26
        h2, h1 = h2 + (h1 >> _25), h1 & _LOW_25
        h3, h2 = h3 + (h2 >> _26), h2 & _LOW_26
        h4, h3 = h4 + (h3 >> _25), h3 & _LOW_25
        h5, h4 = h5 + (h4 >> _26), h4 & _LOW_26
        h6, h5 = h6 + (h5 >> _25), h5 & _LOW_25
        h7, h6 = h7 + (h6 >> _26), h6 & _LOW_26
        h8, h7 = h8 + (h7 >> _25), h7 & _LOW_25
        h9, h8 = h9 + (h8 >> _26), h8 & _LOW_26
        h0, h9 = h0 + _19 * (h9 >> _25), h9 & _LOW_25
        h1, h0 = h1 + (h0 >> _26), h0 & _LOW_26
        r[0 * LANES + j], r[1 * LANES + j] = np.uint32(h0), np.uint32(h1)
        r[2 * LANES + j], r[3 * LANES + j] = np.uint32(h2), np.uint32(h3)
        r[4 * LANES + j], r[5 * LANES + j] = np.uint32(h4), np.uint32(h5)
        r[6 * LANES + j], r[7 * LANES + j] = np.uint32(h6), np.uint32(h7)
        r[8 * LANES + j], r[9 * LANES + j] = np.uint32(h8), np.uint32(h9)
# fmt: on


@njit(cache=True, nogil=True)
def _run(r, a, b, program):  # type: ignore[no-untyped-def]
    """Set ``r`` to register 2 after running a program with a and b in registers 0 and 1.

    A step (d, x, y, times) sets register d to x times y if ``times`` is 0, and otherwise squares x
    that many times.  Each product is called in one place, since a compiler copies its code to every
    call.
    """
    work = np.empty((10, 10 * LANES), np.uint32)
    for i in range(a.shape[0]):
        for j in range(10 * LANES):
            work[0, j], work[1, j] = a[i, j], b[i, j]
        for step in range(program.shape[0]):
            d, x, y, times = program[step]
            if times == 0:
                _multiply(work[d], work[x], work[y])
            for k in range(times):
                to = d if k == times - 1 else 8 + (k & 1)
                _square(work[to], work[x])
                x = to
        for j in range(10 * LANES):
            r[i, j] = work[2, j]


def _program(*steps: tuple[int, int, int, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(steps, np.int64)


_PRODUCT = _program((2, 0, 1, 0))
_CHAIN = (
    (3, 0, 0, 1),  # z**2
    (4, 3, 3, 2),
    (5, 4, 0, 0),  # z**9
    (6, 5, 3, 0),  # z**11
    (4, 6, 6, 1),
    (7, 4, 5, 0),  # z**(2**5 - 1)
    (4, 7, 7, 5),
    (5, 4, 7, 0),  # z**(2**10 - 1)
    (4, 5, 5, 10),
    (7, 4, 5, 0),  # z**(2**20 - 1)
    (4, 7, 7, 20),
    (2, 4, 7, 0),  # z**(2**40 - 1)
    (4, 2, 2, 10),
    (7, 4, 5, 0),  # z**(2**50 - 1)
    (4, 7, 7, 50),
    (5, 4, 7, 0),  # z**(2**100 - 1)
    (4, 5, 5, 100),
    (2, 4, 5, 0),  # z**(2**200 - 1)
    (4, 2, 2, 50),
    (5, 4, 7, 0),  # z**(2**250 - 1)
)
_SYMBOL = _program(*_CHAIN, (4, 5, 5, 4), (5, 3, 3, 1), (7, 5, 3, 0), (2, 4, 7, 0))
"""z to the power (p - 1) / 2 = 2**254 - 10 = 2**4 * (2**250 - 1) + 6."""
_INVERSE = _program(*_CHAIN, (4, 5, 5, 5), (2, 4, 6, 0))
"""z to the power p - 2 = 2**255 - 21 = 2**5 * (2**250 - 1) + 11."""


def product(a: Elements, b: Elements) -> Elements:
    """Return a times b."""
    r = np.empty_like(a)
    _run(r, a, b, _PRODUCT)
    return r


def total(a: Elements, b: Elements) -> Elements:
    """Return a plus b, usable as a factor; a sum of three must not be squared."""
    return a + b


def difference(a: Elements, b: Elements) -> Elements:
    """Return a minus b, usable as a factor unless both are differences; b must not be a sum."""
    return a + np.repeat(np.array(_TWICE_P, np.uint32), LANES) - b


def inverse(a: Elements) -> Elements:
    """Return 1 / a for elements that are not zero; a zero would spoil the others.

    Montgomery's trick: the blocks are multiplied in pairs until one is left.  Only that one is
    inverted; its inverse gives those of the others step by step, so an element costs three
    products.
    """
    if len(a) == 1:
        r = np.empty_like(a)
        _run(r, a, a, _INVERSE)
        return r
    half = len(a) // 2
    left, right, odd = a[:half], a[half : 2 * half], a[2 * half :]
    pairs = np.concatenate([product(left, right), odd])
    back = inverse(pairs)
    both = back[:half]
    return np.concatenate([product(both, right), product(both, left), back[half:]])


def is_square(a: Elements, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether each of the first ``count`` elements is a square; zero is one."""
    r = np.empty_like(a)
    _run(r, a, a, _SYMBOL)
    found = _canonical(r, count)
    return (found[:, 0] <= 1) & ~found[:, 1:].any(axis=1)


def constant(value: int, like: Elements) -> Elements:
    """Return the same element everywhere."""
    limbs = [(value % P) >> s & (2**w - 1) for s, w in zip(_STARTS[:10], _WIDTHS, strict=False)]
    row = np.repeat(np.array(limbs, np.uint32), LANES)
    return np.ascontiguousarray(np.broadcast_to(row, like.shape))


def select(mask: np.ndarray[Any, np.dtype[np.bool_]], a: Elements, b: Elements) -> Elements:
    """Return the elements of a where the mask holds, and those of b elsewhere."""
    whole = np.zeros(len(a) * LANES, np.bool_)
    whole[: len(mask)] = mask
    wide = np.repeat(whole.reshape(-1, 1, LANES), 10, axis=1).reshape(a.shape)
    return np.where(wide, a, b)


def from_bytes(data: bytes, width: int = 32) -> Elements:
    """Return the elements of little-endian numbers of 32 or 48 bytes, reduced modulo p."""
    words = np.frombuffer(data, "<u8").reshape(-1, width // 8)
    blocks = max(1, -(-len(words) // LANES))
    limbs = np.zeros((blocks * LANES, 10), np.uint64)
    for i in range(16 if width == 48 else 11):
        # Bits above the 255th are multiplied by 19, because 2**255 is 19 modulo p.
        part = _bits(words, _STARTS[i], _WIDTHS[i])
        limbs[: len(words), i % 10] += part if i < 10 else _19 * part
    for _ in range(2):
        _carry(limbs)
    return _blocks(limbs)


def to_bytes(a: Elements, count: int) -> bytes:
    """Return the first ``count`` elements as little-endian numbers below p, 32 bytes each."""
    limbs = _canonical(a, count)
    words = np.zeros((count, 4), np.uint64)
    for i in range(10):
        word, shift = divmod(_STARTS[i], 64)
        words[:, word] |= limbs[:, i] << np.uint64(shift)
        if shift + _WIDTHS[i] > 64:
            words[:, word + 1] |= limbs[:, i] >> np.uint64(64 - shift)
    return words.astype("<u8").tobytes()


def _bits(words: Limbs, start: int, width: int) -> Limbs:
    """Return some bits of little-endian numbers; bits beyond their end are zero."""
    word, shift = divmod(start, 64)
    if word >= words.shape[1]:
        return np.zeros(len(words), np.uint64)
    found = words[:, word] >> np.uint64(shift)
    if shift + width > 64 and word + 1 < words.shape[1]:
        found = found | words[:, word + 1] << np.uint64(64 - shift)
    return found & np.uint64(2**width - 1)


def _carry(limbs: Limbs) -> None:
    """Reduce limbs to their widths; the carry of the last limb is multiplied by 19."""
    for i in range(10):
        over = limbs[:, i] >> np.uint64(_WIDTHS[i])
        limbs[:, i] &= np.uint64(2 ** _WIDTHS[i] - 1)
        limbs[:, (i + 1) % 10] += over if i < 9 else _19 * over


def _canonical(a: Elements, count: int) -> Limbs:
    """Return the limbs of the numbers below p."""
    rows = a.reshape(-1, 10, LANES).transpose(0, 2, 1).reshape(-1, 10)
    limbs = rows[:count].astype(np.uint64)
    _carry(limbs)
    over = limbs[:, 0] + _19
    for i in range(10):
        over = (limbs[:, i + 1] if i < 9 else np.uint64(0)) + (over >> np.uint64(_WIDTHS[i]))
    limbs[:, 0] += _19 * over  # if p or more, subtract p: add 19 and drop bit 255
    for i in range(9):
        limbs[:, i + 1] += limbs[:, i] >> np.uint64(_WIDTHS[i])
        limbs[:, i] &= np.uint64(2 ** _WIDTHS[i] - 1)
    limbs[:, 9] &= _LOW_25
    return limbs


def _blocks(limbs: Limbs) -> Elements:
    lanes = limbs.astype(np.uint32).reshape(-1, LANES, 10).transpose(0, 2, 1)
    return np.ascontiguousarray(lanes).reshape(-1, 10 * LANES)
