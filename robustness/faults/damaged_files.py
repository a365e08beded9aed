"""Flip a bit in each file of a killed job, or cut off the file's end.

A job runs to a given point, and all its parties are killed.  Each trial damages one file in the
folders that they leave, and restarts the parties.  Either the job finishes as if nothing had
happened, or a party refuses with a sentence that names the file and the next step.
"""

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opboost.config.job_file import load_feature
from opboost.demo.local_federation import LABEL_PARTY
from opboost.ledger.open_ledger import open_ledger
from opboost.ledger.verify_ledger import verify
from robustness.faults.faults_harness import ALL, FaultsHarness, staged
from robustness.tally import Tally, counted

POINTS = {
    "aligning": "bank/state/*/parties/telco/00000.raised",
    "asked": "bank/state/*/parties/telco/query",
    "answered": "bank/state/*/parties/shop/answer",
}
"""The points at which a job is killed, each with the file that appears there."""

HERE = (LABEL_PARTY, "shop", "keys")
"""The folders whose files are damaged: the label party's, a feature party's, and the keys."""

NEXT_STEPS = (
    *("Bring ", "Restore ", "--again", "byte by byte", "Save it as", "hex digits", "job.toml"),
    "Renew",
)


def run(count: int | None, seed: int) -> Tally:
    """Damage every file in both ways, or ``count`` of these cases, chosen from the seed."""
    rng = random.Random(seed)
    cases: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="opboost-damage-") as place:
        found = [
            (point, name, how)
            for point in POINTS
            for name in _cut_short(point, Path(place) / point)
            for how in ("flip", "cut")
        ]
        for point, name, how in found if count is None else rng.sample(found, count):
            with staged() as harness:
                shutil.copytree(Path(place) / point, harness.folder, dirs_exist_ok=True)
                harness.listen()
                file = harness.folder / name
                whole = file.read_bytes()
                where = _damage(file, how, rng)
                cases[f"{point}: {name} {where}"] = _outcome(harness, file, whole)
    return counted("damaged file", cases)


def _cut_short(point: str, keep: Path) -> list[str]:
    """Run a job to a point, kill every party and keep the folders; return the files to damage."""
    with staged() as harness:
        harness.start_all()
        if not harness.wait(lambda: harness.has(POINTS[point])):
            raise RuntimeError(f"The job did not come to {POINTS[point]}.")
        for party in ALL:
            harness.kill(party)
            (harness.home(party) / "said").unlink()
        shutil.copytree(harness.folder, keep)
    return sorted(str(f.relative_to(keep)) for f in _files(keep))


def _files(folder: Path) -> Iterator[Path]:
    for home in HERE:
        for file in (folder / home).rglob("*"):
            other = home == LABEL_PARTY and "telco" in file.parts
            inputs = file.suffix in (".parquet", ".toml") and file.name != "job.toml"
            shared = file.name.endswith("-shm")  # SQLite rebuilds it at the next start
            if file.is_file() and file.stat().st_size and not (other or inputs or shared):
                yield file


def _damage(file: Path, how: str, rng: random.Random) -> str:
    data = bytearray(file.read_bytes())
    place, bit = rng.randrange(len(data)), rng.randrange(8)
    data[place] ^= 1 << bit
    file.write_bytes(data if how == "flip" else data[:place])
    return f"flipped at {place}.{bit}" if how == "flip" else f"cut at {place}"


def _outcome(harness: FaultsHarness, file: Path, whole: bytes) -> list[str]:
    harness.start_all()
    ended = harness.finished(60)
    model = harness.home(LABEL_PARTY) / "model.opboost"
    if not ended:
        return [*_unread_run(harness, file, whole), *harness.complaints()]
    complaints = harness.tracebacks()
    refused = [p for p in ALL if harness.processes[p].poll() not in (None, 0)]
    words = " ".join(harness.said(p) for p in refused)
    names = (str(file), str(file.parent), file.name, "job files differ", "key file")
    if not refused:
        return [*complaints, f"nothing happened: {ended}"]
    if not (any(n in words for n in names) and any(n in words for n in NEXT_STEPS)):
        complaints.append(f"neither named nor recovered: {words.strip()}")
    if model.exists() and not _needs_nothing_of(harness, file):
        complaints.append("there is a model nevertheless")
    return complaints


def _unread_run(harness: FaultsHarness, file: Path, whole: bytes) -> list[str]:
    """Complain unless ``verify`` names a damaged run that the job did not read; restore the run."""
    if file.parent.name != "runs":
        return []
    config = load_feature(harness.federation.config(file.parents[2].name))
    with open_ledger(config.ledger) as ledger:
        named = any(file.name in finding.words for finding in verify(ledger))
    file.write_bytes(whole)
    return [] if named else [f"verify does not name {file.name}"]


def _needs_nothing_of(harness: FaultsHarness, file: Path) -> bool:
    """Return whether the file's party had answered, so that the model can be made without it."""
    folder = file.relative_to(harness.home(LABEL_PARTY).parent).parts[0]
    party = file.stem if folder == "keys" else folder
    state = harness.home(LABEL_PARTY) / "state"
    return party != LABEL_PARTY and any(state.glob(f"*/parties/{party}/answer"))
