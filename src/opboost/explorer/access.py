"""Access control: only this machine, by the printed address, and never from another site's page."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer: load nothing from elsewhere, cache nothing, send no referrer."""

_OURS = ("same-origin", "none")


def new_token() -> str:
    """Return an unguessable token for the address."""
    return secrets.token_urlsafe(24)


class Guard:
    """Middleware that passes a request on iff its host is ours and its path begins with the token.

    A request that changes something must also come from our own page.

    A page on another site can make a browser request 127.0.0.1, even under a domain name of its own
    that resolves to it (DNS rebinding).  Such a request names another host and has no token.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str]) -> None:
        self._app, self._token, self._hosts = app, token.encode(), frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with status 403 and the reason."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal, rest = self._checked(scope)
        if refusal:
            answer = PlainTextResponse(f"{refusal}\n", status_code=403)
            await answer(scope, receive, with_headers)
            return
        await self._app({**scope, "path": rest, "raw_path": rest.encode()}, receive, with_headers)

    def _checked(self, scope: Scope) -> tuple[str, str]:
        """Return why a request is refused (empty if it is not), and the path after the token."""
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            return "This page is served only to this machine, under the printed address.", ""
        found = re.fullmatch(r"/([^/]*)(/.*)", scope["path"], re.DOTALL)
        given = found[1].encode() if found else b""
        if not hmac.compare_digest(given, self._token) or found is None:
            return "The token is wrong. Copy the whole address that opboost explore printed.", ""
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin")
            foreign = origin is not None and origin.removeprefix("http://") not in self._hosts
            if foreign or headers.get("sec-fetch-site", "none") not in _OURS:
                return "A page of another site may not request this.", ""
        return "", found[2]
