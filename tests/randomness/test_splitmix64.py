import numpy as np

from opboost.randomness.splitmix64 import add_hashes, splitmix64

WORDS = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)


def test_the_published_first_words_of_the_generator():
    step = np.uint64(0x9E3779B97F4A7C15)
    states = np.array([0, step], dtype=np.uint64)
    assert splitmix64(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


def test_compiled_it_gives_the_same():
    total = np.zeros(len(WORDS), dtype=np.uint64)
    add_hashes(total, WORDS)
    assert (total == splitmix64(WORDS)).all()
