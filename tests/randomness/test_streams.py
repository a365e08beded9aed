from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import opboost as op
from opboost.randomness import streams as rng_module
from opboost.randomness.streams import BUFFER_BYTES, KeyedRng, row_keys
from tests.support.checks import assert_samples_follow

M = op.GlobalMap(op.Domain(1, 100), 0.08)
X = np.full(64, 50)


def child_noise(sample):
    """Return what a forked child draws and sends back through a pipe."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, pickle.dumps(sample()))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        noise = pickle.loads(stream.read())
    os.waitpid(pid, 0)
    return noise


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_never_repeats_its_parents_noise():
    """Run in a separate process, because this one has threads, which forks may break."""
    script = (
        "from tests.randomness.test_streams import *\n"
        "M.sample(X)\n"  # the parent's keystream exists before the fork
        "children = [child_noise(lambda: M.sample(X).tolist()) for _ in range(3)]\n"
        "parent = M.sample(X).tolist()\n"
        "assert len({tuple(n) for n in [*children, parent]}) == 4, 'noise repeats'\n"
        "os.register_at_fork = None\n"
        "kept = rng_module._local.stream\n"
        "def without_hook():\n"
        "    rng_module._local.stream = kept\n"  # as if the hook had not run
        "    return M.sample(X).tolist()\n"
        "a, b = child_noise(without_hook), M.sample(X).tolist()\n"
        "assert a != b, 'the process id is not compared'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_a_fork_that_kept_the_keystream_would_be_caught():
    """The test above can fail: two copies of one keystream do repeat."""
    stream = rng_module._Keystream()
    key = os.urandom(48)

    def restarted():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "urandom", lambda n: key[:n])
            stream._rekey()
        return stream.take(8).tolist()

    assert restarted() == restarted()


def test_threads_draw_independently_and_lose_nothing():
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return [tuple(M.sample(X).tolist()) for _ in range(50)]

    with ThreadPoolExecutor(8) as pool:
        seen = [noise for noises in pool.map(work, range(8)) for noise in noises]
    assert len(set(seen)) == 400


def test_the_keystream_is_aes_256_ctr():
    """The known answer is the keystream of NIST SP 800-38A, F.5.5."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
    cipher = bytes.fromhex("601ec313775789a5b7a7f504bbf3d228")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", lambda n: key + counter)
        stream = rng_module._Keystream()
    out = stream.take(2)
    assert bytes(a ^ b for a, b in zip(out.tobytes(), plain, strict=True)) == cipher


def test_long_takes_are_made_in_pieces_and_nothing_repeats():
    stream = rng_module._Keystream()
    assert stream._buffer.nbytes <= BUFFER_BYTES + 16
    parts = [stream.take(n).copy() for n in (5, BUFFER_BYTES // 8, BUFFER_BYTES // 2 + 3, 1)]
    out = np.concatenate(parts)
    assert len(np.unique(out)) == out.size
    assert not (out == 0).any()


def test_pieces_continue_the_keystream_where_they_left_off():
    seed = os.urandom(48)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", lambda n: seed[:n])
        whole, parts = rng_module._Keystream(), rng_module._Keystream()
    together = whole.take(BUFFER_BYTES // 8 + 100).copy()
    apart = np.concatenate([parts.take(n).copy() for n in (7, BUFFER_BYTES // 8, 93)])
    assert (together == apart).all()


def test_a_keystream_takes_a_fresh_key_in_time():
    stream = rng_module._Keystream()
    first = stream._cipher
    stream._left = 8
    stream.take(2)
    assert stream._cipher is not first


def test_the_default_is_cryptographic_and_differs_from_call_to_call():
    assert rng_module.default_rng(None).secure
    assert M.sample(X).tolist() != M.sample(X).tolist()
    assert not op.SeededRng(1).secure


def test_a_seed_is_a_value_and_its_children_are_independent():
    assert op.SeededRng(7) == op.SeededRng(7)
    assert M.sample(X, op.SeededRng(7)).tolist() == M.sample(X, op.SeededRng(7)).tolist()
    assert M.sample(X, op.SeededRng(7)).tolist() != M.sample(X, op.SeededRng(8)).tolist()
    age, pay = op.SeededRng(7).child("age"), op.SeededRng(7).child("pay")
    assert M.sample(X, age).tolist() != M.sample(X, pay).tolist()
    assert eval(repr(age), vars(op)) == age


@pytest.mark.parametrize("rng", [op.SecureRng(), op.SeededRng(3)], ids=repr)
def test_bits_are_uniform(rng):
    source = rng.open()
    counts = np.bincount([source.bits(3) for _ in range(8000)], minlength=8)
    assert_samples_follow(counts, np.full(8, 1 / 8), significance=1e-9)
    assert source.bits(200).bit_length() <= 200


def test_keyed_words_follow_the_row_and_are_uniform():
    values = np.random.default_rng(0).normal(size=20_000)
    keys = row_keys(values)
    assert len(np.unique(keys)) == keys.size
    order = np.random.default_rng(1).permutation(keys.size)
    words = KeyedRng(op.SeededRng(7), keys).open().words(2, 0, keys.size)
    shuffled = KeyedRng(op.SeededRng(7), row_keys(values[order])).open().words(2, 0, keys.size)
    assert (words[:, order] == shuffled).all()
    for draw in words:
        counts = np.bincount((draw >> np.uint64(60)).astype(int), minlength=16)
        assert_samples_follow(counts, np.full(16, 1 / 16))
    assert (words[0] != words[1]).all()


def test_rows_with_the_same_value_get_different_keys():
    keys = row_keys(np.array([5, 5, 5, 6, 5]))
    assert len(set(keys.tolist())) == 5
    assert row_keys(np.array([0.0]))[0] == row_keys(np.array([-0.0]))[0]
    assert row_keys(np.array([])).size == 0
