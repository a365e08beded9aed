"""``python -m opboost``."""

from opboost.cli import main

main()
