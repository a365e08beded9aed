"""A connection that is dead though nobody closed it, as a lost network leaves one."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from opboost.config.federation import load_feature
from opboost.experiments.relay import Relay
from opboost.experiments.scene import LABEL_PARTY
from opboost.service.join import join
from tests.federation import scene, serving, wait_for


class Cable(Relay):
    """A relay that can be cut: what is connected stays open and hears nothing any more."""

    def __init__(self, address):
        super().__init__(address)
        self.cut = threading.Event()

    def _carry(self, source, sink, upwards):
        begun_after = self.cut.is_set()
        with source, suppress(OSError):
            while data := source.recv(1 << 16):
                if begun_after or not self.cut.is_set():
                    sink.sendall(data)
            if begun_after:
                sink.shutdown(socket.SHUT_WR)


def test_a_party_notices_a_dead_connection_and_goes_on_with_another(tmp_path):
    made = scene(tmp_path, ("shop",), align="given")
    config = made.config("shop")
    config.write_text(
        config.read_text() + "\n[limits]\nconnect_seconds = 5.0\nanswer_seconds = 7.0\n"
    )
    with (
        serving(made) as (process, address),
        Cable(address) as cable,
        ThreadPoolExecutor(1) as pool,
    ):
        joined = pool.submit(join, load_feature(config), connect=cable.address)
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/schema")))
        cable.cut.set()
        assert joined.result(120)["phase"] == "done"
        assert process.wait(60) == 0
