"""A thousand small jobs, one after the other, in one long-running process."""

from operator import attrgetter

from claims.claim import FEDERATION, Page, Rounds
from opboost_lab.bench.soak import JOBS, soak

FOUND = Rounds(lambda: soak(JOBS), 1)
HERE = Page("docs/reliability.md, Load")
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training")
CLAIMS = [
    HERE.equals("jobs in one process: finished", JOBS, FOUND.of(attrgetter("jobs"))),
    *(
        HERE.at_most(
            f"jobs in one process: {words}",
            most,
            FOUND.of(attrgetter(figure)),
            short=figure == "slower",
        )
        for words, figure, most in (
            ("kB of memory that each leaves", "kb_per_job", 50),
            ("descriptors left by all jobs together", "descriptors", 2),
            ("threads left", "threads", 0),
            ("child processes left", "children", 0),
            ("temporary and half-written files left", "files", 0),
            ("a late job's seconds over an early one's", "slower", 1.5),
        )
    ),
]
