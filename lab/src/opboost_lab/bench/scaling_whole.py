"""``opboost bench scale --end-to-end``: a whole job, and how far it is from its parts' limits.

The limits are measured beside it, on the same disk: AES in counter mode for the noise, a plain file
for what is put aside, the entropy coder alone, and XGBoost alone on the same codes in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opboost.ledger import Ledger
from opboost.parties.feature.feature_party import FeatureParty
from opboost.protocol.entropy_coding import Coder, warm_up
from opboost_lab.bench.process_usage import peak_mb
from opboost_lab.bench.scaling import played
from opboost_lab.bench.scaling_point import BLOCK, WELCOME, Point, raw

WHOLE = Point(10_000_000, 20, trees=80, threads=None)
QUICK = Point(1_000_000, 20, trees=20, threads=None)
SAMPLE = 2**22
"""Values on which a limit is measured."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a job, and the least that it could take."""

    name: str
    seconds: float
    limit: str
    limit_seconds: float

    @property
    def ratio(self) -> float:
        """How far it is from its limit."""
        return self.seconds / self.limit_seconds


@dataclass(frozen=True, slots=True)
class Whole:
    """A job from the feature party's Parquet file to the model, and its parts.

    ``ledger_seconds`` is the whole of the feature party's work with IDs and a ledger; the stages
    are those that depend on neither.
    """

    point: Point
    stages: tuple[Stage, ...]
    ledger_seconds: float
    ledger_mb: float
    label_mb: float
    bytes: int

    @property
    def seconds(self) -> float:
        """From the file to the model, with a ledger."""
        return self.ledger_seconds + sum(s.seconds for s in self.stages if s.name in LABEL)

    @property
    def limit_seconds(self) -> float:
        """The limits, one after the other."""
        return sum(s.limit_seconds for s in self.stages)


LABEL = ("unpack and rewrite", "XGBoost")


def run(point: Point = QUICK, folder: Path | None = None) -> Whole:
    """Each part in a process of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        home = Path(place)
        released = played("release", point, home / "released")
        trained = played("train", point, home / "released")
        inside = played("train", replace(point, memory="internal"), home / "released")
        shutil.rmtree(home / "released")
        joined = played("join", point, home / "joined", module=__name__)
        least = played("limits", point, home, module=__name__)
    seconds = released["seconds"] | trained["seconds"]
    stages = (
        ("desensitise", "AES-256-CTR, 8 bytes a value", least["aes"]),
        ("put aside", "2 bytes a value to the disk and back", least["disk"]),
        ("code and write", "the entropy coder alone", least["encode"]),
        ("unpack and rewrite", "the decoder alone", least["decode"]),
        ("XGBoost", "XGBoost on codes in memory", inside["seconds"]["XGBoost"]),
    )
    return Whole(
        point,
        tuple(Stage(name, seconds[name], limit, least) for name, limit, least in stages),
        joined["seconds"],
        joined["peak_mb"],
        trained["peak_mb"],
        released["bytes"],
    )


def join(point: Point, folder: Path) -> dict[str, Any]:
    """A feature party with IDs, a ledger and a Parquet file; writing the file is not timed."""
    private = point.private(0)
    file = folder / "table.parquet"
    folder.mkdir(parents=True)
    names = [str(c.name) for c in private]
    fields = pa.schema([("id", pa.int64()), *((n, pa.float64()) for n in names)])
    with pa.parquet.ParquetWriter(file, fields) as out:
        for start in range(0, point.rows, BLOCK):
            size = min(BLOCK, point.rows - start)
            columns = [raw(start, j, size) for j in range(len(names))]
            out.write_table(pa.table([np.arange(start, start + size), *columns], schema=fields))
    ledger = Ledger(folder / "ledger", folder / "ledger.key")
    party = FeatureParty(file, private, ids="id", ledger=ledger, state=folder / "state")
    begun = time.perf_counter()
    party.release(WELCOME)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak_mb": peak_mb(os.getpid())}


def limits(point: Point, folder: Path) -> dict[str, float]:
    """What the parts could take at least, from a sample."""
    warm_up()
    codes = np.random.default_rng(0).binomial(point.cells - 1, 0.5, 2**18).astype(np.uint16)
    codes = codes.astype(np.min_scalar_type(point.cells - 1))
    coder = Coder.of_counts(np.bincount(codes, minlength=point.cells))
    packed = coder.encode(codes)
    coder.decode(packed, len(codes))
    cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    zeros, out = bytes(2**17), bytearray(2**17 + 16)
    a_block = len(zeros) // 8

    def disk() -> None:
        file = folder / "sample"
        with file.open("wb") as target:
            for _ in range(2 * SAMPLE // len(zeros)):
                target.write(zeros)
        with file.open("rb") as source:
            while source.readinto(out):
                pass
        file.unlink()

    ways: dict[str, tuple[Callable[[], object], int]] = {
        "aes": (lambda: cipher.update_into(zeros, out), a_block),
        "disk": (disk, SAMPLE),
        "encode": (lambda: coder.encode(codes), len(codes)),
        "decode": (lambda: coder.decode(packed, len(codes)), len(codes)),
    }
    return {name: point.values * _a_value(*way) for name, way in ways.items()}


def _a_value(work: Callable[[], object], values: int) -> float:
    """Seconds a value, the fastest of three tries on a sample."""
    tries = []
    for _ in range(3):
        begun = time.perf_counter()
        for _ in range(max(1, SAMPLE // values)):
            work()
        tries.append((time.perf_counter() - begun) / max(SAMPLE, values))
    return min(tries)


def as_json(whole: Whole) -> dict[str, Any]:
    """All figures."""
    ratios = {s.name: s.ratio for s in whole.stages}
    more = {"seconds": whole.seconds, "limit_seconds": whole.limit_seconds, "ratios": ratios}
    return asdict(whole) | more


if __name__ == "__main__":
    role, about, where = sys.argv[1:]
    print(
        json.dumps({"join": join, "limits": limits}[role](Point(**json.loads(about)), Path(where)))
    )
