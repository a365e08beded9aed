"""Trials of the auditor, side channels of a draw, and audits of whole pipelines."""
