"""The commands that this distribution adds to ``opboost``: ``reproduce``, ``bench``, ``data``."""
