"""Containers: docs/howto/containers.md.

The steps of ``Containerfile`` run on this machine, without its environment variables.  The commands
of ``compose.yaml`` then run in the result, which is read-only, without capabilities.  Tests build
the image itself if podman has the base image.
"""

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import yaml

from claims.claim import FEDERATION, ROOT, Page
from opboost.demo.local_federation import free_port

_SECONDS = 1200
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def instructions(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word.upper(), rest.strip()) for word, _, rest in (x.partition(" ") for x in lines)]


def settings() -> dict[str, str]:
    """Return the variables that a step needs to reach a package index; steps get no others."""
    kept = re.compile(r"(?i)^(pip_|https?_proxy|no_proxy|ssl_cert|requests_ca)")
    return {name: value for name, value in os.environ.items() if kept.match(name)}


def run_steps(extras: str, place: Path) -> Path:
    """Run the first stage of the Containerfile below ``place``; return its environment."""
    work = place / "build"
    work.mkdir(parents=True)
    stage = 0
    for word, rest in instructions((ROOT / "Containerfile").read_text()):
        stage += word == "FROM"
        if stage != 1:
            continue
        if word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                _copy(ROOT / source, work / target, into=target.endswith("/"))
        elif word == "RUN":
            step = rest.replace("/build", str(work)).replace("/opt", str(place / "opt"))
            subprocess.run(
                ["sh", "-ec", step],
                cwd=work,
                check=True,
                timeout=_SECONDS,
                env={"PATH": os.environ["PATH"], "EXTRAS": extras, "HOME": place, **settings()},
            )
    return place / "opt" / "opboost"


def _copy(source: Path, target: Path, *, into: bool) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        return
    file = target / source.name if into else target
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, file)


def packages(environment: Path) -> set[str]:
    (site,) = environment.glob("lib/python*/site-packages")
    return {p.name.split("-")[0].lower() for p in site.glob("*.dist-info")}


def services() -> dict[str, dict]:
    """Return the services of the compose file, with its variables at their defaults."""
    text = _VARIABLE.sub(lambda found: found[2], (ROOT / "compose.yaml").read_text())
    return yaml.safe_load(text)["services"]


def run_job(environments: dict[str, Path], place: Path) -> Path:
    """Run the tutorial's job by the compose file's commands; return the model's path."""
    folder, temporary = place / "credit", place / "tmp"
    temporary.mkdir()
    clean = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "NUMBA_CACHE_DIR": str(temporary)}
    certificates = (["certs", "new", name, "--dir", str(folder / "certs")] for name in services())
    for words in (["tutorial", str(folder)], *certificates):
        program = environments["bank"] / "bin" / "opboost"
        subprocess.run(
            [program, *words],
            check=True,
            env=clean,
            cwd=place,
            timeout=_SECONDS,
            stdout=subprocess.DEVNULL,
        )
    port = str(free_port())
    for file in folder.rglob("*.toml"):
        file.write_text(file.read_text().replace("8815", port))
    running = [
        subprocess.Popen(
            [*_without_capabilities(), environments[name] / "bin" / "opboost", *service["command"]],
            cwd=folder / Path(service["working_dir"]).name,
            env=clean,
            stdout=subprocess.DEVNULL,
        )
        for name, service in services().items()
    ]
    try:
        for process in running:
            if process.wait(_SECONDS):
                raise RuntimeError(f"{process.args!r} ended with status {process.returncode}")
    finally:
        for process in running:
            process.kill()
    return folder / "bank" / "model.opboost"


def _without_capabilities() -> list[str]:
    """Return a command prefix that makes file modes count even for root, as in the container."""
    return [] if os.geteuid() else ["setpriv", "--bounding-set=-all", "--no-new-privs"]


def _chmod(change: str, folder: Path) -> None:
    """Change the modes of an environment's folders and files, but not of the targets of links."""
    subprocess.run(["chmod", "-R", change, folder], check=True)


@cache
def outcome() -> dict[str, float]:
    """Build both parties' environments, count the boosters in each, and run the job."""
    boosters = {"xgboost_cpu", "xgboost", "lightgbm", "skops"}
    with tempfile.TemporaryDirectory(prefix="opboost-containers-") as name, ExitStack() as stack:
        place, made = Path(name), {}
        for party, service in services().items():
            extras = service["build"].get("args", {}).get("EXTRAS", "")
            made[party] = run_steps(extras, place / party)
            _chmod("a-w", made[party])
            stack.callback(_chmod, "u+w", made[party])
        counts: dict[str, float] = {
            party: len(packages(found) & boosters) for party, found in made.items()
        }
        return counts | {"model": run_job(made, place).exists()}


HERE = Page("docs/howto/containers.md")
COVERS = FEDERATION
CLAIMS = [
    HERE.equals("boosters in the feature party's container", 0, lambda: outcome()["shop"]),
    HERE.equals("boosters in the label party's container", 3, lambda: outcome()["bank"]),
    HERE.equals(
        "the tutorial's job runs by the compose file's commands", 1, lambda: outcome()["model"]
    ),
]
