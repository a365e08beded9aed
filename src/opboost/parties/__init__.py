"""The two kinds of party, and the channel that is their only connection.

``feature/`` finds the common rows, desensitises its columns once and answers the split query.
``label/`` receives the release, trains, asks for the values behind its splits, and predicts.
``channel.py`` defines the small protocol between them and implements it in memory; ``transport``
implements it over the network.
"""
