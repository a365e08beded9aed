"""The auditor tried on faulty mechanisms, and the side channels of a draw."""
