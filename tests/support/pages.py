"""The explorer's pages as `opboost explore` serves them, and a browser to test them."""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image
from playwright.sync_api import sync_playwright
from threadpoolctl import threadpool_limits

from opboost.explorer.access import new_token
from opboost.explorer.server import listening, prepared
from tests.support.browser import browser

PICTURES = os.environ.get("OPBOOST_SCREENSHOTS", "")
"""The folder for screenshots; by default, none are taken."""


@contextlib.contextmanager
def live(site):
    """Serve the site; yield its address."""
    with threadpool_limits(1), listening(0) as listener:
        server, address = prepared(site, listener, new_token())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield address
        finally:
            server.should_exit = True
            thread.join(timeout=20)
            site.trial.stop()


@contextlib.contextmanager
def browsing():
    """Yield a real browser, headless."""
    command = browser()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=command, args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


@contextlib.contextmanager
def page_of(opened, address, *, width=1280, scheme="light", **more):
    """Open a page in a new context; it may contact only the server, and must log no error."""
    size = {"width": width, "height": 900}
    context = opened.new_context(viewport=size, color_scheme=scheme, **more)
    asked, errors = [], []
    page = context.new_page()
    page.on("request", lambda request: asked.append(urlsplit(request.url).netloc))
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    try:
        yield page
    finally:
        context.close()
    assert set(asked) == {urlsplit(address).netloc}
    assert not errors


CUT_OFF = """() => [...document.querySelectorAll(".scroll")]
  .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.getAttribute("aria-label"))"""
"""A script that returns the names of tables that a reader would have to scroll sideways."""


def in_first_screen(page, part):
    """Return whether a part of the page is completely visible without scrolling."""
    box = page.locator(part).first.bounding_box()
    size = page.viewport_size
    return (
        box["x"] >= 0
        and box["x"] + box["width"] <= size["width"]
        and box["y"] >= 0
        and box["y"] + box["height"] <= size["height"]
    )


def photographed(page, name, part=None):
    """Save a screenshot of the page or a part of it for the docs, if screenshots are requested."""
    if PICTURES:
        taken = page.locator(part).screenshot() if part else page.screenshot(full_page=True)
        few = Image.open(io.BytesIO(taken)).convert("RGB").quantize(128)
        few.save(Path(PICTURES) / f"{name}.png", optimize=True)
