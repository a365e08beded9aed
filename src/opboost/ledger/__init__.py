"""The record of what a feature party released, about whom and to whom, and of its noise.

``chain.py`` is the SQLite file with its chain of entries, ``run_files.py`` writes the files that
store draws by person, ``release_members.py`` lists the people whose draws were sent again.
``key_file.py`` turns IDs into handles that mean nothing without a key kept elsewhere; ``store.py``
combines these parts.  ``lookup.py`` looks people up and ``drawing.py`` draws what is not stored.
``rotation.py``, ``compaction.py``, ``renewal.py``, ``forget_person.py`` and ``migration.py`` change
a ledger as a whole, through ``rewriting.py``.  ``verify_ledger.py`` checks every byte,
``chain_witness.py`` and ``receipts.py`` detect lost entries, ``ledger_summary.py`` and
``person_answers.py`` report what was revealed.
"""

from opboost.ledger.drawing import Drawing
from opboost.ledger.store import Caps, Ledger

__all__ = ["Caps", "Drawing", "Ledger"]
