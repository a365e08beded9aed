"""Open a ledger and release tables through it."""

from __future__ import annotations

import numpy as np
import pandas as pd

import opboost as op
from opboost.columns.row_ids import id_bytes
from opboost.ledger import Caps, Drawing, Ledger

GRID = op.Domain(1, 10)
AGE = op.PrivateColumn("age", op.NumericMapping(GRID, (0, 100)), op.ClampMap(GRID, 0.5))
CITY = op.PrivateColumn("city", None, op.UnaryEncoding([*"abcdefghij"], 1.0))
WIDE = op.PrivateColumn(
    "wide",
    op.NumericMapping(op.Domain(-(2**30), 2**30), (0, 100)),
    op.ClampMap(op.Domain(-(2**30), 2**30), 1e-8),
)
GAPS = op.PrivateColumn(
    "gaps", op.NumericMapping(GRID, (0, 100)), op.ClampMap(GRID, 0.5), missing=op.Flag(1.0, 50)
)
FINER = op.PrivateColumn("age", AGE.mapping, op.ClampMap(GRID, 0.25))
LEVEL = AGE.guarantee().total  # 4.5


def opened(home, *, new=False, ids=None, changed=None, **caps):
    place = (home / "ledger", home / "keys" / "ledger.key")
    return Ledger(*place, Caps(**caps), new=new, ids=ids, changed=changed)


def table(rows=200, seed=0, **columns):
    rng = np.random.default_rng(seed)
    made = {"id": np.arange(rows), "age": rng.uniform(0, 100, rows)}
    return pd.DataFrame({**made, **columns})


def release(ledger, people, columns=(AGE,), *, to="bank", job="1", names=None, known_by="", **more):
    names = names or [str(c.name) for c in columns]
    ids = id_bytes([people["id"].tolist()], ["id"], spelling=ledger.ids)
    more["people"] = known_by
    with Drawing(ledger, columns, names, job=job, recipient=to, **more) as drawing:
        out = drawing.draw(ids, [c.prepare(people) for c in columns])
    return out, drawing


def values(out):
    return [c.values.tolist() for columns in out for c in columns]
