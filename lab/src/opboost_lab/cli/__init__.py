"""The verbs ``reproduce``, ``bench`` and ``data``, which this distribution adds to ``opboost``."""
