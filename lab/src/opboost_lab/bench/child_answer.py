"""What a Python process of its own answers."""

import json
import subprocess
from typing import Any

from opboost.errors import OpBoostError
from opboost.runtime.child_processes import python_command


def child_answer(*arguments: str, what: str) -> Any:
    """Run Python with ``arguments``; the JSON in the last line that it prints.

    The error says in which work, ``what``, a process failed, and its last words.
    """
    command = python_command(*arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise OpBoostError(f"{what} failed: {last}")
    return json.loads(done.stdout.strip().splitlines()[-1])
