"""Look up known vulnerabilities of the locked packages: some, none, or no answer.

For a package that the index does not know, pip-audit alone says "no known vulnerabilities found".
Here such a package counts as not audited, and so do all packages if the service cannot be reached.

    python -m tools.supply.audit                      ask the index about every package of the locks
    python -m tools.supply.audit --osv-url URL LOCK    ask an OSV service about one lock
    python -m tools.supply.audit --must-answer         fail without an answer, for releases
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from tools.supply.lock import DEV, DOCS, RUNTIME

EXEMPT = Path(__file__).parent / "exempt.toml"
TIMEOUT_SECONDS = 240
NO_ANSWER = re.compile(
    r"^(requests\.exceptions|urllib3\.exceptions|pip_audit\.\S*(Service|Connection)Error|"
    r"ERROR:pip_audit._cli:Tip: your network may be blocking)",
    re.M,
)


@dataclass(frozen=True)
class Finding:
    """A known vulnerability of one locked version."""

    package: str
    version: str
    ids: tuple[str, ...]
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        cure = f"fixed in {', '.join(self.fixed)}" if self.fixed else "no version fixes it yet"
        return f"{self.package} {self.version}: {' = '.join(self.ids)}, {cure}"


@dataclass(frozen=True)
class Answer:
    """The service's answer: how many packages it knows, which it does not, and its findings."""

    known: int = 0
    unknown: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    silence: str = ""


@dataclass(frozen=True)
class Exemption:
    """A vulnerability that is tolerated until a date, for a reason."""

    id: str
    package: str
    reason: str
    until: date

    def covers(self, finding: Finding) -> bool:
        return self.package == finding.package and self.id in finding.ids


def exemptions(path: Path) -> list[Exemption]:
    """Return the exemptions in a file; refuse one without a package, reason or date."""
    found = []
    for entry in tomllib.loads(path.read_text()).get("exempt", []):
        if set(entry) != {"id", "package", "reason", "until"} or not entry["reason"].strip():
            raise ValueError(
                f"{path.name}: an exemption needs id, package, reason and until; got {entry}. "
                "Add what is missing."
            )
        found.append(Exemption(**entry))
    return found


def ask(locks: list[Path], osv_url: str | None = None) -> Answer:
    """Return what pip-audit's service says about every package of the locks."""
    service = ["-s", "osv", "--osv-url", osv_url] if osv_url else ["-s", "pypi"]
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", *service]
    command += ["--progress-spinner", "off", "--desc", "off", "-f", "json"]
    for lock in locks:
        command += ["-r", str(lock)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return Answer(silence=f"no answer after {TIMEOUT_SECONDS} s")
    if run.stdout.strip():
        return understand(json.loads(run.stdout))
    if NO_ANSWER.search(run.stderr):
        return Answer(silence=run.stderr.strip().splitlines()[-1][:300])
    raise RuntimeError(f"pip-audit failed:\n{run.stderr}")


def understand(said: dict[str, Any]) -> Answer:
    """Return the answer in pip-audit's JSON; a package that was skipped counts as unknown."""
    findings, unknown, known = [], [], 0
    for package in said["dependencies"]:
        if "skip_reason" in package:
            unknown.append(package["name"])
            continue
        known += 1
        for flaw in package["vulns"]:
            ids = (flaw["id"], *sorted(flaw.get("aliases", ())))
            fixed = tuple(flaw["fix_versions"])
            findings.append(Finding(package["name"], package["version"], ids, fixed))
    return Answer(known, tuple(unknown), tuple(findings))


def judge(
    answer: Answer, exempt: list[Exemption], today: date, must_answer: bool = False
) -> tuple[list[str], bool]:
    """Return the lines to print, and whether the audit passes."""
    lines = [
        f"expired: {entry.package} was exempt from {entry.id} until {entry.until}; look again"
        for entry in exempt
        if entry.until < today
    ]
    passes = not lines
    live = [entry for entry in exempt if entry.until >= today]
    if not answer.known:
        why = answer.silence or f"it knows none of the {len(answer.unknown)} packages"
        lines.append(f"not audited: the index did not answer ({why})")
        return lines, passes and not must_answer
    for finding in answer.findings:
        cover = next((entry for entry in live if entry.covers(finding)), None)
        if cover is None:
            lines.append(f"vulnerable: {finding}")
            passes = False
        else:
            lines.append(f"exempt until {cover.until}: {finding}. {cover.reason}")
    lines += [
        f"unneeded: the exemption of {entry.package} from {entry.id} can be removed"
        for entry in live
        if not any(entry.covers(finding) for finding in answer.findings)
    ]
    if answer.unknown:
        lines.append(
            f"not audited, because the index does not know them: {', '.join(answer.unknown)}"
        )
        passes = passes and not must_answer
    failed = sum(line.startswith("vulnerable") for line in lines)
    lines.append(f"audited: {answer.known} packages, {failed or 'no'} known vulnerabilities to fix")
    return lines, passes


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.supply.audit", description=__doc__)
    parser.add_argument("locks", nargs="*", type=Path, default=[RUNTIME, DEV, DOCS])
    parser.add_argument("--osv-url", help="ask this OSV service instead of the package index")
    parser.add_argument("--exempt", type=Path, default=EXEMPT)
    parser.add_argument("--must-answer", action="store_true", help="fail when not audited")
    given = parser.parse_args(arguments)
    lines, passes = judge(
        ask(given.locks, given.osv_url),
        exemptions(given.exempt),
        datetime.now(UTC).date(),
        given.must_answer,
    )
    print("\n".join(lines))
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
