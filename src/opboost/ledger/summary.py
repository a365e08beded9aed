"""A ledger in a few figures: releases, and the most that was spent on one person."""

from __future__ import annotations

from math import inf
from typing import Any

from opboost.ledger.store import UNBOUNDED, UNIT, Ledger
from opboost.ledger.totals import totals


def summary(ledger: Ledger) -> dict[str, Any]:
    """Alignments, releases and answers in their order, and what was spent by attribute."""
    releases: dict[int, dict[str, Any]] = {}
    meetings: dict[str, dict[str, Any]] = {}
    lines = []
    for entry in ledger.entries("align", "aligned", "reserve", "commit", "abort", "answer"):
        body = entry.body
        line = {
            "entry": entry.number,
            "at": entry.at,
            "job": body["job"],
            "recipient": body["recipient"],
        }
        if entry.kind == "reserve":
            releases[entry.number] = line | {"what": "reserved, not finished: nothing was sent"}
            lines.append(releases[entry.number])
        elif entry.kind == "align":
            sizes = f"{body['rows']:,} rows with {body['theirs']:,}"
            meetings[body["job"]] = line | {"what": f"alignment of {sizes}, never finished"}
            lines.append(meetings[body["job"]])
        elif entry.kind == "aligned":
            if body["job"] not in meetings:
                raise entry.damaged()
            what = meetings[body["job"]]["what"].removesuffix(", never finished")
            meetings[body["job"]].update(what=f"{what}: {body['common']:,} in common")
        elif entry.kind == "answer":
            cuts = sum(body["cuts"].values())
            lines.append(line | {"what": f"split values: {cuts} cuts"})
        elif body["reservation"] not in releases:
            raise entry.damaged()
        else:
            counts = {k: body.get(k) for k in ("rows", "new_cells", "old_cells")}
            what = "release" if entry.kind == "commit" else f"taken back ({body['reason']})"
            releases[body["reservation"]].update(counts, what=what)
    found = totals(ledger)
    everything = found.pop("")
    spent = [
        {"attribute": name, "people": of.people, "most": _level(of.most)}
        | {"cap": ledger.caps.attribute}
        for name, of in found.items()
    ]
    spent.append(
        {
            "attribute": "all together",
            "people": everything.people,
            "most": _level(everything.most),
            "cap": ledger.caps.person,
        }
    )
    about = {"cap_attribute": ledger.caps.attribute, "changed": ledger.changed}
    return {"releases": lines, "spent": spent, **about}


def _level(amount: int) -> float:
    return inf if amount >= UNBOUNDED else amount / UNIT
