"""The status of the newest job as Prometheus metrics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from opboost.errors import ConfigError
from opboost.transport.label.job_folder import jobs, status

PHASES = (
    "expected",
    "aligning",
    "aligned",
    "sending",
    "released",
    "asked",
    "answered",
    "refused",
    "revoked",
)


class JobMetrics(Collector):
    """The metrics of the newest job, read from its folder on every scrape."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics."""
        known = jobs(self._state)
        yield GaugeMetricFamily("opboost_jobs", "Jobs of this label party.", len(known))
        if not known:
            return
        where = status(known[-1])
        done = int(where["phase"] == "done")
        yield GaugeMetricFamily("opboost_rows", "Rows of the newest job.", where["rows"])
        yield GaugeMetricFamily("opboost_done", "1 if the newest job is done.", done)
        for metric, words, key in (
            ("opboost_received_bytes", "Bytes received from a party.", "bytes"),
            ("opboost_received_columns", "Columns received from a party.", "columns"),
            ("opboost_aligned_share", "Share of the alignment that is done.", "aligned"),
        ):
            family = GaugeMetricFamily(metric, words, labels=["party"])
            for name, party in where["parties"].items():
                family.add_metric([name], party[key])
            yield family
        phases = GaugeMetricFamily(
            "opboost_phase", "1 for the phase that a party is in.", labels=["party", "phase"]
        )
        for name, party in where["parties"].items():
            for phase in PHASES:
                phases.add_metric([name, phase], int(party["phase"] == phase))
        yield phases


@contextmanager
def serving_metrics(address: str, state: Path) -> Iterator[int]:
    """Serve GET /metrics while the block runs, and yield the port."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f'Metrics are served on "host:port"; got {address!r}.')

    registry = CollectorRegistry()
    registry.register(JobMetrics(state))

    class Handler(MetricsHandler.factory(registry)):  # type: ignore[misc]
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            super().do_GET()

    try:
        server = ThreadingHTTPServer((host, int(port)), Handler)
    except OSError as error:
        raise ConfigError(f"Metrics cannot be served on {address}: {error.strerror}.") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
