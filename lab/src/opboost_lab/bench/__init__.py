"""Benchmarks; ``library_peers.py`` runs other libraries, each in its own environment."""
