"""Attacks on what parties send, by record total: docs/attacks.md.

``linkage`` and ``attributes`` attack a person's released record (``released_records``); ``labels``
and ``invented_columns`` infer labels from the messages that a feature party receives.
"""
