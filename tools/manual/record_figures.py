"""Write the table of accuracy by record total in docs/record-budgets.md, from docs/claims.json.

python -m tools.manual.record_figures
"""

from __future__ import annotations

import json
import re
from typing import Any

from tools.manual.blocks import DOCS

PAGE = DOCS / "record-budgets.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
HEAD = "| data | total | plain, raw values | ours, clean rows | ours, released rows | "
EVEN = ("Piecewise", "Clamp-map", "Global-map")
MEASURES = {"Powerplant": "R²", "CASP": "R²", "Pen-digits": "accuracy", "Adult": "AUC"}
TOTALS = (1, 2, 4, 8, 16)


def lines() -> dict[str, dict[str, Any]]:
    """Return the claims about record totals, by name."""
    kept = json.loads((DOCS / "claims.json").read_text())
    return {line["name"]: line for line in kept.get("record", [])}


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return the rows as Markdown; for clean rows, a claim states the mean minus its error."""
    titles = HEAD + " | ".join(f"{way}, even" for way in EVEN) + " |"
    rows = [titles, "|" + "---|" * (titles.count("|") - 1)]
    for data, measure in MEASURES.items():
        for total in TOTALS:
            at = f"{data} at a record total of {total}"
            names = [
                f"{data}, plain training on raw values",
                f"{at}, clean test rows",
                f"{at}, released test rows",
                *(f"{at}, {way}, even" for way in EVEN),
            ]
            shown = [f"{found[name]['value']:.3f}" for name in names]
            shown[1] = f"**{shown[1]}**"
            rows.append(f"| {data}, {measure} | {total} | " + " | ".join(shown) + " |")
    return "\n".join(rows)


def industrial(found: dict[str, dict[str, Any]]) -> str:
    """Return a sentence about the stand-in for the industrial set."""
    name = "Industrial's stand-in at a record total of {}, {} test rows: MSE over plain"
    clean, released = (
        [found[name.format(total, kind)]["value"] for total in (4, 8)]
        for kind in ("clean", "released")
    )
    return (
        "On the stand-in for the paper's industrial set, the mean squared error relative to plain "
        f"training is {clean[0]:.3f} and {clean[1]:.3f} on clean rows at totals of 4 and 8, and "
        f"{released[0]:.3f} and {released[1]:.3f} on released rows."
    )


def written(text: str, found: dict[str, dict[str, Any]]) -> str:
    """Return the page with the current figures."""
    body = f"{BEGIN}\n\n{table(found)}\n\n{industrial(found)}\n\n{END}"
    if END in text:
        return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: body, text, flags=re.S)
    return text.replace(BEGIN, body)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(), lines()))
