"""A real browser, if the machine has one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def browser() -> str:
    """Return the browser's command; without a browser, skip the test and say why."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(
            f"no browser here (looked for {', '.join(NAMES)}): install one to run this test"
        )
    return found


def opened(page: Path, *more: str) -> str:
    """Load a page without network, and return its HTML from the browser."""
    done = subprocess.run(
        [
            browser(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--proxy-server=127.0.0.1:1",
            "--virtual-time-budget=3000",
            *more,
            page.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout
