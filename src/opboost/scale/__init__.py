"""Releases that are larger than a machine, made by workers that may die and tasks that repeat.

``release.py`` is the life of a release from its secret to its manifest, ``block.py`` what one task
does, ``vault.py`` what is destroyed in the end; ``inputs.py`` cuts a table into tasks, and
``engines.py`` hands them to processes, Dask or Spark.
"""
