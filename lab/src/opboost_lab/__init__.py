"""The laboratory: the paper reproduced, benchmarks, and every stated figure recomputed."""
