"""The auditor tried on faulty mechanisms, side channels of a draw, and whole pipelines."""
