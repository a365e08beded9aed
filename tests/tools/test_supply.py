"""Locks with hashes, their audit, and the bill of materials."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cyclonedx.model.bom import Bom
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.supply.audit import Answer, Exemption, Finding, ask, exemptions, judge, main
from tools.supply.lock import DEV, DOCS, ROOT, RUNTIME, Pin, read
from tools.supply.published import published

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
LAB = [
    line
    for line in tomllib.loads((ROOT / "lab/pyproject.toml").read_text())["project"]["dependencies"]
    if not line.startswith("opboost")
]
TODAY = date(2026, 6, 1)
OLD = """\
requests==2.19.0 \\
    --hash=sha256:421cfc8d9dde7d6aff68196420afd86b88c65d77d8da9cf83f4ecad785d7b9d6
"""
FLAW = {
    "id": "GHSA-x84v-xcm2-53pg",
    "aliases": ["CVE-2018-18074"],
    "affected": [
        {
            "package": {"name": "requests", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.20.0"}]}],
        }
    ],
}


@contextmanager
def service(answer):
    """Serve on loopback; ``answer`` returns status and text for a path or a posted object."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(answer(self.path))

        def do_POST(self):
            self.reply(answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def reply(self, what):
            status, text = what
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


# Locks


def flat(extra):
    """Return the lines of an extra, with those of other extras instead of their names."""
    lines = []
    for line in EXTRAS[extra]:
        named = Requirement(line)
        if named.name == "opboost":
            lines += [text for inner in sorted(named.extras) for text in flat(inner)]
        else:
            lines.append(line)
    return lines


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        (RUNTIME, PROJECT["dependencies"] + EXTRAS["boost"]),
        (DEV, PROJECT["dependencies"] + flat("dev") + LAB),
        (DOCS, PROJECT["dependencies"] + EXTRAS["docs"]),
    ],
    ids=["runtime", "dev", "docs"],
)
def test_a_lock_satisfies_the_ranges_of_the_project(lock, wanted):
    pins = read(lock)
    for line in map(Requirement, wanted):
        versions = [pin.version for pin in pins if pin.name == canonicalize_name(line.name)]
        assert versions, line
        assert all(line.specifier.contains(version) for version in versions), line


@pytest.mark.parametrize("lock", [RUNTIME, DEV, DOCS], ids=["runtime", "dev", "docs"])
def test_a_lock_has_hashes_of_public_files_and_nothing_else(lock):
    for pin in read(lock):
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", text) for text in pin.hashes), pin.name
        assert len(set(pin.hashes)) == len(pin.hashes), pin.name
    line = re.compile(r"([a-z0-9-]+==\S+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?)")
    assert [text for text in lock.read_text().splitlines() if not line.fullmatch(text)] == []


def test_the_locks_agree_and_a_deployment_has_no_development_tools():
    runtime = {pin.name: pin for pin in read(RUNTIME)}
    develop = {pin.name: pin for pin in read(DEV)}
    for below, above in ((runtime, develop), (develop, {pin.name: pin for pin in read(DOCS)})):
        for name in below.keys() & above.keys():
            assert (above[name].version, above[name].hashes) == (
                below[name].version,
                below[name].hashes,
            )
    tools = {canonicalize_name(Requirement(line).name) for line in EXTRAS["dev"] + EXTRAS["docs"]}
    tools -= {canonicalize_name(Requirement(line).name) for line in EXTRAS["boost"]}
    assert not tools & set(runtime)


def test_the_environment_is_what_the_lock_says():
    said = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "list", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    there = {canonicalize_name(line["name"]): line["version"] for line in json.loads(said.stdout)}
    assert {pin.name: there.get(pin.name) for pin in read(DEV) if pin.here} == {
        pin.name: pin.version for pin in read(DEV) if pin.here
    }


def test_the_build_backend_is_pinned_and_locked():
    (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    name, version = backend.split("==")
    assert version in {pin.version for pin in read(DEV) if pin.name == name}


@pytest.mark.parametrize(
    "text",
    ["numpy==2.0.0\n", "numpy>=2 --hash=sha256:00\n", "--index-url https://example.org/\n" + OLD],
)
def test_a_line_without_version_or_hash_is_no_lock(tmp_path, text):
    lock = tmp_path / "lock.txt"
    lock.write_text(text)
    with pytest.raises(ValueError, match=r"lock\.txt .* Run make lock"):
        read(lock)


def test_hashes_are_compared_with_all_files_that_an_index_has_of_a_version():
    ours, other = "a" * 64, "b" * 64
    page = "".join(
        f'<a href="../../packages/1/{name}#sha256={digest}">{name}</a>'
        for name, digest in [
            ("some_thing-1.0-py3-none-any.whl", ours),
            ("some_thing-1.0.tar.gz", other),
            ("some_thing-1.0.1-py3-none-any.whl", "c" * 64),
            ("some_thing-1.0.exe", "d" * 64),
        ]
    )
    with service(lambda path: (200, page) if path == "/simple/some-thing/" else (404, "")) as url:
        found = published(Pin("some-thing", "1.0", "", ()), f"{url}/simple")
    assert found == {f"sha256:{ours}", f"sha256:{other}"}


# The audit, against a vulnerability service on loopback


def knows_one_flaw(asked):
    old = asked["package"]["name"] == "requests" and asked["version"] == "2.19.0"
    return 200, json.dumps({"vulns": [FLAW]} if old else {})


@pytest.fixture
def old_lock(tmp_path):
    lock = tmp_path / "lock.txt"
    lock.write_text(OLD)
    return lock


@pytest.fixture
def none_exempt(tmp_path):
    path = tmp_path / "exempt.toml"
    path.write_text("")
    return path


def test_the_projects_own_locks_pass_a_service_that_knows_them(none_exempt, capsys):
    with service(knows_one_flaw) as url:
        assert (
            main([str(DEV), "--osv-url", url, "--must-answer", "--exempt", str(none_exempt)]) == 0
        )
    here = sum(pin.here for pin in read(DEV))
    assert capsys.readouterr().out == f"audited: {here} packages, no known vulnerabilities to fix\n"


def test_a_vulnerable_pin_fails_with_package_version_id_and_fix(old_lock, none_exempt, capsys):
    with service(knows_one_flaw) as url:
        assert main([str(old_lock), "--osv-url", url, "--exempt", str(none_exempt)]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("vulnerable: requests 2.19.0: ")
    assert "GHSA-x84v-xcm2-53pg" in line
    assert "CVE-2018-18074" in line
    assert line.endswith("fixed in 2.20.0")


@pytest.mark.parametrize(
    "answer",
    [lambda *_: (503, "busy"), lambda *_: (200, "<html>Please log in to this network</html>")],
    ids=["refuses", "portal"],
)
def test_a_service_that_does_not_serve_means_not_audited(answer, old_lock, none_exempt, capsys):
    with service(answer) as url:
        asked = [str(old_lock), "--osv-url", url, "--exempt", str(none_exempt)]
        assert main(asked) == 0
        assert main([*asked, "--must-answer"]) == 1
    for line in capsys.readouterr().out.splitlines():
        assert line.startswith("not audited: the index did not answer (")


def test_nobody_there_means_not_audited(old_lock, none_exempt, capsys):
    with service(knows_one_flaw) as url:
        pass
    assert main([str(old_lock), "--osv-url", url, "--exempt", str(none_exempt)]) == 0
    assert "not audited: the index did not answer (requests.exceptions" in capsys.readouterr().out


def test_a_lock_that_cannot_be_read_is_no_silence_of_the_service(tmp_path):
    with pytest.raises(RuntimeError, match="pip-audit failed"), service(knows_one_flaw) as url:
        ask([tmp_path / "nowhere.txt"], url)


def test_a_known_vulnerable_pin_fails_at_the_index_itself(old_lock):
    answer = ask([old_lock])
    if not answer.known:
        pytest.skip(f"the index did not answer: {answer}")
    assert "CVE-2018-18074" in {name for finding in answer.findings for name in finding.ids}
    assert not judge(answer, [], TODAY)[1]


def test_packages_that_the_index_does_not_know_are_not_called_safe():
    lines, passes = judge(Answer(unknown=("a", "b")), [], TODAY)
    assert lines == ["not audited: the index did not answer (it knows none of the 2 packages)"]
    assert passes
    lines, passes = judge(Answer(known=3, unknown=("a",)), [], TODAY, must_answer=True)
    assert lines[0] == "not audited, because the index does not know them: a"
    assert not passes


FINDING = Finding("requests", "2.19.0", ("PYSEC-2018-28", "CVE-2018-18074"), ())


@pytest.mark.parametrize(
    ("package", "name", "until", "line", "passes"),
    [
        ("requests", "CVE-2018-18074", date(2026, 6, 1), "exempt until 2026-06-01: requests", True),
        ("requests", "CVE-2018-18074", date(2026, 5, 31), "expired: requests was exempt", False),
        ("urllib3", "CVE-2018-18074", date(2026, 6, 1), "vulnerable: requests 2.19.0", False),
        ("requests", "CVE-2018-18075", date(2026, 6, 1), "vulnerable: requests 2.19.0", False),
    ],
    ids=["covered", "expired", "another package", "another flaw"],
)
def test_an_exemption_covers_one_flaw_of_one_package_until_its_day(
    package, name, until, line, passes
):
    exempt = [Exemption(name, package, "No proxy is used.", until)]
    lines, passed = judge(Answer(1, (), (FINDING,)), exempt, TODAY)
    assert lines[0].startswith(line)
    assert passed is passes


def test_an_exemption_that_ended_fails_also_where_nobody_answers():
    exempt = [Exemption("CVE-2018-18074", "requests", "No proxy is used.", date(2026, 1, 1))]
    assert not judge(Answer(silence="no route"), exempt, TODAY)[1]


def test_an_exemption_that_is_no_longer_needed_is_named():
    exempt = [Exemption("CVE-2018-18074", "requests", "No proxy is used.", date(2027, 1, 1))]
    lines, passes = judge(Answer(5), exempt, TODAY)
    assert "unneeded: the exemption of requests from CVE-2018-18074 can be removed" in lines
    assert passes


def test_an_exemption_needs_a_reason_and_a_day(tmp_path):
    path = tmp_path / "exempt.toml"
    path.write_text('[[exempt]]\nid = "CVE-1"\npackage = "requests"\nuntil = 2026-12-31\n')
    with pytest.raises(ValueError, match="an exemption needs id, package, reason and until"):
        exemptions(path)


def test_the_projects_own_exemptions_are_of_packages_that_it_has():
    locked = {pin.name for lock in (RUNTIME, DEV, DOCS) for pin in read(lock)}
    assert {e.package for e in exemptions(ROOT / "tools" / "supply" / "exempt.toml")} <= locked


def test_the_example_of_an_exemption_is_a_complete_one(tmp_path):
    _, mark, example = (
        (ROOT / "tools" / "supply" / "exempt.toml").read_text().partition("# [[exempt]]\n")
    )
    lines = (mark + example).splitlines()
    path = tmp_path / "exempt.toml"
    path.write_text("\n".join(line.removeprefix("# ") for line in lines if line.startswith("#")))
    (found,) = exemptions(path)
    assert (found.id, found.package, found.until) == ("PYSEC-2026-1", "name", date(2026, 12, 31))
    assert found.reason


# The bill of materials


def test_the_bill_of_materials_is_the_runtime_lock(tmp_path):
    made = []
    for name in ("a.json", "b.json"):
        path = tmp_path / name
        subprocess.run(
            [sys.executable, "-W", "error", "-m", "tools.supply.sbom", str(path)],
            cwd=ROOT,
            env={"SOURCE_DATE_EPOCH": "1750000000"},
            check=True,
            capture_output=True,
        )
        made.append(path.read_bytes())
    assert made[0] == made[1]
    bill = json.loads(made[0])
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2025-06-15T15:06:40+00:00"
    pins = {(pin.name, pin.version): pin for pin in read(RUNTIME)}
    parts = {(part["name"], part["version"]): part for part in bill["components"]}
    assert set(parts) == set(pins)
    for key, pin in pins.items():
        (files,) = parts[key]["externalReferences"]
        assert {f"sha256:{one['content']}" for one in files["hashes"]} == set(pin.hashes)
        assert parts[key]["purl"] == f"pkg:pypi/{pin.name}@{pin.version}"
        assert bool(parts[key].get("licenses")) is pin.here
    needs = {line["ref"]: line.get("dependsOn", []) for line in bill["dependencies"]}
    product = bill["metadata"]["component"]["bom-ref"]
    assert {line.split("==")[0] for line in needs[product]} == {
        canonicalize_name(line.name)
        for line in map(Requirement, PROJECT["dependencies"] + EXTRAS["boost"])
        if line.marker is None or line.marker.evaluate()
    }
    reached, todo = set(), [product]
    while todo:
        one = todo.pop()
        if one not in reached:
            reached.add(one)
            todo += needs[one]
    assert reached - {product} == {f"{p.name}=={p.version}" for p in pins.values() if p.here}
    assert len(Bom.from_json(bill).components) == len(pins)
