"""Which failed calls count as refusals, and which as broken connections."""

from __future__ import annotations

import pyarrow.flight as flight
import pytest

from opboost.errors import PeerError
from opboost.protocol.messages import Ack, Poll
from opboost.transport.feature.label_connection import Connection, LoggedOut, Unreachable


class FailingServer(flight.FlightServerBase):
    """A real Flight server that answers every call with the error it was given."""

    def __init__(self, error: Exception) -> None:
        super().__init__("grpc+tcp://127.0.0.1:0")
        self.error = error

    def do_action(self, context, action):
        raise self.error


def raised_by(error):
    with FailingServer(error) as server:
        connection = Connection(f"127.0.0.1:{server.port}", "shop", "bank", None)
        try:
            with pytest.raises(PeerError) as caught:
                connection.call("poll", Poll("20260102T030405Z-01020304"), Ack)
        finally:
            connection.close()
    return caught.value


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (flight.FlightCancelledError("x"), Unreachable, "it ended the call before it answered"),
        (flight.FlightUnavailableError("x"), Unreachable, "x"),
        (flight.FlightTimedOutError("x"), Unreachable, "it did not answer in time"),
        (flight.FlightUnauthenticatedError("x"), LoggedOut, "x"),
    ],
)
def test_a_call_that_broke_is_worth_another_try(error, kind, words):
    raised = raised_by(error)
    assert type(raised) is kind
    assert words in str(raised)


def test_a_refusal_is_final():
    raised = raised_by(flight.FlightServerError("The job is over."))
    assert not isinstance(raised, Unreachable)
    assert "The label party refused: " in str(raised)
    assert "The job is over." in str(raised)
