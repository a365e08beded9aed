"""Targets of fuzzing, and the contract of their decoders.

A decoder returns a value, or raises one of its own errors with a complete sentence.  It never
raises anything else, never hangs, and never takes more memory than :data:`MEMORY` plus 64 times its
input.  A value that it accepts means the same after it is written and read again.
"""

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from opboost.errors import OpBoostError
from opboost.storage import atomic_files
from robustness.fuzz.mutate import spoilt_by_kind

MEMORY = 64 * 2**20
"""Bytes that a decoder may take in addition to 64 times its input."""

SECONDS = 10.0
"""Seconds after which a case counts as hanging."""

LONGEST = 4000
"""The most characters of a message for a person."""


def sample(name: str) -> bytes:
    """Return a configuration from ``samples/``, from which cases are made."""
    return (Path(__file__).parent / "samples" / f"{name}.toml").read_bytes()


@dataclass(frozen=True, slots=True)
class FuzzDrill:
    """A prepared target: ``make`` returns a case, ``feed`` passes it to the decoder."""

    make: Callable[[Random], bytes]
    feed: Callable[[bytes], None]


def of_file(file: Path, make: Callable[[Random], bytes], use: Callable[[Path], Any]) -> FuzzDrill:
    """Return a drill whose cases are the content of one file."""

    def feed(data: bytes) -> None:
        file.write_bytes(data)
        use(file)

    return FuzzDrill(make, feed)


def of_files(
    files: Sequence[tuple[Path, bytes]],
    use: Callable[[], Any],
    change: Callable[[Random, bytes], bytes] = spoilt_by_kind,
    put: Callable[[Path, bytes], Any] = Path.write_bytes,
) -> FuzzDrill:
    """Return a drill that changes one of several files per case and restores it afterwards."""
    for file, good in files:
        put(file, good)
    use()  # intact files must be accepted, or every case would be refused for the same reason

    def make(rng: Random) -> bytes:
        place = rng.randrange(len(files))
        return bytes([place]) + change(rng, files[place][1])

    def feed(data: bytes) -> None:
        file, good = files[data[0]]
        put(file, data[1:])
        try:
            use()
        finally:
            put(file, good)

    return FuzzDrill(make, feed)


def put_checked(file: Path, data: bytes) -> None:
    """Write a file with a matching checksum, without which no damage would get past the check."""
    file.write_bytes(atomic_files.with_checksum(data))


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder, the errors that it may raise, and how many cases it gets.

    ``share`` weighs it against other targets when cases are distributed.  A slow decoder gets at
    most ``most`` cases.
    """

    name: str
    errors: tuple[type[OpBoostError], ...]
    prepare: Callable[[Path], FuzzDrill]
    share: float = 1.0
    most: int = 10**9
    seconds: float = SECONDS
    memory: int = MEMORY


class ContractBroken(Exception):
    """A decoder accepted a value that means something else after it is written again."""


def holds(law: bool, words: str) -> None:
    """Raise :class:`ContractBroken` unless a law holds."""
    if not law:
        raise ContractBroken(words)


def judged(target: Target, drill: FuzzDrill, data: bytes) -> str:
    """Return how the decoder broke its contract on these bytes; empty if it did not."""
    try:
        drill.feed(data)
    except target.errors as error:
        flaw = _flaw(str(error))
        return f"{flaw}: {_told(error)}" if flaw else ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _told(error)
    return ""


def _flaw(words: str) -> str:
    """Return why a person could not read this message; empty if they can.

    It ends with a full stop, or with words to type, after which a full stop would be typed too.
    """
    if not re.search(r"[.?!)]\s*$|(: opboost |: pip |: openssl | or --)[^:]+$", words):
        return "no sentence"
    if not words.replace("\n", " ").isprintable():
        return "cannot be printed"
    return "too long a sentence" if len(words) > LONGEST else ""


def _told(error: BaseException) -> str:
    """Return the error and the innermost places of the product in its traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "opboost" in f.filename and "robustness" not in f.filename]
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in (own or frames)[-3:]]
    where = " < ".join(reversed(places))
    return f"{type(error).__name__}: {str(error)[:200]!r} [{where}]"
