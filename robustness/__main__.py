"""Run attacks, faults, leak searches, fuzzing and audits by hand, with any seed.

``python -m robustness --help`` lists the commands.  The exit status is 1 if one finds something.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import typer

from robustness.attacks import catalogue
from robustness.audits import auditor_trial, faulty_pipelines, side_channels
from robustness.audits.faulty_mechanisms import BROKEN
from robustness.audits.pipeline_trial import audit as audit_pipeline
from robustness.faults import (
    broken_connections,
    clock_set_back,
    damaged_files,
    double_start,
    full_disk,
    kills,
)
from robustness.faults.faults_harness import ALL
from robustness.fuzz.engine import run as run_fuzzing
from robustness.fuzz.target import judged
from robustness.fuzz.targets import TARGETS
from robustness.leaks import leak_search
from robustness.tally import Tally

NOW = int(time.time())
FAULTS: dict[str, Callable[[int, int], Iterable[Tally]]] = {
    "boundaries": lambda count, seed: map(kills.at_boundaries, kills.VICTIMS),
    "kills": lambda count, seed: (kills.at_random(v, count, seed) for v in kills.VICTIMS),
    "cut": lambda count, seed: [broken_connections.cut(count, seed)],
    "half_open": lambda count, seed: [broken_connections.half_open(count, seed)],
    "slow": lambda count, seed: [broken_connections.slow(count, seed)],
    "full_disk": lambda count, seed: map(full_disk.run, ALL),
    "clock_set_back": lambda count, seed: map(clock_set_back.set_back, ALL),
    "double_start": lambda count, seed: [double_start.run(count, seed)],
    "damaged_files": lambda count, seed: [damaged_files.run(count or None, seed)],
}
app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@app.command()
def faults(kind: str, count: int = 10, seed: int = NOW) -> None:
    """Inject one kind of fault, COUNT times unless that kind has a fixed number of cases.

    With a COUNT of 0, damage every file in both ways.
    """
    print(f"seed {seed}")
    failed = False
    for tally in FAULTS[kind](count, seed):
        print(tally, flush=True)
        failed |= tally.survived < tally.tried
    sys.exit(failed)


@app.command()
def attacks(
    kind: Literal["gate", "join", "bundles"], count: int = 0, seed: int = NOW, only: str = ""
) -> None:
    """Try each attack of one kind once, or COUNT attacks, or ONLY those whose names match."""
    run, every = catalogue.KINDS[kind]
    count = count or (1 if only else every)
    report = run(count, seed, only=only, told=lambda outcome: print(outcome, flush=True))
    print(report)
    sys.exit(not (report.finished and all(o.survived for o in report.outcomes)))


@app.command()
def leaks(seed: int = NOW, only: str = "", captured: bool = False) -> None:
    """Search complete and failing jobs for values and IDs; if CAPTURED, also what tshark saw."""
    print(f"seed {seed}")
    found = False
    for name in [only] if only else leak_search.JOBS:
        one = leak_search.run_one(name, seed, captured=captured)
        print(one, flush=True)
        found |= bool(one.found) or not one.as_meant
    sys.exit(found)


@app.command()
def fuzz(
    cases: int = 100_000,
    seed: int = NOW,
    target: str = "",
    keep: Path | None = None,
    replay: Path | None = None,
) -> None:
    """Fuzz the decoders whose names contain TARGET; KEEP the bytes of crashes in a folder."""
    chosen = [t for t in TARGETS if target in t.name]
    if replay:
        (one,) = chosen
        with tempfile.TemporaryDirectory() as home:
            words = judged(one, one.prepare(Path(home)), replay.read_bytes())
        print(words or "kept the contract")
        sys.exit(bool(words))
    result = run_fuzzing(chosen, cases, seed, say=print)
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        for crash in result.crashes:
            name = crash.target.replace(" ", "-").replace(":", "")
            (keep / f"{name}-{crash.case}").write_bytes(crash.data)
    print(f"seed {seed}: {result.total:,} cases, {len(result.crashes)} crashes")
    sys.exit(bool(result.crashes))


@app.command()
def auditor(samples: int = 1_000_000) -> None:
    """Audit every sound mechanism and every faulty one through its samples."""
    for name in auditor_trial.SOUND:
        one = auditor_trial.attacked(name, samples)
        print(f"{name}: {one.nearest:.3f} of exact, {len(one.findings)} findings")
    for name in BROKEN:
        print(f"{name}: {'caught' if auditor_trial.caught(name, samples) else 'NOT CAUGHT'}")


@app.command()
def pipelines() -> None:
    """Audit sound pipelines on every pair of records, and faulty pipelines on some."""
    for name, pipeline in faulty_pipelines.SOUND.items():
        print(f"{name}: {audit_pipeline(pipeline, faulty_pipelines.EVERY_RECORD)}")
    for name, pipeline in faulty_pipelines.FAULTY.items():
        print(f"{name}: {audit_pipeline(pipeline, faulty_pipelines.SOME_RECORDS)}")


@app.command()
def timings() -> None:
    """Print the median nanoseconds per value of each mechanism, by what the column holds."""
    for name, mechanism in side_channels.TIMED.items():
        spent = side_channels.nanoseconds(mechanism)
        print(f"{name}: " + ", ".join(f"{k} {v:.2f}" for k, v in spent.items()))


if __name__ == "__main__":
    app()
