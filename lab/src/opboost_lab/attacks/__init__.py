"""Attacks on what parties send, by record total: docs/attacks.md.

On a person's released record: ``linkage`` and ``attributes``, which read ``released_records``.
On labels, from what a curious party is told: ``labels``.
"""
