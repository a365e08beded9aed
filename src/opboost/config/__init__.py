"""Configuration: TOML files, keyed by column and party name, with helpful error messages.

``columns_file.py`` holds what a party declares about its columns; ``job_file.py`` says who takes
part in a job, where, and under which limits.
"""

from opboost.config.columns_file import load, parse
from opboost.config.sections import BoosterSection
from opboost.config.table_plan import Plan, undeclared

__all__ = ["BoosterSection", "Plan", "load", "parse", "undeclared"]
