"""Only the release itself can use a cluster that it starts."""

import contextlib
import http.client
import os
import shutil
import socket
import ssl
import stat
import sys
from pathlib import Path

import pytest

from opboost.scale import desensitize
from tests.support.listening import Listener, listeners
from tests.support.releases import PLAN, files

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
ROUTES = ("/", "/status", "/info/main/workers.html", "/json/counts.json", "/metrics", "/health")


def runs_code(address, security=None):
    """Return whether a client with these credentials, or none, can run a task."""
    try:
        with distributed.Client(address, security=security, timeout=5, set_as_default=False) as c:
            return c.submit(os.getpid, pure=False).result(timeout=5) > 0
    except Exception:  # whatever Dask raises for a refused connection
        return False


def pages(listener):
    """Return the HTTP status of each page, if the port answers HTTP."""
    found = {}
    for route in ROUTES:
        connection = http.client.HTTPConnection(listener.address, listener.port, timeout=3)
        with contextlib.closing(connection):
            connection.request("GET", route)
            found[route] = connection.getresponse().status
    return found


def handshake(listener):
    """Return how a TLS connection without a certificate ends."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # later versions refuse after the handshake
    with (
        socket.create_connection((listener.address, listener.port), timeout=3) as plain,
        context.wrap_socket(plain) as secure,
    ):
        secure.sendall(bytes(8))
        return secure.recv(1)


def test_the_sockets_of_this_process_are_found():
    with socket.create_server(("127.0.0.1", 0)) as server:
        mine = Listener(os.getpid(), "127.0.0.1", server.getsockname()[1])
        assert mine in listeners(os.getpid())
    with socket.create_server(("::", 0), family=socket.AF_INET6) as server:
        assert Listener(os.getpid(), "::", server.getsockname()[1]) in listeners(os.getpid())


@pytest.fixture
def seen(tmp_path):
    """Return what an outsider can reach while a cluster started by desensitize works."""
    before, path, found = listeners(os.getpid()), list(sys.path), {}

    def look(done, parts):
        if found:
            return
        found["listeners"] = sorted(listeners(os.getpid()) - before, key=lambda s: s.port)
        client = distributed.default_client()
        places = [p.partition("dask-scratch-space") for p in sys.path]
        found["scratch"] = [Path(above).stat() for above, shared, _ in places if shared]
        scheduler = client.scheduler.address.partition("://")[2]
        found["runs code"] = {
            "the release": runs_code(client.scheduler.address, client.security),
            "no key": runs_code(f"tcp://{scheduler}"),
            "another key": runs_code(f"tls://{scheduler}", distributed.Security.temporary()),
        }
        found["pages"], found["tls"] = {}, {}
        for listener in found["listeners"]:
            try:
                found["pages"][listener] = pages(listener)
            except (OSError, http.client.HTTPException):
                with pytest.raises(OSError) as refused:
                    handshake(listener)
                found["tls"][listener] = str(refused.value)

    raw = files(tmp_path / "raw", parts=2, rows=50)
    made = desensitize(
        raw, PLAN, tmp_path / "out", ids="id", engine="dask", workers=2, progress=look
    )
    assert made.manifest.rows == 100
    assert sys.path == path, "Python would look for modules in the cluster's folder"
    return found


@pytest.mark.filterwarnings("default")  # about rejected clients
def test_a_dask_cluster_of_ones_own_is_closed_to_everybody_else(seen):
    assert {s.address for s in seen["listeners"]} == {"127.0.0.1"}
    assert seen["runs code"] == {"the release": True, "no key": False, "another key": False}
    assert len(seen["tls"]) >= 5, "the scheduler, two nannies and two workers"
    assert {"alert handshake failure" in words for words in seen["tls"].values()} == {True}
    assert all(set(found.values()) == {404} for found in seen["pages"].values())
    assert seen["scratch"], "Dask no longer looks for modules there: remove the guard"
    for place in seen["scratch"]:
        assert (place.st_uid, stat.S_IMODE(place.st_mode)) == (os.getuid(), 0o700)


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
@pytest.mark.filterwarnings("default")  # from Spark itself
def test_a_spark_session_of_ones_own_listens_on_loopback_and_wants_a_secret(tmp_path):
    sql = pytest.importorskip("pyspark.sql")
    found = {}

    def look(done, parts):
        found["listeners"] = listeners(os.getpid())
        found["settings"] = dict(
            sql.SparkSession.getActiveSession().sparkContext.getConf().getAll()
        )

    before, raw = listeners(os.getpid()), files(tmp_path / "raw", parts=2, rows=50)
    desensitize(raw, PLAN, tmp_path / "out", ids="id", engine="spark", workers=2, progress=look)
    addresses = {s.address for s in found["listeners"] - before}
    assert addresses, "Spark no longer listens: remove the guard"
    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert found["settings"]["spark.authenticate"] == "true"
