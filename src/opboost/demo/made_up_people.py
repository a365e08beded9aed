"""A made-up table: what a bank, a shop and a telephone company know about the same people.

Nobody in it exists.  A person has three traits that no column holds: how careful with money they
are, how settled, and how sociable.  Most columns depend on one or two traits plus noise, and the
label depends on the traits and some columns:

* a large loan for the income, little care with money and an unsettled life raise the risk;
* above a threshold of sociability (many calls, many minutes) the risk is higher;
* few visits to the shop raise it only together with large baskets;
* a prepaid contract and one of the four regions raise it.

So the columns of all three organisations matter, and their effects are not linear.  The bank's own
columns alone rank people with an AUC of about 0.62; all columns in the clear reach 0.88.

The same seed makes the same table on every machine.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import IntArray
from opboost.storage import atomic_files

PEOPLE = 20_000
"""The number of people in the tables.  A few hundred cannot support a record total of 4."""

SEED = 2026

LABEL = "defaulted"
ID = "customer"

OWN = ("age", "income", "years", "loan")
"""The bank's own columns besides the label."""

CONTRACTS = ("prepaid", "monthly", "yearly")
CARDS = ("none", "silver", "gold")
REGIONS = ("coast", "hills", "plain", "city")

DECLARED: dict[str, dict[str, dict[str, Any]]] = {
    "shop": {
        "visits": {"bounds": [0, 20], "integers": True},
        "basket": {"bounds": [5, 400], "scale": "log"},
        "card": {"categories": list(CARDS), "ordered": True},
        "returns": {"bounds": [0, 10], "integers": True},
    },
    "phone": {
        "calls": {"bounds": [0, 30], "integers": True},
        "minutes": {"bounds": [0, 900], "missing": "symbol"},
        "contract": {"categories": list(CONTRACTS), "ordered": True},
        "region": {"categories": list(REGIONS)},
    },
}
"""What the shop and the telephone company declare about their columns: settings of
``[columns.NAME]``.  Bounds are public knowledge about the business, not taken from the table."""


def people(count: int = PEOPLE, seed: int = SEED) -> pa.Table:
    """Return the joined table, with one row per person; none of the organisations has it.

    One in twelve values of ``minutes`` is missing; all other columns are complete.
    """
    rng = np.random.default_rng(seed)
    careful, settled, sociable = rng.normal(size=(3, count))
    age = np.clip(np.round(44 + 12 * settled + rng.normal(0, 9, count)), 18, 90)
    income = np.round(np.exp(10.3 + 0.20 * settled + rng.normal(0, 0.4, count)), -2)
    years = np.clip(np.round(0.25 * (age - 18) * rng.uniform(0, 1.4, count)), 0, 40)
    loan = np.round(np.exp(9.0 + rng.normal(0, 0.5, count)), -2)
    visits = rng.poisson(np.exp(1.6 + 0.42 * careful + rng.normal(0, 0.15, count))).clip(0, 20)
    basket = np.round(np.exp(4.1 - 0.50 * careful + rng.normal(0, 0.3, count)).clip(5, 400), 2)
    card = np.digitize(careful + 0.6 * sociable + rng.normal(0, 0.8, count), (-0.2, 1.1))
    returns = rng.poisson(np.exp(0.4 - 0.55 * careful)).clip(0, 10)
    calls = rng.poisson(np.exp(1.9 + 0.45 * sociable)).clip(0, 30)
    minutes = np.round(np.exp(5.0 + 0.6 * sociable + rng.normal(0, 0.3, count)).clip(0, 900), 1)
    contract = np.digitize(settled + 0.7 * rng.normal(size=count), (-0.7, 0.5))
    region = rng.choice(4, count, p=(0.3, 0.2, 0.35, 0.15))
    burden = np.log(loan / income)
    score = 0.55 * (burden + 1.3) - 0.15 * settled - 1.35 * careful
    score += np.where(sociable > 1.0, 1.5, 0.0) + np.where(contract == 0, 0.9, 0.0)
    score += np.where((visits < 4) & (basket > 60), 0.9, 0.0) + np.where(region == 1, 0.9, 0.0)
    defaulted = score + rng.logistic(0, 0.7, count) > 1.9
    known = rng.random(count) >= 1 / 12
    return pa.table(
        {
            ID: [f"P{number:06d}" for number in rng.permutation(900_000)[:count]],
            "age": age.astype(np.int64),
            "income": income.astype(np.int64),
            "years": years.astype(np.int64),
            "loan": loan.astype(np.int64),
            "visits": visits,
            "basket": basket,
            "card": np.array(CARDS)[card],
            "returns": returns,
            "calls": calls,
            "minutes": pa.array(minutes, mask=~known),
            "contract": np.array(CONTRACTS)[contract],
            "region": np.array(REGIONS)[region],
            LABEL: defaulted.astype(np.int64),
        }
    )


@dataclass(frozen=True, slots=True)
class Organisations:
    """The tables of the three organisations, and people whom none of them knows yet."""

    tables: dict[str, pa.Table]
    common: pa.Table
    """The people whom all three know, joined: what plain training in one place would use."""
    new: pa.Table


def organisations(count: int = PEOPLE, seed: int = SEED) -> Organisations:
    """Return the tables: each organisation knows 24 of every 25 people, in an order of its own."""
    everybody = people(count + count // 4, seed)
    rng = np.random.default_rng((seed, 1))
    columns = {"bank": [*OWN, LABEL], **{name: list(held) for name, held in DECLARED.items()}}
    known: dict[str, IntArray] = {
        name: rng.permutation(count)[: count * 24 // 25] for name in columns
    }
    tables = {
        name: everybody.select([ID, *held]).take(known[name]) for name, held in columns.items()
    }
    common = everybody.take(reduce(np.intersect1d, known.values()))
    return Organisations(tables, common, everybody[count:])


def declaration(party: str, record: float) -> str:
    """Return the part of a feature party's file that states its total and declares its columns."""
    lines = [f"[budget]\nrecord = {record!r}", f"rows = {PEOPLE}", 'task = "classify"\n']
    for name, settings in DECLARED[party].items():
        lines.append(f"[columns.{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        lines.append("")
    return "\n".join(lines)


def write_tables(folder: Path, record: float) -> list[Path]:
    """Write every table as CSV and each feature party's declarations as TOML; return the paths.

    ``record`` is a person's total over both feature parties, which share it evenly.
    """
    made = organisations()
    texts = {f"{name}.csv": as_csv(table) for name, table in made.tables.items()}
    texts["new-people.csv"] = as_csv(made.new)
    for name in DECLARED:
        head = f"[align]\nid = {json.dumps(ID)}\n\n"
        texts[f"{name}.toml"] = (head + declaration(name, record / len(DECLARED))).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        atomic_files.write(folder / name, text)
    return [folder / name for name in texts]


def as_csv(table: pa.Table) -> bytes:
    """Return a table as the bytes of a CSV file, with a line of column names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return out.getvalue().encode()
