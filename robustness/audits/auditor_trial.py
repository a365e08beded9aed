"""A trial of the auditor: sound mechanisms must pass, and faulty ones must be caught."""

import math
from dataclasses import dataclass

import opboost as op
from robustness.audits.faulty_mechanisms import BROKEN, GRID, WIDE

SOUND = {
    "Clamp-map, 10 cells": op.ClampMap(GRID, 0.64),
    "Clamp-map, 100 cells": op.ClampMap(WIDE, 0.08),
    "Clamp-map, 2⁴⁰ cells": op.ClampMap(op.Domain(1, 2**40), 1e-6),
    "Global-map, 10 cells": op.GlobalMap(GRID, 0.64),
    "Global-map, 1,000 cells": op.GlobalMap(op.Domain(1, 1000), 0.1),
    "Adj-map, 10 cells": op.AdjMap(GRID, 0.64, theta=2),
    "Adj-map, 1,000 cells": op.AdjMap(op.Domain(1, 1000), 0.1, theta=10),
    "Local-map, 10 cells": op.LocalMap(GRID, epsilon=0.64, theta=5),
    "Local-map, 1,000 cells": op.LocalMap(op.Domain(1, 1000), epsilon=0.1, theta=20),
    "discrete Laplace": op.DiscreteLaplace(0.5),
    "Adj-Laplace": op.AdjLaplace(eps_prt=1.0, eps_ner=0.1, theta=10),
    "randomised response, 10 cells": op.RandomizedResponse(GRID, 1.0),
    "randomised response, 1,000 cells": op.RandomizedResponse(op.Domain(1, 1000), 4.0),
    "piecewise, clipped": op.Piecewise(GRID, 1.0),
    "piecewise": op.Piecewise(GRID, 1.0, clipped=False),
    "Window-map, 16 cells": op.WindowMap(op.Domain(0, 15), 2.0, near=0.5),
    "Window-map, 1,000 cells, unclipped":
        op.WindowMap(op.Domain(1, 1000), 2.0, near=0.05, clipped=False),
    "unary encoding, optimised": op.UnaryEncoding(["north", "south", "east"], 1.0),
    "unary encoding, symmetric, 20 categories": op.UnaryEncoding(range(20), 2.0, "sue"),
    "subset selection, 10 categories": op.SubsetSelection(range(10), 1.0),
    "Window-map with missing values": op.WindowWithMissing(op.WindowMap(GRID, 1.0)),
    "with missing values": op.WithMissing(op.ClampMap(GRID, 0.64), 1.0, 5),
    "two of three columns per row": op.Record(
        {"age": op.ClampMap(GRID, 0.32), "pay": op.GlobalMap(GRID, 0.32),
         "city": op.ClampMap(GRID, 0.1)},
        op.Budget.sampled(2)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tried:
    """One audit of a sound mechanism: the finding, and how close to the exact loss it came."""

    name: str
    findings: tuple[str, ...]
    nearest: float


def attacked(name: str, samples: int, pairs: int = 6) -> Tried:
    found = op.audit(SOUND[name], samples=samples, pairs=pairs)
    nearest = max(p.reached for p in found.pairs if math.isfinite(p.exact))
    return Tried(name, found.findings, nearest)


def caught(name: str, samples: int) -> bool:
    """Return whether the auditor finds the fault of a faulty mechanism."""
    pairs = 8 if isinstance(BROKEN[name], op.Record) else 45
    return not op.audit(BROKEN[name], samples=samples, pairs=pairs).sound
