"""Packages that pyarrow and numba import only because they are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


def load_without_optional_packages() -> None:
    """Load pyarrow and numba as they are where their optional packages are not installed.

    pyarrow imports pandas with the first array that it makes of Python values.  numba imports
    SciPy's linear algebra, cffi and coverage with the first loop that it compiles.  Our messages
    and loops use none of them, and they take half as long again as all that is used.

    It is for processes of our own, before they start threads: to numba these packages stay absent.
    Whoever imports them later gets them.
    """
    with _absent("pandas"):
        import pyarrow as pa

        pa.array([0])
    with _absent("scipy.linalg", "cffi", "coverage"):
        import numba
        import numba.core.typing.cffi_utils
        import numba.np.arraymath  # noqa: F401


class _Absent:
    """A finder that comes before all others, and says of some packages that they do not exist."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse these packages, and leave all others to the finders that follow."""
        if name in self._packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def _absent(*packages: str) -> Iterator[None]:
    """Let the import of packages fail that are not loaded yet."""
    finder = _Absent(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
