"""Packages that pyarrow, numba and XGBoost import only because they are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def load_pyarrow_alone() -> None:
    """Load pyarrow as if pandas were not installed.

    pyarrow imports pandas when it first makes an array from Python values.  Use this only in our
    own processes.  A later import of pandas works as usual.
    """
    with _absent("pandas"):
        import pyarrow as pa

        pa.array([0])


def load_xgboost_alone() -> None:
    """Load XGBoost as if scikit-learn were not installed.

    ``xgboost.train`` does not need scikit-learn, which takes three times as long to load as
    XGBoost.  Use this only in our own processes that train, because XGBoost's scikit-learn classes
    stay unusable.  A later import of scikit-learn works as usual.  If XGBoost itself is not
    installed, nothing is loaded, and the booster reports it later.
    """
    with suppress(ModuleNotFoundError), _absent("sklearn"):
        import xgboost  # noqa: F401


def load_without_optional_packages() -> None:
    """Load pyarrow and numba as if their optional packages were not installed.

    numba imports SciPy's linear algebra, cffi and coverage with the first loop that it compiles.
    Our messages and loops use none of them, and loading them takes 1.5 times as long as loading
    everything else.

    Use this only in our own processes, before they start threads: numba never finds these packages
    afterwards.  A later import of them works as usual.
    """
    load_pyarrow_alone()
    with _absent("scipy.linalg", "cffi", "coverage"):
        import numba
        import numba.core.typing.cffi_utils
        import numba.np.arraymath  # noqa: F401


class _Absent:
    """An import finder that precedes all others and reports some packages as not installed."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Report these packages as not installed; leave all others to the finders that follow."""
        if name in self._packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def _absent(*packages: str) -> Iterator[None]:
    """Make the import of these packages fail, unless they are loaded already."""
    finder = _Absent(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
