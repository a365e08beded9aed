"""What travels between the parties: messages as frozen values, and their Arrow form.

``messages.py`` are the small ones; ``column_streams.py`` is the stream of one column's codes,
packed by ``entropy_coding.py`` to a few per cent above their entropy. Nothing is unpickled and no
class is named by a peer: a message is checked against its fixed Arrow schema, then by its own
constructor.
"""
