"""Columns of a table: data frames, row IDs, private columns, and codebooks of released values."""
