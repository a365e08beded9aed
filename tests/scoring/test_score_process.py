"""``opboost score`` as a process: TLS, a key, and a shutdown that finishes running requests."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from opboost.transport.shared.development_certificates import new_kit
from robustness.prefork_server import prefork_server

MODEL = Path(__file__).parents[1] / "golden/0.1.0/estimators/xgboost.opboost"
ROWS = MODEL.with_name("rows.csv")
KEY = "a-key-of-this-test"


def test_a_running_request_is_finished_after_sigterm_and_the_status_is_0(tmp_path):
    kit = new_kit("localhost", tmp_path / "certs")
    (tmp_path / "key").write_text(KEY)
    said = tmp_path / "said.txt"
    words = ["score", str(MODEL), "--port", "0", "--host", "0.0.0.0", "--name", "credit"]
    words += ["--tls-cert", str(kit / "cert.pem"), "--tls-key", str(kit / "key.pem")]
    words += ["--key-file", str(tmp_path / "key")]
    process = prefork_server().start([*words, "--format", "json"], said, data=said)
    with ExitStack() as stack:
        stack.callback(process.kill)
        address = opened(process, said)
        context = ssl.create_default_context(cafile=kit / "ca.pem")
        line = http.client.HTTPSConnection("localhost", address, context=context, timeout=60)
        stack.callback(line.close)
        line.request("GET", "/v2/models/credit")
        refused = line.getresponse()
        assert refused.status == 401
        refused.read()
        line.request("GET", "/v2/models/credit", headers={"authorization": f"Bearer {KEY}"})
        names = [i["name"] for i in json.loads(line.getresponse().read())["inputs"]]
        row = dict(zip(*(r.split(",") for r in ROWS.read_text().splitlines()[:2]), strict=True))
        body = json.dumps({"rows": [{n: number(row[n]) for n in names}]}).encode()
        line.putrequest("POST", "/score")
        line.putheader("Authorization", f"Bearer {KEY}")
        line.putheader("Content-Length", str(len(body)))
        line.endheaders(body[:5])
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert process.poll() is None  # it waits for the rest of the request
        begun = time.monotonic()
        line.send(body[5:])
        answer = line.getresponse()
        assert (answer.status, len(json.loads(answer.read())["predictions"])) == (200, 1)
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 20
        assert KEY not in said.read_text()


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def opened(process, said):
    """Return the port that the server prints."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, said.read_text()
        text = said.read_text() if said.exists() else ""
        if "is ready" in text:
            return int(json.loads(text[: text.index("}") + 1])["address"].rpartition(":")[2])
        time.sleep(0.02)
    pytest.fail("The server did not start.")
