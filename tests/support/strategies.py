"""Hypothesis strategies that several test files share."""

from __future__ import annotations

import hypothesis.strategies as st

import opboost as op

levels = st.floats(0.005, 3.0, allow_nan=False)


@st.composite
def domains(draw, smallest=2, largest=14):
    lower = draw(st.integers(-20, 20))
    return op.Domain(lower, lower + draw(st.integers(smallest, largest)) - 1)


@st.composite
def thetas(draw, domain):
    if draw(st.booleans()):
        return draw(st.integers(1, domain.size))
    cells = st.integers(domain.L + 1, domain.R)
    return tuple(sorted(draw(st.sets(cells, min_size=0, max_size=4))))


@st.composite
def adj_maps(draw, domain):
    theta = draw(thetas(domain))
    if isinstance(theta, int) and draw(st.booleans()):
        alpha = draw(st.floats(0.1, 10))
        return op.AdjMap(domain, draw(levels), theta=theta, alpha=alpha)
    return op.AdjMap(domain, eps_prt=draw(levels), eps_ner=draw(levels), theta=theta)


@st.composite
def window_maps(draw, domain):
    total = draw(levels)
    near = draw(st.none() | st.floats(0.05, 1.0).map(lambda share: max(share * total, 0.001)))
    width = draw(st.none() | st.integers(0, domain.span))
    return op.WindowMap(domain, total, near, width, clipped=draw(st.booleans()))


@st.composite
def mechanisms(draw, domain=None):
    """Draw any mechanism on a grid, uneven partitions included."""
    grid = draw(domains()) if domain is None else domain
    kind = draw(st.sampled_from(["global", "clamp", "local", "adj", "grr", "piecewise", "window"]))
    if kind == "adj":
        return draw(adj_maps(grid))
    if kind == "window":
        return draw(window_maps(grid))
    if kind == "local":
        return op.LocalMap(grid, epsilon=draw(levels), theta=draw(thetas(grid)))
    plain = {
        "global": op.GlobalMap,
        "clamp": op.ClampMap,
        "grr": op.RandomizedResponse,
        "piecewise": op.Piecewise,
    }
    return plain[kind](grid, draw(levels))
