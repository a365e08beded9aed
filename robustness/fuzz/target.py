"""What a target of fuzzing is, and the contract that its decoder is held to.

A decoder returns a value, or raises the error of its place with a complete sentence.  It never
raises anything else, never hangs, never takes more memory than :data:`MEMORY` and 64 times its
input, and what it accepts says the same when it is written again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from opboost.errors import OpBoostError

MEMORY = 64 * 2**20
"""Bytes that a decoder may take beside 64 times its input."""

SECONDS = 10.0
"""A case that takes longer hangs."""

LONGEST = 4000
"""Characters of the longest message that a person is to read."""


def sample(name: str) -> bytes:
    """A configuration that cases begin with, from ``samples/``."""
    return (Path(__file__).parent / "samples" / f"{name}.toml").read_bytes()


@dataclass(frozen=True, slots=True)
class FuzzDrill:
    """A target that is ready: ``make`` gives a case, ``feed`` gives it to the decoder."""

    make: Callable[[Random], bytes]
    feed: Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder, the errors that are right for it, and how many cases it gets.

    ``share`` is its part of the cases that are left when ``fixed`` ones have theirs; a slow decoder
    gets at most ``most``.
    """

    name: str
    errors: tuple[type[OpBoostError], ...]
    prepare: Callable[[Path], FuzzDrill]
    share: float = 1.0
    most: int = 10**9
    seconds: float = SECONDS
    memory: int = MEMORY


class ContractBroken(Exception):
    """A value was accepted and says something else when it is written again."""


def holds(law: bool, words: str) -> None:
    """Refuse to go on where a law does not hold."""
    if not law:
        raise ContractBroken(words)


def judged(target: Target, drill: FuzzDrill, data: bytes) -> str:
    """What is wrong with the way in which the decoder took these bytes; empty if nothing is."""
    try:
        drill.feed(data)
    except target.errors as error:
        return _unreadable(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _told(error)
    return ""


def _unreadable(error: OpBoostError) -> str:
    words = str(error)
    if not words.strip() or words.rstrip()[-1] not in ".?!)":
        return f"no sentence: {type(error).__name__}: {words[:200]!r} {_where(error)}"
    if not words.replace("\n", " ").isprintable():
        return f"cannot be printed: {type(error).__name__}: {words[:200]!r} {_where(error)}"
    if len(words) > LONGEST:
        return f"too long a sentence: {type(error).__name__}: {words[:100]!r} {_where(error)}"
    return ""


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]!r} {_where(error)}"


def _where(error: BaseException) -> str:
    """The last places of the product through which the error came."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "opboost" in f.filename and "robustness" not in f.filename]
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in (own or frames)[-3:]]
    return f"[{' < '.join(reversed(places))}]"
