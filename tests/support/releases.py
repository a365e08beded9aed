"""Tables that are released in parts, and their releases."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from opboost.config.columns_file import parse
from opboost.ledger import Caps, Ledger
from opboost.scale import Charge, ReleaseInParts
from opboost.scale.release_secret import SECRET

DECLARED = """\
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.age]
bounds = [17, 90]
[columns.pay]
bounds = [0, 9000]
missing = "flag"
eps_missing = 1.0
missing_constant = 100
grid = {lower = 0, upper = 1000000}
[columns.city]
categories = ["north", "south", "east"]
[table]
public = ["id"]
drop = ["name"]
"""
PLAN = parse(DECLARED, "b.toml")
AGE_ONLY = (
    "[mechanism]\nepsilon = 0.64\n[columns.age]\nbounds = [17, 90]\n"
    '[table]\npublic = ["id"]\ndrop = ["name", "pay", "city"]\n'
)


def toml(declared=DECLARED):
    """Return the file of a party with a ledger, to which more lines of [ledger] may be added."""
    people = '[align]\nid = "id"\n'
    return f'{declared}{people}[ledger]\nfolder = "ledger"\nkey = "keys/ledger.key"\n'


def people(rows=300, first=0):
    """Return rows that differ in every way that matters, determined by their numbers."""
    numbers = range(first, first + rows)
    return pa.table(
        {
            "id": [f"person {n}" if n % 3 else str(n) for n in numbers],
            "name": [f"name {n}" for n in numbers],
            "age": [17.0 + n % 73 for n in numbers],
            "pay": [None if n % 7 == 0 else float(n % 9100) for n in numbers],
            "city": [("north", "south", "east")[n % 3] for n in numbers],
        }
    )


def files(folder, parts=4, rows=100):
    """Write a table of several Parquet files; return its folder."""
    folder.mkdir()
    for part in range(parts):
        pq.write_table(people(rows, part * rows), folder / f"{part}.parquet")
    return folder


def with_secret(target, secret=bytes(range(32))):
    """Prepare a release that will begin with a secret that the test knows."""
    folder = target.with_name(f".{target.name}.release")
    folder.mkdir()
    (folder / SECRET).write_bytes(secret)
    (folder / SECRET).chmod(0o600)
    return target


def release_of(target, parts, charge=None, plan=PLAN):
    return ReleaseInParts(target, plan, ["id"], parts=parts, source="test", charge=charge)


def made(target, tables, charge=None, plan=PLAN):
    """Release some tables completely, one per part."""
    with release_of(target, len(tables), charge, plan) as release:
        for number in release.missing():
            release.block.write(number, [tables[number]])
        return release.commit()


def rows_of(target):
    """Return the released rows, sorted by ID."""
    return pd.read_parquet(target).sort_values("id").reset_index(drop=True)


def charge_to(home, **caps):
    ledger = Ledger(home / "ledger", home / "keys" / "ledger.key", Caps(**caps))
    return Charge(ledger, recipient="bank")


def kinds(ledger):
    return [e.kind for e in ledger.entries() if e.kind != "open"]
