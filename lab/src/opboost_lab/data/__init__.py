"""The data sets of the experiments: where they come from, and how they are read."""
