"""Configuration: TOML files, keyed by column and party name, validated with words of help.

``columns_file.py`` is what a party declares about its columns, ``job_file.py`` who takes part in a
job, where, and under which limits.
"""

from opboost.config.columns_file import load, parse
from opboost.config.sections import BoosterSection
from opboost.config.table_plan import Plan, undeclared

__all__ = ["BoosterSection", "Plan", "load", "parse", "undeclared"]
