"""Packages that only some users need: the extras of ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opboost.errors import MissingPackageError


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Turn an import that fails inside the block into a sentence with the command that installs it.

    ``what`` names the command, function or parameter that needs the packages of ``extra``.

    >>> with needs_extra("plots", "A picture"):
    ...     import no_such_package
    Traceback (most recent call last):
    opboost.errors.MissingPackageError: A picture needs the package no_such_package, which is not
    installed: run pip install 'opboost[plots]'.
    """
    try:
        yield
    except ImportError as error:
        if isinstance(error, MissingPackageError) or (error.name or "").startswith("opboost"):
            raise
        package = f"the package {error.name.split('.')[0]}" if error.name else "a package"
        raise MissingPackageError(
            f"{what} needs {package}, which is not installed: run pip install 'opboost[{extra}]'."
        ) from None
