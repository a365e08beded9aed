"""Scores over HTTP: one model, the Open Inference Protocol and plain JSON."""
