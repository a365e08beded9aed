"""A whole run: measurements, findings, files, and the report over all of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opboost.storage import atomic_files
from opboost_lab.reproduce.finding import Artefact
from opboost_lab.reproduce.report import Shown, digest, page
from opboost_lab.reproduce.running import Progress, run_tasks
from opboost_lab.reproduce.task import Scope, Store, pack, unpack
from opboost_lab.reproduce.writing import write_finding


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What a run found, and where its report is."""

    shown: tuple[Shown, ...]
    report: Path

    @property
    def failed(self) -> tuple[Shown, ...]:
        """The artefacts that could not be shown."""
        return tuple(s for s in self.shown if s.finding is None)


def reproduce(
    artefacts: Sequence[Artefact],
    scope: Scope,
    out: Path,
    progress: Progress,
    *,
    kept: bool = False,
    results: Path | None = None,
) -> Reproduction:
    """Run what is missing and write all files; an interrupted run is resumed.

    With ``kept``, nothing is run, and the report shows what was measured before.  Results in the
    file ``results`` count as measured; afterwards it holds all results except times.
    """
    started = time.monotonic()
    with atomic_files.alone(out):
        store = Store(out / "cache")
        tasks = list(dict.fromkeys(t for a in artefacts for t in a.tasks(scope)))
        if results is not None:
            unpack(results, store, tasks)
        run = run_tasks(tasks, store, progress, kept=kept)
        if results is not None:
            pack(results, store, tasks)
        shown = []
        for artefact in artefacts:
            problems = {run.failed[t]: None for t in artefact.tasks(scope) if t in run.failed}
            finding = None if problems else artefact.show(scope, run.done)
            if finding is not None:
                write_finding(artefact, finding, out)
            shown.append(Shown(artefact, finding, " ".join(problems)))
        report, seconds = out / "report.html", time.monotonic() - started
        atomic_files.write(report, page(shown, scope, seconds, out).encode())
        atomic_files.write(out / "reproduction.md", digest(shown, scope, seconds).encode())
    return Reproduction(tuple(shown), report)
