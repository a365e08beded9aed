"""Capture traffic on loopback with tshark."""

import shutil
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Self

from robustness.prefork_server import waited


class Capture:
    """A context that captures a port of loopback; ``streams`` returns what connections carried."""

    def __init__(self, address: str, file: Path) -> None:
        if shutil.which("tshark") is None:
            raise RuntimeError("tshark is not installed: apt-get install tshark.")
        what = ["-f", f"tcp port {address.rpartition(':')[2]}", "-q", "-w", str(file)]
        self._file, self._command = file, ["tshark", "-i", "lo", *what]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        waited(lambda: self._begun() or self._process.poll() is not None, 30)
        if not self._begun():
            self._process.kill()
            raise RuntimeError(f"tshark did not start: {self._process.communicate()[1]}")
        return self

    def _begun(self) -> bool:
        return self._file.exists() and self._file.stat().st_size > 0

    def __exit__(self, *error: object) -> None:
        time.sleep(1.0)  # tshark writes the last packets late
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=30)

    def streams(self) -> list[bytes]:
        """Return each direction of each connection, in order and without retransmissions."""
        fields = ("tcp.stream", "tcp.srcport", "tcp.payload")
        command = ["tshark", "-r", str(self._file), "-T", "fields"]
        command += [part for field in fields for part in ("-e", field)]
        command += ["-Y", "tcp.len > 0 && !tcp.analysis.retransmission"]
        read = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        found: dict[tuple[str, str], bytearray] = defaultdict(bytearray)
        for line in read.stdout.splitlines():
            stream, port, payload = line.split("\t")
            found[stream, port] += bytes.fromhex(payload.replace(":", ""))
        return [bytes(data) for data in found.values()]
