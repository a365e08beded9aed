"""The two kinds of party, and the channel through which alone they meet.

``feature/`` finds the common rows, desensitises its columns once and answers the split query.
``label/`` receives the release, trains, asks for the values behind its splits, and predicts.
``channel.py`` is the small protocol between them; the channel in memory is here, the one over the
network is in ``transport``.
"""
