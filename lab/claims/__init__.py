"""Every figure that the project states, as something that can be recomputed and can fail.

``python -m claims`` runs all and writes ``docs/claims.json``; ``python -m claims foundation`` runs
one file's.  A claim is a function that returns a value (or several, for a spread) and the rule that
the value must meet.  ``COVERS`` of a file names the modules of OpBoost that its figures depend on:
a hash of their sources is recorded with each figure, and ``make check`` lists those whose sources
have changed since.
"""

FILES = (
    "foundation",
    "order",
    "speed",
    "training",
    "accuracy",
    "federation",
    "alignment",
    "ledger",
    "faults",
    "faults_boundaries",
    "faults_moments",
    "faults_damage",
    "record",
    "record_rule",
    "record_rows",
    "record_speed",
    "partly_known",
    "score_release",
    "denoising",
    "denoising_aside",
    "denoising_auto",
    "denoising_industrial",
    "denoising_speed",
    "external_denoising",
    "audit",
    "pipeline",
    "attacks",
    "hostile",
    "load",
    "soak",
    "leaks",
    "fuzzing",
    "record_pilot",
    "reproduction",
    "scale",
    "scoring",
    "containers",
)
