"""The model card: a page about one model, for an officer to sign."""
