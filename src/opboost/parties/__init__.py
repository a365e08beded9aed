"""The two kinds of party, and the channel through which alone they meet.

``feature.py`` desensitises and answers, ``spool.py`` keeps what it is about to send, ``label.py``
trains and asks, ``offers.py`` is what came to it, ``predicting.py`` is for new rows.
``channel.py`` is the small protocol between them; the one in memory ships here, the one over the
network is in ``service``.
"""
