"""Make skops files that have the same bytes for equal models.

skops names the parts of a model by their addresses in memory, and adds the date.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

_SCHEMA = "schema.json"


def stable(data: bytes) -> bytes:
    """Return a skops file whose parts are numbered in the order of its schema, without dates."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    numbers: dict[int, int] = {}
    files: dict[str, str] = {}
    schema = json.loads(members.pop(_SCHEMA))
    nodes: list[Any] = [schema]
    count = 0
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += reversed(node)
        if not isinstance(node, dict):
            continue
        nodes += reversed(node.values())
        if "__id__" not in node:
            continue
        address = node["__id__"]
        if address not in numbers or node.get("is_json"):  # equal numbers share an address only
            count += 1  # by chance, so each gets a number of its own
            numbers[address] = count
        node["__id__"] = numbers[address]
        if isinstance(name := node.get("file"), str):
            suffix = name.partition(".")[2]
            node["file"] = files.setdefault(name, f"{numbers[address]}.{suffix}")
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_STORED) as archive:
        for name, new in files.items():
            archive.writestr(zipfile.ZipInfo(new), members.pop(name))
        archive.writestr(zipfile.ZipInfo(_SCHEMA), json.dumps(schema))
    if members:
        raise AssertionError(f"skops wrote parts that its schema does not name: {sorted(members)}")
    return found.getvalue()
