"""Packages that pyarrow, numba and XGBoost import only because they are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def load_pyarrow_alone() -> None:
    """Load pyarrow as it is where pandas is not installed.

    It imports pandas with the first array that it makes of Python values.  This is for processes of
    our own.  Whoever imports pandas later gets it.
    """
    with _absent("pandas"):
        import pyarrow as pa

        pa.array([0])


def load_xgboost_alone() -> None:
    """Load XGBoost as it is where scikit-learn is not installed.

    ``xgboost.train`` uses no scikit-learn, which takes three times as long to load as XGBoost.
    This is for processes of our own that train with it, because XGBoost's own scikit-learn classes
    stay unusable.  Whoever imports scikit-learn later gets it.  Where XGBoost itself is not
    installed, nothing is loaded: the booster's own error says so.
    """
    with suppress(ModuleNotFoundError), _absent("sklearn"):
        import xgboost  # noqa: F401


def load_without_optional_packages() -> None:
    """Load pyarrow and numba as they are where their optional packages are not installed.

    numba imports SciPy's linear algebra, cffi and coverage with the first loop that it compiles.
    Our messages and loops use none of them, and they take half as long again as all that is used.

    It is for processes of our own, before they start threads: to numba these packages stay absent.
    Whoever imports them later gets them.
    """
    load_pyarrow_alone()
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
