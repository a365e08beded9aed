"""Settings that hold for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Tests run in parallel: boosters that spin a thread on every core would slow each other down.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No deadlines: `opboost bench` measures speed, never a test. Examples are derandomised, so that a
# run in CI can be repeated; a changed test gets new examples.
settings.register_profile(
    "opboost", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("opboost")
