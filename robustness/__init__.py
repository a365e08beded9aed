"""Attacks and accidents, counted: what ``docs/reliability.md`` reports.

Each file is one kind of trouble, with a function that runs it a given number of times from a given
seed and tells how many of how many were survived.  The tests call them with small counts, the
claims with large ones.
"""
