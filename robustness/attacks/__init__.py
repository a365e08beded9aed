"""Attacks on live processes, by outsiders, by a feature party and by the label party."""
