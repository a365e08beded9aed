"""Trials of the auditor on faulty mechanisms, side channels of a draw, and whole pipelines."""
