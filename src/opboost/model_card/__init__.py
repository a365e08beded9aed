"""The page about one model that an officer signs."""
