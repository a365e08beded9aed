"""The server's counters for Prometheus; they hold no value, no ID and no path from a request."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from opboost.scoring.scorer import Scorer

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class ScoreMetrics:
    """The counters of one server, in a registry of its own."""

    def __init__(self, scorer: Scorer) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "opboost_score_requests",
            "Requests by route and status.",
            ["route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "opboost_score_seconds",
            "Seconds from a request's head to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._rows = Counter("opboost_score_rows", "Rows that were scored.", registry=self.registry)
        ready = Gauge(
            "opboost_score_ready", "1 if requests can be answered.", registry=self.registry
        )
        ready.set_function(lambda: float(scorer.ready))

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def scored(self, rows: int) -> None:
        """Count rows that were scored."""
        self._rows.inc(rows)

    def text(self) -> bytes:
        """Return all counters in Prometheus' text format."""
        return generate_latest(self.registry)
