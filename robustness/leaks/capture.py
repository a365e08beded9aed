"""Capture traffic on loopback with tshark."""

import shutil
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Self


class Capture:
    """A context that captures a loopback port; ``streams`` returns what the connections carried."""

    def __init__(self, port: int, file: Path) -> None:
        if shutil.which("tshark") is None:
            raise RuntimeError("tshark is not installed: apt-get install tshark.")
        self._port, self._file = port, file
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        what = ["-f", f"tcp port {self._port}", "-q", "-w", str(self._file)]
        command = ["tshark", "-i", "lo", *what]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 30
        while not self._file.exists() or self._file.stat().st_size == 0:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"tshark did not start: {self._process.communicate()[1]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
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
