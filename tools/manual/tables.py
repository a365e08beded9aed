"""Make the tables of the manual's examples: invented customers of a bank and of a shop.

    python -m tools.manual.tables

writes them to docs/files/.  The seed is fixed, so every run writes the same files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parents[2] / "docs" / "files"
BANK = ["customer", "age", "income", "years", "paid_back"]
SHOP = ["customer", "basket", "visits", "city"]
PEOPLE = ["customer", "age", "income", "city", "basket", "visits", "paid_back"]


def customers(count: int = 1500) -> pd.DataFrame:
    """Return people whose baskets and visits predict repayment better than a bank's columns do."""
    rng = np.random.default_rng(2022)
    age = rng.integers(18, 86, count)
    income = np.round(rng.lognormal(10.3, 0.45, count), -2)
    years = np.minimum(rng.poisson(6, count), age - 18)
    basket = np.round(rng.gamma(2.5, 45, count), 2)
    visits = rng.poisson(3 + basket / 60)
    city = rng.choice(["north", "south", "east"], count, p=[0.5, 0.3, 0.2])
    score = 1.2 * np.log(income / 30_000) + (basket - 112) / 70 + (visits - 5) / 3
    score += np.where(city == "south", 0.8, 0.0) + rng.logistic(0, 0.7, count)
    return pd.DataFrame(
        {
            "customer": [f"C{number:05d}" for number in rng.permutation(90_000)[:count]],
            "age": age,
            "income": income.astype(int),
            "years": years,
            "basket": basket,
            "visits": visits,
            "city": city,
            "paid_back": (score > -0.6).astype(int),
        }
    )


def tables() -> dict[str, pd.DataFrame]:
    """Return each file's rows: two companies that share 900 people, both joined, new customers."""
    everybody = customers()
    known, new = everybody[:1300], everybody[1300:]
    shuffled = np.random.default_rng(1).permutation(1100)
    return {
        "bank.csv": known[:1100][BANK],
        "shop.csv": known[200:][SHOP].iloc[shuffled],
        "people.csv": known[:1000][PEOPLE],
        "new-customers.csv": new[
            ["customer", "age", "income", "years", "basket", "visits", "city"]
        ],
        "new-people.csv": new[PEOPLE[:-1]],
    }


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, table in tables().items():
        table.to_csv(FOLDER / name, index=False)
