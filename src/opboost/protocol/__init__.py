"""The messages between the parties, as frozen values and in their Arrow form.

``messages.py`` has the small messages.  ``column_streams.py`` has the stream of one column's codes,
which ``entropy_coding.py`` packs to a few per cent above their entropy.  Nothing is unpickled, and
a peer cannot name a class: a message is checked against its fixed Arrow schema, then by its own
constructor.
"""
