"""Attacks and faults, counted, for ``docs/reliability.md``.

Each file has one kind of attack or fault, and a function that runs it a given number of times from
a given seed and returns how many were survived.  The tests call them with small counts, the claims
with large ones.
"""
