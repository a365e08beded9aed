"""Compare what feature parties say they reveal about one person with the job's limit."""

from __future__ import annotations

from pathlib import Path

from opboost.budgets.job_limit import check_record
from opboost.errors import PeerError, PrivacyError
from opboost.protocol.messages import Hello, decode, encode
from opboost.transport.label.job_folder import JobRecord, PartyFolder

HELLO = "hello"


def meet(job: Path, record: JobRecord, hello: Hello) -> None:
    """Record a party's introduction; refuse it if the totals so far exceed the limit.

    A refused introduction is not recorded: the others wait until the party returns with a smaller
    total.
    """
    check_hello(record, hello)
    boxes = {name: PartyFolder(job, name) for name in record.active if name != hello.party}
    known = {name: told(box) for name, box in boxes.items() if box.has(HELLO)}
    try:
        check_record({**known, hello.party: hello.total}, record.record)
    except PrivacyError as error:
        raise PeerError(str(error)) from None
    PartyFolder(job, hello.party).write(HELLO, encode(hello))


def check_hello(record: JobRecord, hello: Hello) -> None:
    """Refuse a party that does not say how much it reveals in a job that limits it."""
    if record.record and not hello.total:
        raise PeerError(
            f"Party {hello.party!r} does not say how much it reveals about one person, and the job "
            f"allows {record.record:g}."
        )


def told(box: PartyFolder) -> float:
    """Return the most that a party said it reveals about one person."""
    return decode(box.read(HELLO), Hello).total
