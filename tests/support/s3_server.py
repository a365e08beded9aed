"""An S3 server on loopback (moto), with one bucket."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow.fs
import pytest

BUCKET = "shop"
KEY, SECRET = "AKIAOPBOOSTTEST", "verschwiegen-4471"


@dataclass(frozen=True)
class S3Server:
    """A running server."""

    endpoint: str

    def uri(self, key: str) -> str:
        return f"s3://{BUCKET}/{key}?endpoint={self.endpoint}&region=us-east-1"

    def put(self, key: str, content: bytes) -> None:
        with self.files().open_output_stream(f"{BUCKET}/{key}") as stream:
            stream.write(content)

    def files(self):
        return pyarrow.fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            endpoint_override=self.endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        )


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server with one bucket, which accepts any credentials unless configured otherwise."""
    reason = "no S3 server here: pip install 'moto[s3]' flask flask-cors to run this test"
    ThreadedMotoServer = pytest.importorskip("moto.server", reason=reason).ThreadedMotoServer
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        made = S3Server(f"http://{host}:{port}")
        made.files().create_dir(BUCKET)
        yield made
    finally:
        server.stop()
