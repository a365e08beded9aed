"""What a feature party released, about whom, to whom, and the noise that it used.

``chain.py`` is the SQLite file with its chain of entries, ``run_files.py`` the files that remember
draws by person, ``release_members.py`` who was sent again. ``key_file.py`` turns IDs into handles
that mean nothing without a key kept elsewhere, ``store.py`` puts these together. ``lookup.py``
looks people up and ``drawing.py`` draws what is not there. ``rotation.py``, ``compaction.py``,
``renewal.py``, ``forget_person.py`` and ``migration.py`` change a ledger as a whole, by
``rewriting.py``. ``verify_ledger.py`` checks every byte, ``chain_witness.py`` and ``receipts.py``
notice what is gone, ``ledger_summary.py`` and ``person_answers.py`` say what was revealed.
"""

from opboost.ledger.drawing import Drawing
from opboost.ledger.store import Caps, Ledger

__all__ = ["Caps", "Drawing", "Ledger"]
