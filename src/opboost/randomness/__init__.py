"""Cryptographic and seeded random streams, one stream per person, and exact arithmetic."""
