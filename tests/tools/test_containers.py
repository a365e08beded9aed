"""The Containerfile and the compose file do what docs/howto/containers.md promises."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from claims.containers import ROOT, instructions, services
from tests.cli.test_help import parsed

STEPS = instructions((ROOT / "Containerfile").read_text())


def test_the_image_runs_opboost_as_a_user_who_is_not_root():
    last = STEPS[max(i for i, (word, _) in enumerate(STEPS) if word == "FROM") :]
    (user,) = [rest for word, rest in last if word == "USER"]
    assert all(int(number) > 0 for number in user.split(":"))
    assert ("ENTRYPOINT", '["opboost"]') in last
    assert not [rest for word, rest in last if word == "RUN"]


def test_every_installation_follows_the_lock():
    steps = [rest for word, rest in STEPS if word == "RUN" and "/bin/uv " in rest]
    assert len(steps) == 2
    assert "--build-constraints requirements/dev.txt" in steps[0]
    assert "--constraints requirements/dev.txt" in steps[1]
    assert "--no-build " in steps[1]
    (version,) = re.findall(r"^UV := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert any(f"uv=={version}" in rest for _, rest in STEPS)


def test_what_is_copied_is_there_and_let_through():
    let_through = (ROOT / ".containerignore").read_text().splitlines()
    for word, rest in STEPS:
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in let_through, source


@pytest.mark.parametrize("name", list(services()))
def test_a_service_is_shut_in(name):
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges"]
    assert service["tmpfs"] == ["/tmp"]
    assert "ports" not in service
    inside = [volume.split(":")[1] for volume in service["volumes"]]
    assert inside == [f"/data/{name}", f"/data/certs/{name}"]
    assert service["volumes"][1].endswith(":ro")
    parsed(service["command"])


def test_podman_builds_the_image():
    podman = shutil.which("podman")
    if podman is None:
        pytest.skip("no podman here: `make claims` runs the Containerfile's steps instead")
    base = "docker.io/library/python:3.11-slim"
    there = subprocess.run([podman, "image", "exists", base], timeout=60, check=False)
    if there.returncode:
        pytest.skip(f"podman has no image {base} here: podman pull {base} to run this test")
    subprocess.run([podman, "build", "--quiet", str(ROOT)], check=True, timeout=1800)
