"""Attacks, faults, leak searches, fuzzing and audits, for ``docs/reliability.md``.

Each attack or fault has a function that runs it a given number of times from a given seed and
counts how many runs were survived.  Tests use small counts, claims use large ones.
"""
