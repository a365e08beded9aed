"""Check that the locks hold the hashes of exactly the files that the public index publishes.

python -m tools.supply.published
"""

from __future__ import annotations

import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename
from packaging.utils import parse_sdist_filename as sdist
from packaging.utils import parse_wheel_filename as wheel
from pip._internal.models.index import PyPI

from tools.supply.lock import DEV, DOCS, RUNTIME, Pin, read

INDEX = PyPI.simple_url
FILE = re.compile(r'/([^/"#]+)#(sha256)=([0-9a-f]{64})')


def published(pin: Pin, index: str = INDEX) -> set[str]:
    """Return the hashes of all wheels and sdists of a version."""
    with urllib.request.urlopen(f"{index}/{pin.name}/", timeout=60) as page:
        text = page.read().decode()
    found = set()
    for name, kind, digest in FILE.findall(text):
        file = unquote(name)
        try:
            version = wheel(file)[1] if file.endswith(".whl") else sdist(file)[1]
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
        if str(version) == pin.version:
            found.add(f"{kind}:{digest}")
    return found


def main(index: str = INDEX) -> int:
    locked = [pin for lock in (RUNTIME, DEV, DOCS) for pin in read(lock)]
    pins = list({(pin.name, pin.version): pin for pin in locked}.values())
    with ThreadPoolExecutor(8) as pool:
        theirs = list(pool.map(lambda pin: published(pin, index), pins))
    wrong = [pin for pin, files in zip(pins, theirs, strict=True) if files != set(pin.hashes)]
    for pin in wrong:
        print(f"{pin.name} {pin.version}: the lock's hashes are not those of the index")
    print(f"{len(pins) - len(wrong)} of {len(pins)} locked versions are as published")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
