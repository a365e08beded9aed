"""Loops that numba compiles at their first call, even if nothing can be written to disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import RLock
from types import CodeType, FunctionType
from typing import Any

_compiling = RLock()


class CompiledLoop:
    """A function that numba compiles, or loads from its cache, at the first call.

    numba itself is imported at that call, because many commands never call a loop.
    """

    def __init__(self, function: Any, *, cache: bool, **options: Any) -> None:
        self.py_func, self.cache, self.options = function, cache, options
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *values: Any) -> Any:
        """Run the compiled loop."""
        return (self._dispatcher or self.dispatcher())(*values)

    def dispatcher(self) -> Any:
        """Return numba's own function."""
        with _compiling:
            if self._dispatcher is None:
                self._dispatcher = self._compiled()
        return self._dispatcher

    def _compiled(self) -> Any:
        """Compile the function, without a cache if there is nowhere to store one.

        This happens if the installation is read-only and the user has no home folder.  Each process
        then compiles for itself.
        """
        import numba

        function = _with_dispatchers(self.py_func)
        try:
            return numba.njit(cache=self.cache, **self.options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return numba.njit(**self.options)(function)


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], CompiledLoop]:
    """Return a decorator like numba's, for a function that is compiled at its first call."""
    return lambda function: CompiledLoop(function, cache=cache, **options)


def _with_dispatchers(function: Any) -> Any:
    """Return the function with numba's own functions in place of the loops that it calls."""
    known, names = function.__globals__, _names(function.__code__)
    called = {n: known[n] for n in names if isinstance(known.get(n), CompiledLoop)}
    if not called:
        return function
    bound = {name: loop.dispatcher() for name, loop in called.items()}
    copy = FunctionType(function.__code__, {**known, **bound}, closure=function.__closure__)
    return update_wrapper(copy, function)


def _names(code: CodeType) -> set[str]:
    """Return the global names that a function uses, including those in its comprehensions."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*map(_names, inner))
