"""Attacks by record total: docs/attacks.md.  Needs ``OPBOOST_DATA``; four minutes on one core."""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from claims.claim import FEDERATION, LEARNING, Claim, Page
from opboost.model_card.card import guess_bound
from opboost_lab.accuracy import parted
from opboost_lab.attacks import attributes, invented_columns, labels, linkage
from opboost_lab.declared_sets import all_private

HERE = Page("docs/attacks.md", statistics.fmean)
COLUMNS = {"Adult": 5, "Powerplant": 4, "Pen-digits": 16}
"""The number of numeric columns of each data set."""

TOTALS = (1, 2, 4, 8, 16)
EPSILONS = (0.08, 0.64, 2.56)
"""Levels per cell of the paper's figures."""

MANY_SEEDS, SEEDS = range(5, 15), range(5, 8)
MOST_GAINED_FROM_MESSAGES = 0.03
INVENTED, FEW_INVENTED = 1_000, 50


def over_seeds(
    attack: Callable[..., Any], figure: str, *about: Any, less: str | None = None
) -> list[float]:
    """Return one figure of an attack for each seed, or its difference from another figure."""
    seeds = MANY_SEEDS if attack in (linkage.by_total, linkage.by_epsilon) else SEEDS
    found = [attack(*about, seed) for seed in seeds]
    return [getattr(one, figure) - (getattr(one, less) if less else 0) for one in found]


def claim(name: str, attack: Callable[..., Any], figure: str, *about: Any, **more: Any) -> Claim:
    """Claim that an attack's mean figure over seeds is at most 1, or what ``more`` says."""
    known = {"rule": "at most", "target": 1.0, "within": 1e-9} | more
    return HERE.claim(name, compute=partial(over_seeds, attack, figure, *about), **known)


def linkage_claims(data: str, columns: int) -> list[Claim]:
    """Claim that no attacker exceeds the ceiling of the total; the surest guess may reach it."""
    found = []
    for total in TOTALS:
        about = f"{data} at a record total of {total}, linkage"
        attack, ceiling = linkage.by_total, guess_bound(total, 1 / linkage.PEOPLE)
        listed = guess_bound(total, linkage.TOP / linkage.PEOPLE)
        found += [
            claim(f"{about}: first guess", attack, "first", data, total, target=ceiling),
            claim(f"{about}: among ten", attack, "top", data, total, target=listed),
            claim(f"{about}: surest", attack, "surest", data, total, target=ceiling, middle=max),
        ]
    for epsilon in EPSILONS:
        about = f"{data}, Global-map at {epsilon} per cell, linkage"
        attack, whole = linkage.by_epsilon, epsilon * 9 * columns
        listed = guess_bound(whole, linkage.TOP / linkage.PEOPLE)
        ceiling = guess_bound(whole, 1 / linkage.PEOPLE)
        found += [
            claim(f"{about}: total", attack, "total", data, epsilon, target=whole, rule="equals"),
            claim(f"{about}: first guess", attack, "first", data, epsilon, target=ceiling),
            claim(f"{about}: among ten", attack, "top", data, epsilon, target=listed),
        ]
    return found


def attribute_claims(data: str) -> list[Claim]:
    """Claim how well attributes are guessed without a release, and from one."""
    attack = attributes.by_total
    found = [
        claim(f"{data}, attributes: from the prior", attack, "prior", data, 1),
        claim(f"{data}, attributes: from the label", attack, "label", data, 1),
    ]
    for total in TOTALS:
        about = f"{data} at a record total of {total}, attributes"
        found += [
            claim(f"{about}: from the release", attack, "release", data, total),
            claim(f"{about}: by the label party", attack, "party", data, total),
            claim(f"{about}: most gained in a column", attack, "most_gained", data, total),
            HERE.at_most(
                f"{about}: release over its ceiling",
                0.0,
                partial(over_seeds, attack, "release", data, total, less="ceiling"),
                middle=max,
            ),
        ]
    return found


def label_claims(data: str) -> list[Claim]:
    """Claim how little each message adds to what a feature party knows about labels."""
    attack = labels.by_total
    found = [
        claim(f"{data}, labels: without any message", attack, "nothing", data, 16),
        claim(f"{data}, labels: a model with labels", attack, "ceiling", data, 16),
    ]
    for total in TOTALS:
        about = f"{data} at a record total of {total}, labels"
        found += [
            HERE.at_most(
                f"{about}: gained from {words}",
                MOST_GAINED_FROM_MESSAGES,
                partial(over_seeds, attack, figure, data, total, less="nothing"),
            )
            for figure, words in (("query", "a query for used values"), ("weights", "weights"))
        ]
        found.append(claim(f"{about}: own trees", attack, "trees", data, total))
    return found


def differing(ask: Any) -> list[float]:
    """Return how many values of a split query depend on labels, by data set."""
    sets = [all_private(parted(data, 5)) for data in COLUMNS]
    return [float(labels.values_that_differ(s, 4, 5, labels.PEOPLE, ask)) for s in sets]


def from_invented(columns: int, weights_epsilon: float | None) -> list[float]:
    """Return the AUC of a dishonest party for each seed."""
    return [invented_columns.by_columns("Adult", columns, s, weights_epsilon) for s in SEEDS]


COVERS = (*FEDERATION, *LEARNING, "opboost.scores")
CLAIMS = [
    *(c for data, columns in COLUMNS.items() for c in linkage_claims(data, columns)),
    *(c for data in COLUMNS for c in attribute_claims(data)),
    *(c for data in COLUMNS for c in label_claims(data)),
    HERE.equals(
        "values of a query for all that depend on labels", 0, partial(differing, "all"), middle=max
    ),
    HERE.at_least(
        "values of a query for used ones that depend on labels",
        1,
        partial(differing, "used"),
        middle=min,
    ),
    *(
        HERE.at_most(
            f"{columns:,} invented columns, {invented_columns.TARGETS} people of Adult{words}: AUC",
            1.0,
            partial(from_invented, columns, epsilon),
        )
        for columns, epsilon, words in (
            (FEW_INVENTED, None, ""),
            (INVENTED, None, ""),
            (INVENTED, 1.0, ", weights_epsilon = 1"),
        )
    ),
]
