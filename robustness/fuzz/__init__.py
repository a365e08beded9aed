"""Fuzzing: every decoder that reads a peer's or a user's bytes, against a written contract.

``mutate.py`` spoils samples, ``target.py`` defines a target and its contract, ``targets/`` has one
file per family of decoders, and ``engine.py`` runs cases in worker processes and counts.
"""
