"""The tutorial: a bank and a shop whose tables were never meant for each other.

Their CSV files spell customers differently (case, spaces, Unicode form), have different orders,
overlap in part, and the shop's has some customers twice.  By bundles and over the network, with
every command as a separate process, the two get the same model.
"""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
import sys
import unicodedata

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.demo.local_federation import started_process, wait_for_address
from robustness.party_processes import BOUNDS, DATA, NAMES, Party
from tests.transport.test_bundles import tree_of_model

BANK, SHOP, BOTH = range(430), range(110, 569), range(110, 430)
OWN, THEIRS = NAMES[:2], NAMES[3:6]
TWICE = (150, 151, 500)

JOB = """\
[job]
name = "credit"
label_party = "bank"
feature_parties = ["shop"]

[align]                       # what two spellings of a customer may differ in
trim = true
case = "lower"
unicode = "NFKC"
parts = ["surname", "number"]  # what the columns of an ID stand for
"""

BANK_TOML = """\
[party]
name = "bank"
job = "job.toml"
table = "customers.csv"
listen = "127.0.0.1:0"

[label]
column = "paid_back"

[tls]
kit = "../certs/bank"

[align]
id = ["surname", "number"]

[booster]
params = { num_boost_round = 10, max_depth = 3, nthread = 1 }
"""

SHOP_TOML = """\
[party]
name = "shop"
job = "job.toml"
table = "clients.csv"
connect = "127.0.0.1:1"

[tls]
kit = "../certs/shop"

[align]
id = ["family_name", "client"]

[ledger]
folder = "ledger"
key = "keys/ledger.key"

[mechanism]
kind = "clamp-map"
epsilon = 2.0

"""


def surname(person):
    return f"Müller-Ångström{person % 7}"


def at_the_bank(person):
    """Return composed letters in capitals, surrounded by spaces."""
    return f"  {unicodedata.normalize('NFC', surname(person)).upper()} ", f"K{person:04d}"


def at_the_shop(person):
    """Return decomposed small letters and full-width digits."""
    wide = "".join(chr(ord(d) + 0xFEE0) for d in f"{person:04d}")
    return unicodedata.normalize("NFD", surname(person)).lower(), f"k{wide}"


def write_csv(path, head, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def values(person, names):
    return [repr(float(DATA.data[person, NAMES.index(n)])) for n in names]


@pytest.fixture
def town(tmp_path):
    bank, shop = tmp_path / "bank", tmp_path / "shop"
    for folder, text in ((bank, BANK_TOML), (shop, SHOP_TOML)):
        folder.mkdir()
        (folder / "job.toml").write_text(JOB)
        (folder / f"{folder.name}.toml").write_text(text)
        assert opboost(tmp_path, "certs", "new", folder.name, "--dir", "certs").returncode == 0
    with (shop / "shop.toml").open("a") as file:
        for name in THEIRS:
            file.write(f'[columns."{name}"]\nbounds = {list(BOUNDS[name])}\n')
    shuffled = random.Random(1)
    people = shuffled.sample(list(BANK), len(BANK))
    rows = [[*at_the_bank(p), *values(p, OWN), DATA.target[p]] for p in people]
    write_csv(bank / "customers.csv", ["surname", "number", *OWN, "paid_back"], rows)
    clients(shop, twice=TWICE)
    return tmp_path


def clients(shop, twice=()):
    """Write the shop's table, with the people of ``twice`` again in the bank's spelling."""
    people = random.Random(2).sample(list(SHOP), len(SHOP))
    rows = [[*at_the_shop(p), *values(p, THEIRS)] for p in people]
    rows += [[*at_the_bank(p), *values(p, THEIRS)] for p in twice]
    write_csv(shop / "clients.csv", ["family_name", "client", *THEIRS], rows)


def opboost(folder, *words):
    process = Party(["opboost", *words], folder)
    out, said = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, said)


def bundle(folder, verb, *given):
    """Run ``opboost bundle``; return the path that it prints."""
    where = [] if verb == "finish" else ["--to", "../carrier"]
    config = f"{folder.name}.toml"
    done = opboost(folder, "bundle", verb, "-c", config, *given, *where)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[0]


def is_refused_for_repeats(done):
    assert done.returncode == 5, done.stderr
    assert "3 IDs appear more than once, in 6 rows" in done.stderr
    assert not re.search(r"[Kk]\d{4}|ller|\d{4}", done.stderr.replace("\r", ""))


def by_bundles(town):
    bank, shop = town / "bank", town / "shop"
    first = bundle(bank, "align")
    is_refused_for_repeats(
        opboost(shop, "bundle", "align", "-c", "shop.toml", first, "--to", "../carrier")
    )
    clients(shop)
    told = bundle(bank, "align", bundle(shop, "align", first))
    query = bundle(bank, "split-query", bundle(shop, "export", told))
    bundle(bank, "finish", bundle(shop, "answer", query))


def by_network(town):
    bank, shop = town / "bank", town / "shop"
    command = [sys.executable, "-m", "opboost", "serve", "-c", str(bank / "bank.toml"), "--again"]
    serving = started_process(command)
    try:
        address = wait_for_address(serving)
        join = ("join", "-c", "shop.toml", "--connect", address)
        clients(shop, twice=TWICE)
        is_refused_for_repeats(opboost(shop, *join))
        clients(shop)
        done = opboost(shop, *join)
        assert done.returncode == 0, done.stderr
        assert serving.wait(60) == 0
    finally:
        serving.kill()
        serving.communicate()


def test_two_companies_find_their_common_customers_and_learn_from_them(town):
    model = town / "bank" / "model.opboost"
    by_bundles(town)
    found = tree_of_model(model)
    manifest = json.loads(next(town.glob("bank/state-bank/*/manifest.json")).read_text())
    theirs = {"shop": len(SHOP)}
    assert manifest["align"] == {"own": len(BANK), "theirs": theirs, "common": len(BOTH)}
    assert manifest["rows"] == len(BOTH)

    # The model is useful, even for people whom it has not seen.
    unseen = pd.DataFrame(DATA.data[430:], columns=NAMES)[[*OWN, *THEIRS]]
    guess = op.load(model).predict(unseen)
    assert (guess == DATA.target[430:]).mean() > 0.85

    model.unlink()
    by_network(town)
    assert tree_of_model(model) == found

    # The ledger has both alignments, and shows one draw per person and column.
    entries = json.loads(opboost(town / "shop", "ledger", "export", "-c", "shop.toml").stdout)
    kinds = [e["kind"] for e in entries]
    assert (kinds.count("align"), kinds.count("aligned")) == (2, 2)
    shown = opboost(town / "shop", "ledger", "show", "-c", "shop.toml", "--format", "json")
    drawn = [r.get("new_cells") for r in json.loads(shown.stdout)["releases"]]
    assert sum(filter(None, drawn)) == len(BOTH) * len(THEIRS)

    # Nothing that a carrier or the other company holds identifies anybody.
    spellings = [s.strip().encode() for p in BOTH for s in (*at_the_bank(p), *at_the_shop(p))]
    numbers = [s for s in spellings if np.any([c in b"0123456789" for c in s])]
    for file in [*town.glob("carrier/*"), *town.glob("*/state-*/**/*")]:
        if file.is_file():
            content = file.read_bytes()
            assert not [s for s in numbers if len(s) > 4 and s in content], file
