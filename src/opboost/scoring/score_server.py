"""The server: routes, limits, and a shutdown that lets running requests finish."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from anyio import CapacityLimiter, to_thread
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opboost.errors import ConfigError, in_words
from opboost.runtime.threads import most_threads
from opboost.scoring.api_key import Access, is_loopback
from opboost.scoring.json_rows import answer_of, batch_of_rows, parsed
from opboost.scoring.open_inference import (
    batch_of_tensors,
    inference_answer,
    model_metadata,
    server_metadata,
)
from opboost.scoring.refusals import (
    NO_KEY,
    NOT_READY,
    NOT_THERE,
    TOO_LARGE,
    TOO_SLOW,
    RequestRefused,
)
from opboost.scoring.score_metrics import ScoreMetrics
from opboost.scoring.scorer import Scorer

INLINE_BYTES = 4096
"""Requests up to this size are answered without starting a thread, which would take longer."""

BODY_TIMEOUT_SECONDS = 30
GRACEFUL_SECONDS = 30
KEEP_ALIVE_SECONDS = 75
MAX_CONNECTIONS = 1024

SWITCH_SECONDS = 0.0005
"""The longest that a thread parsing a large request may keep others waiting at a time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest request that is answered."""

    rows: int = 10_000
    bytes: int = 16 << 20


def application(scorer: Scorer, limits: Limits, access: Access) -> ASGIApp:
    """Return the application: its routes, behind a check of the key or host of each request."""
    metrics = ScoreMetrics(scorer)
    threads = CapacityLimiter(most_threads())

    async def on_body(request: Request, work: Callable[[bytes], dict[str, Any]]) -> Response:
        body = await _body(request, limits.bytes)
        if len(body) <= INLINE_BYTES and not scorer.ids:
            return _json(work(body))
        return await to_thread.run_sync(lambda: _json(work(body)), limiter=threads)

    def score_rows(body: bytes) -> dict[str, Any]:
        batch = batch_of_rows(parsed(body), scorer, limits.rows)
        scores = scorer.score(batch.columns, batch.rows, "rows[{}]".format)
        metrics.scored(batch.rows)
        return answer_of(scores, scorer)

    def infer_tensors(body: bytes) -> dict[str, Any]:
        asked = parsed(body)
        batch = batch_of_tensors(asked, scorer, limits.rows)
        scores = scorer.score(batch.columns, batch.rows, "data[{}]".format)
        metrics.scored(batch.rows)
        return inference_answer(scores, scorer, asked)

    async def score(request: Request) -> Response:
        return await on_body(request, score_rows)

    async def infer(request: Request) -> Response:
        named(request)
        return await on_body(request, infer_tensors)

    def named(request: Request) -> None:
        if request.path_params["name"] != scorer.name:
            raise RequestRefused(NOT_THERE, f"No such model. This server has {scorer.name!r}.")

    async def server(request: Request) -> Response:
        return _json(server_metadata())

    async def live(request: Request) -> Response:
        return _json({"live": True})

    async def ready(request: Request) -> Response:
        there = await to_thread.run_sync(lambda: scorer.ready, limiter=threads)
        return _json({"ready": there}, 200 if there else NOT_READY)

    async def model(request: Request) -> Response:
        named(request)
        return _json(model_metadata(scorer))

    async def model_ready(request: Request) -> Response:
        named(request)
        there = await to_thread.run_sync(lambda: scorer.ready, limiter=threads)
        return _json({"name": scorer.name, "ready": there}, 200 if there else NOT_READY)

    async def measured(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    routes = [
        Route("/score", score, methods=["POST"]),
        Route("/metrics", measured),
        Route("/v2", server),
        Route("/v2/health/live", live),
        Route("/v2/health/ready", ready),
        Route("/v2/models/{name}", model),
        Route("/v2/models/{name}/ready", model_ready),
        Route("/v2/models/{name}/infer", infer, methods=["POST"]),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            RequestRefused: _refused,
            HTTPException: _unknown,
            Exception: _defect,
        },
    )
    return _Counted(app, access, metrics, [r.path for r in routes])


class _Counted:
    """Middleware that refuses unauthorised requests, and counts every answer by its route."""

    def __init__(
        self, app: ASGIApp, access: Access, metrics: ScoreMetrics, routes: list[str]
    ) -> None:
        self._app, self._access, self._metrics = app, access, metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begun, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            try:
                self._access.check(scope["path"], Headers(scope=scope))
            except RequestRefused as refusal:
                await _refused(None, refusal)(scope, receive, noting)
                return
            await self._app(scope, receive, noting)
        finally:
            self._metrics.answered(self._route(scope["path"]), status, time.perf_counter() - begun)

    def _route(self, path: str) -> str:
        """Return the route of a path, never the path itself, which is untrusted."""
        if path in self._routes:
            return path
        parts = path.split("/")
        if parts[:3] == ["", "v2", "models"] and len(parts) > 3:
            general = "/".join(["/v2/models/{name}", *parts[4:]])
            if general in self._routes:
                return general
        return "other"


async def _body(request: Request, most: int) -> bytes:
    """Return the body of a request.

    A body somewhat above the limit is read to its end and discarded, so that the client receives
    the refusal.
    """
    declared = request.headers.get("content-length", "")
    over = declared.isdigit() and int(declared) > most
    if declared.isdigit() and int(declared) > 4 * most:
        raise _too_large(most)
    taken, size = [], 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for piece in request.stream():
                size += len(piece)
                over |= size > most
                if size > 4 * most:
                    break
                if not over:
                    taken.append(piece)
    except TimeoutError:
        raise RequestRefused(
            TOO_SLOW, f"The request did not arrive within {BODY_TIMEOUT_SECONDS} seconds."
        ) from None
    except ClientDisconnect:
        raise RequestRefused(TOO_SLOW, "The request was cut short.") from None
    if over:
        raise _too_large(most)
    return b"".join(taken)


def _too_large(most: int) -> RequestRefused:
    return RequestRefused(
        TOO_LARGE, f"The request is larger than {most:,} bytes. Send fewer rows at a time."
    )


def _json(found: dict[str, Any], status: int = 200) -> Response:
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode(), status, media_type="application/json")


def _refused(request: Request | None, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    answer = _json({"error": str(error)}, error.status)
    if error.status == NO_KEY:
        answer.headers["www-authenticate"] = "Bearer"
    if error.status in (TOO_LARGE, TOO_SLOW):
        answer.headers["connection"] = "close"
    return answer


def _unknown(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown page, or with the wrong method."""
    assert isinstance(error, HTTPException)
    if error.status_code == NOT_THERE:
        return _json({"error": "No such page. Rows are scored with POST /score."}, NOT_THERE)
    answer = _json({"error": "This page needs another HTTP method."}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


def _defect(request: Request, error: Exception) -> Response:
    """Report an unexpected error without its message, which may hold a value of the request."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    print(f"{frames}{type(error).__name__}, a defect of OpBoost.", file=sys.stderr, flush=True)
    return _json({"error": f"{type(error).__name__}, a defect of OpBoost."}, 500)


def tls_context(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context with the server's certificate; None if neither file is given."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise ConfigError("TLS needs both files: --tls-cert and --tls-key.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for file in (cert, key):
        if not file.is_file():
            raise ConfigError(f"The TLS file {file} does not exist.")
    try:
        context.load_cert_chain(cert, key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"The certificate {cert} and the key {key} cannot be used: {in_words(error)}. Give PEM "
            "files that belong together, the key without a password."
        ) from None
    return context


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)
        # Connections inherit this option.  Without it, the second of an answer's two writes would
        # wait 40 ms for the client to acknowledge the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        words = getattr(error, "strerror", None) or error
        raise ConfigError(f"Port {port} of {host} cannot be used: {words}.") from None


class _Server(uvicorn.Server):
    """A server that stops once its requests are answered, even if connections are still open."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for running requests, then close idle connections."""
        leaving = asyncio.create_task(self._leave())
        await super().shutdown(sockets)
        leaving.cancel()

    async def _leave(self) -> None:
        """Abort connections with nothing left to send: TLS would wait for the peer's close."""
        while self.server_state.tasks:
            await asyncio.sleep(0.05)
        while True:
            await asyncio.sleep(0.1)
            for connection in list(self.server_state.connections):
                transport: Any = getattr(connection, "transport", None)
                if transport is not None and not transport.get_write_buffer_size():
                    transport.abort()


def prepared(
    scorer: Scorer, limits: Limits, access: Access, context: ssl.SSLContext | None = None
) -> uvicorn.Server:
    """Return the configured server, ready to run."""
    config = uvicorn.Config(
        application(scorer, limits, access),
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    config.load()
    config.ssl = context
    return _Server(config)


def serve(
    scorer: Scorer,
    limits: Limits,
    *,
    host: str,
    port: int,
    key: bytes | None,
    context: ssl.SSLContext | None,
    opened: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the running requests.

    ``opened`` is called with the address.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    local = is_loopback(host)
    with listening(host, port) as listener:
        server = prepared(scorer, limits, Access(key, local), context)
        scheme = "http" if context is None else "https"
        shown = f"[{host}]" if ":" in host else host
        opened(f"{scheme}://{shown}:{listener.getsockname()[1]}")
        try:
            server.run(sockets=[listener])
        except (SystemExit, KeyboardInterrupt):
            if not server.should_exit:  # uvicorn raises the signal again after a clean stop
                raise
