"""From a laptop to a cluster.

``dask_training.py`` and ``spark_training.py`` are boosters that train on the codes of a release on
many machines; a label party takes them in the place of ``booster="xgboost"``.
"""
