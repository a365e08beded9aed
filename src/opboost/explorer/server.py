"""Serve the pages over HTTP, on this machine only."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from threadpoolctl import threadpool_limits

from opboost.config.columns_file import DeclaredTable, load_declared
from opboost.errors import ConfigError, DataError, OpBoostError
from opboost.explorer import pages
from opboost.explorer.access import Guard, new_token
from opboost.explorer.changed_file import drawn_bounds
from opboost.explorer.choice import Form
from opboost.explorer.choice_as_toml import as_toml
from opboost.explorer.job_view import RunView
from opboost.explorer.record_form import RecordForm
from opboost.explorer.remaining_budget import LedgerView
from opboost.explorer.trial_process import SAMPLE_ROWS, TrialProcess
from opboost.files.read_tables import column_names, table_files

HOST = "127.0.0.1"
MAX_FIELDS, MAX_BODY_BYTES = 5000, 1_000_000


@dataclass(frozen=True, slots=True)
class Site:
    """What the pages show: a table, a ledger, a job and declared columns, each optional."""

    table: Path | None = None
    ledger: LedgerView | None = None
    run: RunView | None = None
    names: tuple[str, ...] = ()
    trial: TrialProcess = field(default_factory=TrialProcess)
    declared: DeclaredTable | None = None

    @classmethod
    def of(
        cls,
        table: Path | None,
        ledger: Path | None,
        job: Path | None,
        config: Path | None = None,
    ) -> Site:
        """Read everything that was named, so that errors are reported before a page opens."""
        names = tuple(column_names(table_files(table)[0])) if table else ()
        book = LedgerView(ledger) if ledger else None
        if book is not None:
            book.summary()
        declared = load_declared(config) if config else None
        if book is None and config is not None and declared is not None and declared.has_ledger:
            book = LedgerView(config, may_be_new=True)
        run = RunView.of(job, book) if job else None
        return cls(table, book, run, names, declared=declared)

    def record_form(self, query: str) -> RecordForm:
        """Return the form of the first page."""
        fields = {name: values[-1] for name, values in _by_name(query).items()}
        return RecordForm.of(fields, self.declared, len(self.names))

    def form(self, query: str) -> Form:
        """Return the mechanism page's form; bounds come from the file, never from the table."""
        by_name = _by_name(query)
        three = (by_name.get(name, []) for name in ("column", "lower", "upper"))
        rows = [(a.strip(), b.strip(), c.strip()) for a, b, c in zip(*three, strict=False)]
        fields = {name: values[-1] for name, values in by_name.items()}
        bounds = self._declared_bounds()
        before = [(name, *bounds.get(name, ("", ""))) for name in self.names or bounds]
        return Form.of(fields, rows, before) if before else Form.of(fields, rows)

    def _declared_bounds(self) -> dict[str, tuple[str, str]]:
        found = drawn_bounds(self.declared) if self.declared else {}
        return {name: (f"{low:.15g}", f"{high:.15g}") for name, (low, high) in found.items()}


def _by_name(query: str) -> dict[str, list[str]]:
    """Return the values of each field."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise ConfigError(f"The form has more than {MAX_FIELDS:,} fields.") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def application(site: Site) -> Starlette:
    """Return the application without access control, which :class:`Guard` adds."""

    def record(request: Request) -> Response:
        return HTMLResponse(
            pages.record_page(
                site.record_form(request.url.query),
                ledger=site.ledger,
                table=site.table.name if site.table else "",
                has_job=site.run is not None,
            )
        )

    def record_part(request: Request) -> Response:
        return _part(pages.record_part(site.record_form(request.url.query), site.ledger))

    def mechanism(request: Request) -> Response:
        return HTMLResponse(
            pages.mechanism_page(
                site.form(request.url.query),
                declared=site.declared,
                ledger=site.ledger,
                table=site.table.name if site.table else "",
                names=site.names,
                sample=SAMPLE_ROWS,
                progress=site.trial.progress(),
                has_job=site.run is not None,
            )
        )

    def mechanism_part(request: Request) -> Response:
        form = site.form(request.url.query)
        return _part(pages.mechanism_part(form, site.ledger, declared=site.declared))

    async def start(request: Request) -> Response:
        try:
            begin(await _body(request))
        except OpBoostError as error:
            return JSONResponse({"problem": str(error)})
        return JSONResponse({"problem": ""})

    def begin(body: str) -> None:
        if site.table is None:
            raise ConfigError("There is no table. Start again with: opboost explore TABLE.")
        label = dict(parse_qsl(body)).get("label", "")
        choice = pages.choice_of(site.form(body))
        site.trial.start(site.table, label, as_toml(choice, label))

    def stop(request: Request) -> Response:
        site.trial.stop()
        return JSONResponse({})

    def trial(request: Request) -> Response:
        progress = site.trial.progress()
        return JSONResponse({"html": pages.trial_part(progress), "state": progress.state})

    def run(request: Request) -> Response:
        if site.run is None:
            return PlainTextResponse("No job was named. Start again with --job.\n", 404)
        return HTMLResponse(pages.run_page(site.run.look()))

    def run_part(request: Request) -> Response:
        if site.run is None:
            return JSONResponse({}, 404)
        found = site.run.look()
        return JSONResponse(
            {"html": pages.run_part(found), "words": found.meaning, "over": found.over}
        )

    return Starlette(
        routes=[
            Route("/", record),
            Route("/record/part", record_part),
            Route("/mechanism", mechanism),
            Route("/mechanism/part", mechanism_part),
            Route("/trial/start", start, methods=["POST"]),
            Route("/trial/stop", stop, methods=["POST"]),
            Route("/trial/part", trial),
            Route("/run", run),
            Route("/run/part", run_part),
            Mount("/static", StaticFiles(packages=[("opboost.explorer", "static")])),
        ],
        exception_handlers={OpBoostError: _expected_error, Exception: _defect},
    )


def _part(found: pages.Part) -> Response:
    return JSONResponse(
        {"html": found.html, "summary": found.summary, "problems": dict(found.problems)}
    )


async def _body(request: Request) -> str:
    taken = b""
    async for piece in request.stream():
        taken += piece
        if len(taken) > MAX_BODY_BYTES:
            raise ConfigError(f"The form is larger than {MAX_BODY_BYTES:,} bytes.")
    return taken.decode(errors="replace")


def _expected_error(request: Request, error: Exception) -> Response:
    """Answer an expected error with its sentence, without any value of a table."""
    words = error.logged if isinstance(error, DataError) else str(error)
    return PlainTextResponse(f"{words}\n", 400)


def _defect(request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{type(error).__name__}, a defect of OpBoost.\n", 500)


def serve(
    site: Site, *, port: int = 0, opened: Callable[[str], None] = lambda address: None
) -> None:
    """Serve until interrupted; call ``opened`` with the address, which includes the token."""
    with listening(port) as listener:
        token = new_token()
        server, address = prepared(site, listener, token)
        opened(address)
        try:
            with threadpool_limits(1):  # for small products, threads cost more than they gain
                server.run(sockets=[listener])
        finally:
            site.trial.stop()


def listening(port: int) -> socket.socket:
    """Return a socket that only this machine can reach."""
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or error
        raise ConfigError(f"Port {port} of {HOST} cannot be used: {words}.") from None


def prepared(site: Site, listener: socket.socket, token: str) -> tuple[uvicorn.Server, str]:
    """Return the server behind its guard, and its address."""
    port = listener.getsockname()[1]
    hosts: Sequence[str] = [f"{HOST}:{port}", f"localhost:{port}"]
    app: Any = Guard(application(site), token, hosts)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        ws="none",
        h11_max_incomplete_event_size=MAX_BODY_BYTES,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config), f"http://{HOST}:{port}/{token}/{'run' if site.run else ''}"
