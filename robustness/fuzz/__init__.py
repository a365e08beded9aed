"""Fuzzing: every decoder that reads a peer's or a user's bytes, against a written contract.

``mutate.py`` spoils samples, ``target.py`` says what a target and its contract are, ``targets/``
has one file a family of decoders, ``engine.py`` runs cases in worker processes and counts.
``python -m robustness.fuzz --cases N --seed S [--target NAME]`` runs it by hand.
"""
