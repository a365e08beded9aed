"""Compiling that works also where nothing may be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """numba's, but for a cache that has no place: then each process compiles for itself.

    An installation that is read-only, run by a user without a home, is such a place.
    """

    def compile(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=cache, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return numba.njit(**options)(function)

    return compile
