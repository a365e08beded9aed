"""Run Python in a separate process, and read its answer."""

import json
import subprocess
from typing import Any

from opboost.errors import OpBoostError
from opboost.runtime.child_processes import python_command


def child_answer(*arguments: str, what: str) -> Any:
    """Run Python with ``arguments``, and return the JSON in the last line that it prints.

    If it fails, the error names the work, ``what``, and the last line on standard error.
    """
    command = python_command(*arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise OpBoostError(f"{what} failed: {last}")
    return json.loads(done.stdout.strip().splitlines()[-1])
