"""Where the job stands, in the text form that Prometheus reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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
    "revoked",
)


def render(state: Path) -> str:
    """The metrics of the newest job.

    https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    known = jobs(state)
    lines = ["# TYPE opboost_jobs gauge", f"opboost_jobs {len(known)}"]
    if not known:
        return "\n".join(lines) + "\n"
    where = status(known[-1])
    lines += ["# TYPE opboost_rows gauge", f"opboost_rows {where['rows']}"]
    lines += ["# TYPE opboost_done gauge", f"opboost_done {int(where['phase'] == 'done')}"]
    for metric, key in (
        ("opboost_received_bytes", "bytes"),
        ("opboost_received_columns", "columns"),
        ("opboost_aligned_share", "aligned"),
    ):
        lines.append(f"# TYPE {metric} gauge")
        for name, party in where["parties"].items():
            lines.append(f'{metric}{{party="{name}"}} {party[key]}')
    lines.append("# TYPE opboost_phase gauge")
    for name, party in where["parties"].items():
        for phase in PHASES:
            on = int(party["phase"] == phase)
            lines.append(f'opboost_phase{{party="{name}",phase="{phase}"}} {on}')
    return "\n".join(lines) + "\n"


@contextmanager
def serving_metrics(address: str | None, state: Path) -> Iterator[int | None]:
    """Answer GET /metrics while the block runs, if an address was asked for; yields the port."""
    if address is None:
        yield None
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f'Metrics are served on "host:port"; got {address!r}.')

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = render(state).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on standard error."""

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
