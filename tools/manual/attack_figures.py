"""Write the figures of docs/attacks.md and of the model card, from docs/claims.json.

python -m tools.manual.attack_figures

writes the page's tables, its picture, and the file that ``opboost card`` reads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

from opboost.model_card.attack_figures import LINKED_PEOPLE
from opboost.model_card.card import guess_bound
from opboost.plots import figures
from tools.manual.blocks import DOCS, ROOT

PAGE, PICTURE = DOCS / "attacks.md", DOCS / "img" / "attacks.svg"
SHIPPED = ROOT / "src" / "opboost" / "model_card" / "measured_attacks.json"
SETS = {"Adult": "#1f4e79", "Powerplant": "#b7a26a", "Pen-digits": "#c0504d"}
TOTALS = (1, 2, 4, 8, 16)
EPSILONS = (0.08, 0.64, 2.56)
LISTED = 10
Values = dict[str, float]


def values() -> Values:
    """Return the recorded figures of the attacks, by name."""
    kept = json.loads((DOCS / "claims.json").read_text())
    return {line["name"]: line["value"] for line in kept["attacks"]}


def at(found: Values, data: str, total: float, figure: str) -> float:
    """Return a figure of a data set at a record total."""
    return found[f"{data} at a record total of {total}, {figure}"]


def shipped(found: Values) -> str:
    """Return the content of the file that the model card reads."""

    def by_set(figure: str, total: int, less: str = "") -> Values:
        return {
            s: round(at(found, s, total, figure) - (found[f"{s}, {less}"] if less else 0), 5)
            for s in SETS
        }

    plain: list[dict[str, Any]] = [
        {
            "total": float(total),
            "linked": by_set("linkage: first guess", total),
            "attribute_gain": by_set(
                "attributes: from the release", total, "attributes: from the prior"
            ),
            "label_auc": by_set("labels: own trees", total),
        }
        for total in TOTALS
    ]
    return json.dumps(plain, indent=1) + "\n"


def tables(found: Values) -> dict[str, str]:
    """Return the page's summary and tables, by the names of their markers."""
    return {
        "answer": _answer(found),
        "linkage": _markdown(
            ("total", "by chance", *SETS, "surest of all", "ceiling"),
            _linkage_rows(found),
        ),
        "listed": _markdown(
            ("total", "by chance", *SETS, "ceiling"),
            (
                [
                    f"{total}",
                    _percent(LISTED / LINKED_PEOPLE),
                    *(_percent(at(found, s, total, "linkage: among ten")) for s in SETS),
                    _percent(guess_bound(total, LISTED / LINKED_PEOPLE)),
                ]
                for total in TOTALS
            ),
        ),
        "paper": _markdown(
            ("data", "ε per cell", "total of the record", "first guess", "among ten"),
            (
                [
                    s,
                    f"{epsilon:g}",
                    f"{found[f'{about}: total']:.4g}",
                    _percent(found[f"{about}: first guess"]),
                    _percent(found[f"{about}: among ten"]),
                ]
                for s in SETS
                for epsilon in EPSILONS
                for about in (f"{s}, Global-map at {epsilon} per cell, linkage",)
            ),
        ),
        "attributes": _markdown(
            ("data", "total", "prior alone", "release", "label alone", "label party",
             "most gained in a column"),
            (
                [
                    s,
                    f"{total}",
                    _percent(found[f"{s}, attributes: from the prior"]),
                    _percent(at(found, s, total, "attributes: from the release")),
                    _percent(found[f"{s}, attributes: from the label"]),
                    _percent(at(found, s, total, "attributes: by the label party")),
                    f"{100 * at(found, s, total, 'attributes: most gained in a column'):+.1f}",
                ]
                for s in SETS
                for total in TOTALS
            ),
        ),
        "labels": _markdown(
            ("data", "total", 'nothing, or ask = "all"', 'ask = "used"', "pilot weights",
             "own trees", "model with labels"),
            (
                [
                    s,
                    f"{total}",
                    f"{nothing:.3f}",
                    *(
                        f"{nothing + at(found, s, total, f'labels: gained from {what}'):.3f}"
                        for what in ("a query for used values", "weights")
                    ),
                    f"{at(found, s, total, 'labels: own trees'):.3f}",
                    f"{found[f'{s}, labels: a model with labels']:.3f}",
                ]
                for s in SETS
                for total in TOTALS
                for nothing in (found[f"{s}, labels: without any message"],)
            ),
        ),
        "invented": _markdown(
            ("invented columns and people", "AUC"),
            ([n.rpartition(":")[0], f"{v:.2f}"] for n, v in found.items() if "invented" in n),
        ),
    }  # fmt: skip


def _answer(found: Values) -> str:
    """Return the summary at the top of the page."""
    messages = ("gained from a query for used values", "gained from weights")
    told = max(at(found, s, t, f"labels: {m}") for s in SETS for t in TOTALS for m in messages)
    firsts = {t: [at(found, s, t, "linkage: first guess") for s in SETS] for t in TOTALS}
    gains = {
        t: [
            100 * (at(found, s, t, "attributes: from the release")
                   - found[f"{s}, attributes: from the prior"])
            for s in SETS
        ]
        for t in TOTALS
    }  # fmt: skip
    linked = ", ".join(f"{_ends([100 * v for v in firsts[t]])} % at {t}" for t in (1, 4, 8, 16))
    gained = ", ".join(f"{_ends(gains[t])} at {t}" for t in (1, 4, 16))
    surest = {t: max(at(found, s, t, "linkage: surest") for s in SETS) for t in (4, 8, 16)}
    worst = ", ".join(f"{_percent(v)} at {t}" for t, v in surest.items())
    about = "1,000 invented columns, 200 people of Adult"
    invented, limited = (found[f"{about}{s}: AUC"] for s in ("", ", weights_epsilon = 1"))
    lines = (
        f"Somebody with a stolen table of {LINKED_PEOPLE:,} people links this share of released "
        f"records to the right person, by total: {linked}. By chance it is 0.1 %.",
        f"Some records are more exposed: the surest link was right with probability {worst}.",
        "With a release, an attacker guesses the right quarter of a column's range, or the right "
        f"category, more often than without it, by these percentage points: {gained}.",
        f"A feature party that follows the protocol gains at most {told:.3f} AUC about labels from "
        "a split query or pilot weights. At totals of 4 and more, its own trees reveal nearly as "
        "much as a model of its columns and the labels would.",
        "A feature party that invents its columns can read labels from pilot weights, with an AUC "
        f"of {invented:.2f}. The label party can limit that with `weights_epsilon` (at 1: "
        f"{limited:.2f}) or prevent it with `share_weights = false`.",
    )
    return "\n".join(fill(f"- {line}", 128, subsequent_indent="  ") for line in lines)


def _ends(values: Sequence[float]) -> str:
    shown = [f"{value:.1f}" for value in (min(values), max(values))]
    return " to ".join(dict.fromkeys(shown))


def _linkage_rows(found: Values) -> Iterator[Sequence[str]]:
    for total in TOTALS:
        yield (
            f"{total}",
            _percent(1 / LINKED_PEOPLE),
            *(_percent(at(found, s, total, "linkage: first guess")) for s in SETS),
            _percent(max(at(found, s, total, "linkage: surest") for s in SETS)),
            _percent(guess_bound(total, 1 / LINKED_PEOPLE)),
        )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:.1f} %"


def _markdown(titles: Sequence[str], rows: Any) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(text: str, found: Values) -> str:
    """Return the page with the current figures."""
    for name, table in tables(found).items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        body = f"{begin}\n\n{table}\n\n{end}"
        pattern = f"{re.escape(begin)}.*{re.escape(end)}"
        text, count = re.subn(pattern, lambda _, body=body: body, text, flags=re.S)
        if count != 1:
            raise ValueError(f"{PAGE.name} has {count} places for {name!r}.")
    return text


def digest(found: Values) -> str:
    """Return a digest of the figures, which the picture contains."""
    return hashlib.sha256(shipped(found).encode()).hexdigest()


def draw(found: Values) -> None:
    """Draw three panels over the record total: linkage, attributes, labels."""
    chart = figures.figure(1, 3, 11.0, 3.6)
    link, attribute, label = chart.axes[0]
    places = range(len(TOTALS))
    link.plot(places, [100 * guess_bound(t, 1 / LINKED_PEOPLE) for t in TOTALS], ":",
              color="#555555", label="ceiling, or a model with labels")  # fmt: skip
    link.axhline(100 / LINKED_PEOPLE, color="#999999", linewidth=1, linestyle="--",
                 label="without the release or message")  # fmt: skip
    attribute.axhline(0, color="#999999", linewidth=1, linestyle="--")
    for s, colour in SETS.items():
        line = {"color": colour, "marker": "o", "markersize": 4, "linewidth": 1.6}
        first = [100 * at(found, s, t, "linkage: first guess") for t in TOTALS]
        link.plot(places, first, "-", label=s, **line)
        prior = found[f"{s}, attributes: from the prior"]
        from_release = [at(found, s, t, "attributes: from the release") - prior for t in TOTALS]
        attribute.plot(places, [100 * gain for gain in from_release], "-", **line)
        label.plot(places, [at(found, s, t, "labels: own trees") for t in TOTALS], "-", **line)
        for name, style in (("without any message", "--"), ("a model with labels", ":")):
            level = found[f"{s}, labels: {name}"]
            label.axhline(level, color=colour, linewidth=1, linestyle=style)
    link.set_yscale("log")
    link.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    for axes, title, unit in (
        (link, "Right person of 1,000 named", "% of records"),
        (attribute, "Attributes guessed from the release", "points over the prior"),
        (label, "Labels from a party's own trees", "AUC"),
    ):
        axes.set_title(title, fontsize=11)
        axes.set_ylabel(unit)
        axes.set_xlabel("record total")
        axes.set_xticks(places, [f"{t}" for t in TOTALS])
        axes.grid(alpha=0.25)
    handles, names = link.get_legend_handles_labels()
    chart.figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
    figures.save(chart, PICTURE, about=digest(found))


if __name__ == "__main__":
    figures_now = values()
    SHIPPED.write_text(shipped(figures_now))
    PAGE.write_text(written(PAGE.read_text(), figures_now))
    draw(figures_now)
