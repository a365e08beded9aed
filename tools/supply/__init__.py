"""Check the supply chain: lock files, their audit, and the bill of materials."""
