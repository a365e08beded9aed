"""The laboratory: a reproduction of the paper, attacks and benchmarks."""
