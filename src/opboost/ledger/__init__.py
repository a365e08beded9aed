"""What a feature party let go of, about whom, to whom, and the noise that it used.

``store.py`` is the SQLite file with its chain of entries, ``keys.py`` turns row IDs into handles
that mean nothing without a key kept elsewhere, ``drawing.py`` draws noise once a cell and charges
for it, ``verify.py`` checks every byte, ``receipts.py`` ties the chain's head to what a recipient
holds.
"""

from opboost.ledger.drawing import Drawing
from opboost.ledger.store import Caps, Ledger

__all__ = ["Caps", "Drawing", "Ledger"]
