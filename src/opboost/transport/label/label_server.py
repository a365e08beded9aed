"""The process that faces the network and serves one job until the training process ends.

It holds none of the label party's data.  A memory limit bounds what a hostile stream can use up: a
small compressed batch can inflate a thousandfold before Python sees it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from opboost.runtime.loading import loading
from opboost.runtime.optional_packages import load_without_optional_packages
from opboost.transport.label.process_limits import allow_files, full_stack, limit_memory

if TYPE_CHECKING:
    from opboost.transport.label.flight_server import LabelServer

MAX_OPEN_FILES = 4096
"""The number of open files and connections that the label server asks the system to allow."""

FAREWELL_SECONDS = 0.3
"""Seconds for open calls to finish after the training process ends; then they are cut off."""


def main() -> None:
    """Serve until standard input closes, which happens when the training process ends."""
    full_stack()
    with loading:
        load_without_optional_packages()
        import pyarrow as pa

        from opboost.protocol.entropy_coding import warm_up
        from opboost.storage.atomic_files import json_reader
        from opboost.transport.label.call_admission import first_line
        from opboost.transport.label.flight_server import LabelServer, Setting
        from opboost.transport.label.job_folder import JobRecord

        warm_up()
        json_reader(JobRecord)
    plain = json.loads(sys.stdin.readline())
    setting = Setting(**{**plain, "job": Path(plain["job"])})
    try:
        server = LabelServer(setting)
    except (pa.ArrowException, OSError) as error:
        print(json.dumps({"error": first_line(error)}), flush=True)
        return
    limit_memory(setting.memory_mb)
    allow_files(MAX_OPEN_FILES)
    server.limits.watch(server.port)
    print(json.dumps({"port": server.port}), flush=True)
    sys.stdin.read()
    _let_answers_leave(server)
    os._exit(0)


def _let_answers_leave(server: LabelServer) -> None:
    """Give the last answers time to be sent, such as the one that says that the job is done."""
    ending = threading.Thread(target=server.shutdown, daemon=True)
    with suppress(RuntimeError):  # there is no memory left for a thread
        ending.start()
        ending.join(FAREWELL_SECONDS)


if __name__ == "__main__":
    main()
