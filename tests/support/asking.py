"""Requests to an ASGI application in this process, without a socket."""

from __future__ import annotations

import asyncio
import json


def ask(app, method, path, body=b"", headers=None, pieces=None):
    """Return the status, headers and JSON (or text) of an answer; ``pieces`` is a body in parts."""
    parts = list(pieces) if pieces is not None else [body]
    given = {"host": "127.0.0.1:80", "content-length": str(sum(map(len, parts)))}
    sent = {**given, **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(k.lower().encode(), v.encode()) for k, v in sent.items() if v is not None],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
    }
    found = {"body": b""}

    async def receive():
        if not parts:
            return {"type": "http.disconnect"}
        piece = parts.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(parts)}

    async def send(message):
        if message["type"] == "http.response.start":
            found["status"] = message["status"]
            found["headers"] = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            found["body"] += message.get("body", b"")

    asyncio.run(app(scope, receive, send))
    text = found["body"].decode()
    is_json = found["headers"]["content-type"] == "application/json"
    return found["status"], found["headers"], json.loads(text) if is_json else text


def post(app, path, value, **more):
    """Post a JSON value; return the status and JSON of the answer."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    status, _, found = ask(app, "POST", path, body, **more)
    return status, found
