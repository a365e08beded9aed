"""Check a certificate of OpBoost: python check_certificate.py cert.json [b.toml]

``opboost certify -c b.toml --export cert.json`` writes the file.  This program shares no code with
OpBoost, calculates only with integers, and needs nothing but Python 3.11.  A promise bounds the
ratio of two probabilities of the same output, from inputs x and y, by e**bound(x, y).  In a "table"
every pair is compared at every output; in the closed forms a few numbers decide about all pairs.
"""

import json
import sys
import tomllib
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

BITS = 320  # binary digits with which e**x is calculated; it is always rounded down
BAD = (AttributeError, LookupError, TypeError, ValueError)
CLOSED = {  # the form of the promise; and which factor below one counts how often, for which level
    "clamped": ("dldp", (("decay", 1, "epsilon"),)),  # n cells on, each mass is decay**n at least
    "truncated": ("dldp", (("decay", 2, "epsilon"),)),  # so is each weight, and so is their sum
    "runs": ("partition", (("outer", 2, "eps_prt"), ("inner", 2, "eps_ner"))),  # run, then cell
    "inside runs": ("local", (("inner", 2, "epsilon"),)),
    "piecewise": ("ldp", (("decay", 2, "epsilon"),)),  # densities are 1 and decay**2
}


def need(holds, what):
    if not holds:
        raise ValueError(what)


def count(value, least):
    need(type(value) is int and value >= least, f"{value!r} is no whole number from {least}")
    return value


def big(text):
    need(isinstance(text, str) and text.startswith("0x"), f"{text!r} is no integer such as 0x1f")
    return int(text, 16)


def level(text):
    need(isinstance(text, str) and text.replace(".", "", 1).isdecimal(), f"{text!r} is no level")
    return Fraction(text)


@cache
def exp_below(x):
    """Return an integer that is at most e**x * 2**BITS: a series of positive terms, squared."""
    halvings = int(x).bit_length() + 8
    work = BITS + 2 * halvings + 16
    term, whole, n = 1 << work, 0, 0
    while term:
        whole, n = whole + term, n + 1
        term = term * x.numerator // ((x.denominator << halvings) * n)
    for _ in range(halvings):
        whole = whole * whole >> work
    return whole >> (work - BITS)


def near(a, b, limit, what):
    """Refuse two numbers that differ by a factor of more than e**limit, either way."""
    most = exp_below(limit)
    need(a > 0 < b and a << BITS <= b * most and b << BITS <= a * most, f"{what} too much")


def runs(promise, cells):
    """Return the first cells of all runs, and how wide the widest is."""
    if isinstance(promise["runs"], int):
        return range(0, cells, count(promise["runs"], 1)), min(promise["runs"], cells)
    edges = [0, *promise["runs"], cells]
    return edges[:-1], max(count(b - a, 1) for a, b in pairwise(edges))


def bound(promise, cells, x, y):
    """Return the promise about two cells, which count from 0; None if nothing is promised."""
    form, apart = promise["form"], abs(x - y)
    if form in ("ldp", "dldp"):
        return level(promise["epsilon"]) * (apart if form == "dldp" else min(apart, 1))
    if form == "capped":
        return min(level(promise["near"]) * apart, level(promise["cap"]))
    firsts, widest = runs(promise, cells)
    borders = abs(bisect_right(firsts, x) - bisect_right(firsts, y))
    if form == "local":
        return None if borders else level(promise["epsilon"]) * apart
    need(form == "partition", f"there is no promise of the form {form!r}")
    return level(promise["eps_prt"]) * borders + level(promise["eps_ner"]) * min(apart, widest - 1)


def check_table(channel, promise, cells):
    rows = [[big(w) for w in row] for row in channel["rows"]]
    need([len(row) for row in rows] == [len(rows[0])] * cells, "the table is not complete")
    need({sum(row) for row in rows} == {1 << count(channel["bits"], 1)}, "a row has another sum")
    raised = [[w << BITS for w in row] for row in rows]
    for x, y in combinations(range(cells), 2):
        if (limit := bound(promise, cells, x, y)) is not None:
            most = exp_below(limit)
            for a, b, high_a, high_b in zip(rows[x], rows[y], raised[x], raised[y], strict=True):
                if high_a > b * most or high_b > a * most:
                    raise ValueError(f"cells {x} and {y} lose too much")


def check_shifts(channel, promise, cells):  # all rows: one list, moved along, and a floor elsewhere
    weights, floor = [big(w) for w in channel["weights"]], big(channel["floor"])
    whole = sum(weights) + (cells - 1) * floor if len(weights) % 2 else 0
    need(whole == big(channel["sum"]), "the row has another sum, or no middle")
    near(max(*weights, floor), min(*weights, floor), most_of(promise), "two cells lose")
    if promise["form"] == "capped":  # over n cells a weight changes in n steps
        for a, b in pairwise([floor, *weights, floor]):
            near(a, b, level(promise["near"]), "neighbours lose")


def check_closed(channel, promise, cells):
    form, factors = CLOSED[channel["kind"]]
    need(form == promise["form"], "the promise does not fit the noise")
    for name, times, key in factors:
        low, high = map(big, channel[name])
        need(low < high, f"the factor {name} is not below one")
        near(low**times, high**times, level(promise[key]), "two cells lose")


def check_nominal(channel, promise, cells):
    on, one = big(channel["on"]), 1 << count(channel["bits"], 1)
    need(promise["form"] == "ldp", "the promise does not fit the noise")
    if channel["kind"] == "unary":  # between two categories two bits change, one up and one down
        a, b = on * (one - big(channel["off"])), big(channel["off"]) * (one - on)
    else:  # a set has the own category and size - 1 others, or size others
        a, b = on * (cells - count(channel["size"], 1)), (one - on) * channel["size"]
    near(a, b, level(promise["epsilon"]), "two categories lose")


def most_of(promise):
    need(promise["form"] in ("ldp", "capped"), "the promise does not fit the noise")
    return level(promise["cap" if promise["form"] == "capped" else "epsilon"])


def check_gaps(gaps, channel, promise, cells):
    """Return the largest bound between a gap and a cell."""
    one = 1 << count(gaps["bits"], 1)
    if gaps["kind"] == "flag":  # a gap then draws as the cell "constant" does, which is checked
        at, lie, extra = gaps["constant"], big(gaps["lie"]), level(gaps["eps_missing"])
        need(count(at, 0) < cells, "the constant is no cell")
        near(one - lie, lie, extra, "the flag reveals")
        reach = [bound(promise, cells, at, end) for end in (0, cells - 1)]
        return None if None in reach else extra + max(reach)
    gap, cell, most = big(gaps["gap"]), big(gaps["cell"]), most_of(promise)
    near(gap, cell, most, "the symbol for a gap reveals")
    if channel["kind"] == "table":  # "row": how a gap that is not reported as one spreads
        pairs = {p for row in channel["rows"] for p in zip(gaps["row"], row, strict=True)}
        whole, outputs = 1 << channel["bits"], sum(gaps["row"])
    else:  # it is uniform over the cells and those that the weights reach beyond them
        pairs = {(1, w) for w in (*channel["weights"], channel["floor"])}
        whole, outputs = big(channel["sum"]), cells + len(channel["weights"]) - 1
    for n, w in pairs:
        a, b = (one - gap) * count(n, 1) * whole, (one - cell) * big(w) * outputs
        near(a, b, most, "a gap and a cell lose")
    return most


def most_revealed(columns, promise, channel, gaps):
    """Return the most that each of the columns reveals; None where nothing is promised."""
    cells = count(channel["cells"], 2)
    known = {"table": check_table, "shifts": check_shifts, **dict.fromkeys(CLOSED, check_closed)}
    known |= {"unary": check_nominal, "subset": check_nominal}
    known[channel["kind"]](channel, promise, cells)
    total = bound(promise, cells, 0, cells - 1)
    reach = total if gaps is None else check_gaps(gaps, channel, promise, cells)
    return None if None in (total, reach) else max(total, reach)


def check(certificate, toml=None):
    """Return a record's total (None: no promise) and what is not covered; raise what is wrong."""
    data = json.loads(certificate, parse_float=level)
    need(data["format"] == "opboost certificate 1", "it is no certificate that I know")
    columns, record = {}, data["record"]
    for one in data["mechanisms"]:
        try:
            columns |= dict.fromkeys(one["columns"], most_revealed(**one))
        except BAD as error:
            raise ValueError(f"columns {one['columns']}: {error}") from error
    names = sorted(name for one in data["mechanisms"] for name in one["columns"])
    need(names == sorted(record["columns"]) == sorted(columns), "a column is missing, or twice")
    need(not toml or names == sorted(tomllib.loads(toml)["columns"]), "the TOML has other columns")
    clear = [f"Not covered: {repr(text)[1:-1]}" for text in record["not_covered"]]  # no noise
    if None in columns.values():
        return need(record["total"] is None, "a column has no bound, the record has one"), clear
    largest = sorted(columns.values(), reverse=True)[: count(record["columns_per_row"], 1)]
    needed = sum(largest) + sum(level(scores["level"]) for scores in record["stated"])
    need(needed <= level(record["total"]), f"what a row sends adds up to {needed}")
    return record["total"], clear


if __name__ == "__main__":
    try:
        total, clear = check(*(Path(name).read_text("utf-8") for name in sys.argv[1:]))
    except BAD as error:
        sys.exit(f"The certificate does not hold: {error}.")
    print(f"Every pair is covered. One person's record: {total or 'no bound'}", *clear, sep="\n")
