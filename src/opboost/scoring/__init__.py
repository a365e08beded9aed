"""Serve one model's scores over HTTP: the Open Inference Protocol and plain JSON."""
