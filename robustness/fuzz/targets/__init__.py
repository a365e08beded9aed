"""All targets, by family."""

from robustness.fuzz.target import Target
from robustness.fuzz.targets import (
    bundles,
    config,
    ledger,
    messages,
    models,
    state,
    streams,
    tables,
)

FAMILIES = (messages, streams, bundles, config, tables, ledger, state, models)
TARGETS: tuple[Target, ...] = tuple(t for family in FAMILIES for t in family.TARGETS)
