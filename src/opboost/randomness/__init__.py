"""Random bits: cryptographic and seeded streams, one stream per person, exact arithmetic."""
