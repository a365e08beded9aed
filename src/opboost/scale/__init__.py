"""Releases that are larger than a machine, made by workers that may die and tasks that repeat.

``release.py`` is the life of a release from its secret to its manifest, ``block.py`` what one task
does, ``vault.py`` what is destroyed in the end.  ``inputs.py`` cuts files into tasks;
``processes.py``, ``on_dask.py`` and ``on_spark.py`` work on them; ``run.py`` puts all together.

``dask_training.py`` and ``spark_training.py`` are boosters that train on the codes of a release on
many machines; a label party takes them in the place of ``booster="xgboost"``.
"""

from opboost.files.stored_release import Manifest, read_manifest
from opboost.scale.desensitize_large import Result, desensitize
from opboost.scale.release_in_parts import Charge, Release

__all__ = ["Charge", "Manifest", "Release", "Result", "desensitize", "read_manifest"]
