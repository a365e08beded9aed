"""Tools of the project: the manual and the supply chain."""
