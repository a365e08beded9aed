"""Attacks on live processes, by outsiders, both kinds of parties and a carrier of bundles."""
