"""Releases too large for one machine, made by workers that may die and tasks that may repeat.

``release_in_parts.py`` runs a release from the secret to the manifest, ``part_writer.py`` does the
work of one task, and ``release_secret.py`` keeps what is destroyed in the end. ``table_tasks.py``
cuts files into tasks, ``on_processes.py``, ``on_dask.py`` and ``on_spark.py`` run them, and
``desensitize_large.py`` combines these modules.

``dask_training.py`` and ``spark_training.py`` are boosters that train on the codes of a release on
many machines; give one to a label party in place of ``booster="xgboost"``.
``cluster_booster.py`` connects to the cluster that a configuration names.
"""

from opboost.files.stored_release import Manifest, read_manifest
from opboost.scale.desensitize_large import ReleaseResult, desensitize
from opboost.scale.release_in_parts import Charge, ReleaseInParts

__all__ = ["Charge", "Manifest", "ReleaseInParts", "ReleaseResult", "desensitize", "read_manifest"]
