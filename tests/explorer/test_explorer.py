"""The explorer without a browser: its figures, its messages, and its access control."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opboost as op
from opboost.config.columns_file import parse
from opboost.errors import ConfigError
from opboost.explorer import pages
from opboost.explorer.charts import view
from opboost.explorer.choice import DEFAULTS, KINDS, Form, chosen
from opboost.explorer.choice_as_toml import as_toml
from opboost.explorer.equal_loss import level, matched
from opboost.explorer.log_distributions import log_rows
from opboost.explorer.mechanism_figures import figures, person
from opboost.explorer.server import Site
from opboost.explorer.trial_process import TrialProgress
from opboost.mechanisms import registry
from opboost.mechanisms.mechanism import distribution_of
from opboost.mechanisms.one_level import OneLevel
from opboost.plots.svg import draw
from tests.support.pages import live

GRID = op.Domain(-2, 9)


class OwnMechanism(OneLevel):
    """A mechanism for which the explorer has no closed form."""

    def guarantee(self):
        return op.GlobalMap(self.domain, self.epsilon).guarantee()

    def _build_distribution(self):
        return distribution_of(op.GlobalMap(self.domain, self.epsilon))


def mechanisms(grid, epsilon):
    return [
        op.ClampMap(grid, epsilon),
        op.GlobalMap(grid, epsilon),
        op.AdjMap(grid, epsilon, theta=5, alpha=0.7),
        op.AdjMap(grid, eps_prt=epsilon, eps_ner=epsilon / 3, theta=(grid.L + 1, grid.L + 4)),
        op.LocalMap(grid, epsilon=epsilon, theta=4),
        op.RandomizedResponse(grid, epsilon),
        op.Piecewise(grid, epsilon),
        op.WindowMap(grid, epsilon),
        op.WindowMap(grid, epsilon, near=epsilon / 2.5, width=1),
        op.WindowMap(grid, epsilon, width=4),
        OwnMechanism(grid, epsilon),
    ]


ALL = [m for e in (0.05, 0.64, 4.0) for m in mechanisms(GRID, e)]


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_the_page_draws_the_distribution_that_is_sampled(mechanism):
    drawn = np.exp(log_rows(mechanism, GRID.values()))
    np.testing.assert_allclose(drawn, mechanism.transition_matrix(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_loss_order_and_level_are_those_of_the_certificate(mechanism):
    lines = {line.distance: line for line in mechanism.certificate().lines}
    for step in figures(mechanism).steps:
        line = lines[step.distance]
        assert step.gamma == pytest.approx(mechanism.gamma(step.distance), rel=1e-9)
        if step.loss is None:
            assert line.loss == np.inf
        else:
            assert step.loss == pytest.approx(line.loss, rel=1e-9)
            assert step.bound >= step.loss * (1 - 1e-12)
    if np.isfinite(mechanism.exact_epsilon()):
        assert level(mechanism, "cell") == pytest.approx(mechanism.exact_epsilon(), rel=1e-9)
        assert level(mechanism, "whole") == pytest.approx(mechanism.loss(GRID.L, GRID.R), rel=1e-9)


@pytest.mark.parametrize("measure", ["cell", "whole"])
@pytest.mark.parametrize("mechanism", mechanisms(GRID, 1.0), ids=repr)
def test_rivals_have_the_same_exact_level(mechanism, measure):
    same = matched(mechanism, 0.5, measure)
    if isinstance(mechanism, op.LocalMap):
        exact = same.loss(GRID.L, GRID.L + (1 if measure == "cell" else 3))
    else:
        exact = same.exact_epsilon() if measure == "cell" else same.loss(GRID.L, GRID.R)
    assert exact == pytest.approx(0.5, rel=1e-6)


def test_a_level_that_no_mechanism_reaches_is_said_and_not_guessed():
    assert matched(op.ClampMap(GRID, 1.0), 1e9, "cell") is None
    assert matched(op.ClampMap(GRID, 1.0), 0.0, "cell") is None


@given(
    st.sampled_from(range(len(ALL))), st.integers(GRID.L, GRID.R), st.sampled_from([0.5, 0.9, 0.99])
)
def test_a_credible_interval_is_the_shortest_that_holds_its_share(which, cell, share):
    mechanism = ALL[which]
    seen = person(mechanism, cell, share)
    distribution = mechanism.transition_matrix()
    row = distribution[cell - GRID.L]
    ties = np.flatnonzero(np.isclose(row, row.max(), rtol=1e-9))
    output = min(ties, key=lambda y: abs(y - (cell - GRID.L)))
    assert seen.arrived == GRID.L + output
    belief = distribution[:, output] / distribution[:, output].sum()
    np.testing.assert_allclose(seen.belief, belief, atol=1e-9)
    first, last = (c - GRID.L for c in seen.interval)
    assert belief[first : last + 1].sum() >= share - 1e-9
    for begin in range(len(belief)):
        assert belief[begin : begin + last - first].sum() < share + 1e-9


BOUNDS = [("age", "17", "90")]


@pytest.mark.parametrize(
    ("fields", "columns", "control", "words"),
    [
        ({"epsilon": "much"}, BOUNDS, "epsilon", "epsilon must be a number; got 'much'"),
        ({"epsilon": "-1"}, BOUNDS, "epsilon", "must lie between 1e-9 and 1000"),
        ({"epsilon": "51"}, BOUNDS, "epsilon", "up to 50"),
        ({"cells": "1"}, BOUNDS, "cells", "Domain needs L < R"),
        ({"cells": "5000"}, BOUNDS, "cells", "up to 1,024 cells; got 5,000"),
        ({"cells": "ten"}, BOUNDS, "cells", "must be a whole number; got 'ten'"),
        ({"kind": "magic"}, BOUNDS, "kind", "kind must be one of"),
        ({"kind": "adj-map", "theta": "11"}, BOUNDS, "theta", "between 1 and 10"),
        ({"kind": "adj-map", "alpha": "0"}, BOUNDS, "alpha", "alpha must lie between"),
        ({"kind": "window-map", "total": "x"}, BOUNDS, "total", "total must be a number; got 'x'"),
        ({"kind": "window-map", "total": ""}, BOUNDS, "total", "total must be a number; got ''"),
        ({"kind": "window-map", "total": "51"}, BOUNDS, "total", "up to 50"),
        ({"kind": "window-map", "near": "5"}, BOUNDS, "near", "must not exceed total"),
        ({"kind": "window-map", "near": "x"}, BOUNDS, "near", "near must be a number"),
        ({"kind": "window-map", "width": "10"}, BOUNDS, "width", "from 0 to 9"),
        ({"kind": "window-map", "width": "1.5"}, BOUNDS, "width", "must be a whole number"),
        ({"value": "91"}, BOUNDS, "value", "between the bounds 17 and 90; got 91"),
        ({"match": "x"}, BOUNDS, "match", "'cell' or 'whole'"),
        ({"look": "x"}, BOUNDS, "look", "whole number"),
        ({}, [("age", "90", "17")], "upper-0", "Did you mean (17.0, 90.0)?"),
        ({}, [("age", "x", "90")], "lower-0", "The lower bound must be a number; got 'x'"),
        ({}, [("age", "17", "")], "upper-0", "must be a number; got ''"),
        ({}, [("", "17", "90")], "column-0", "needs a name"),
        ({}, [*BOUNDS, *BOUNDS], "column-1", "'age' occurs twice"),
        ({}, [("age", "", "")], "look", "No column has bounds yet"),
    ],
)
def test_a_wrong_input_is_reported_beside_its_control(fields, columns, control, words):
    choice, problems = chosen(Form.of(fields, columns))
    assert choice is None
    assert words in problems[control]
    part = pages.mechanism_part(Form.of(fields, columns))
    assert part.html is None
    assert part.summary.startswith("Not drawn: ")


def test_what_has_no_meaning_for_a_mechanism_is_not_looked_at():
    without = {"theta": "x", "alpha": "y", "total": "z", "near": "z", "width": "z"}
    assert chosen(Form.of({"kind": "clamp-map", **without}, BOUNDS))[1] == {}
    assert chosen(Form.of({"kind": "window-map", "epsilon": "x", "theta": "x"}, BOUNDS))[1] == {}


@pytest.mark.parametrize("near", ["", "0.5"])
@pytest.mark.parametrize("width", ["", "0", "2"])
def test_a_window_map_is_chosen_by_total_near_and_width(near, width):
    fields = {"kind": "window-map", "cells": "16", "total": "2", "near": near, "width": width}
    choice, problems = chosen(Form.of(fields, BOUNDS))
    assert not problems
    expected = op.WindowMap(
        op.Domain(1, 16), 2.0, float(near) if near else None, int(width) if width else None
    )
    assert choice.mechanism == expected
    assert choice.guarantee().total == 2.0
    text = as_toml(choice)
    assert ("near" in text, "width" in text) == (bool(near), bool(width))
    assert parse(text, "b.toml").private[0].mechanism == expected
    shown = view(choice)
    assert {r.kind for r in shown.rivals if r.figures is not None} == set(KINDS)


def test_every_parameter_of_every_kind_has_a_control():
    asked = {p.name for e in registry.on_grids() for p in e.toml_parameters()}
    assert asked - {"eps_prt", "eps_ner", "clipped"} <= set(DEFAULTS)
    page = pages.mechanism_page(
        Form.of({}, BOUNDS),
        ledger=None,
        table="",
        names=[],
        sample=1,
        progress=TrialProgress(),
        has_job=False,
    )
    shown = dict(re.findall(r'data-only="([^"]*)">\s*<label for="(\w+)"', page))
    assert {name: kinds for kinds, name in shown.items()}["theta"] == "adj-map local-map"
    window = [
        name
        for kinds, name in re.findall(r'data-only="([^"]*)">\s*<label for="(\w+)"', page)
        if kinds == "window-map"
    ]
    assert window == ["total", "near", "width"]


names = st.text(min_size=1, max_size=12).filter(lambda n: n.isprintable() and n == n.strip())


@given(
    st.sampled_from(sorted(KINDS)),
    st.floats(1e-6, 40).map(repr),
    st.lists(names, min_size=1, max_size=3, unique=True),
    st.floats(-1e12, 1e12),
    st.floats(1e-3, 1e9),
)
def test_toml_says_what_was_chosen(kind, epsilon, columns, lower, width):
    rows = [(name, repr(lower), repr(lower + width)) for name in columns]
    form = Form.of({"kind": kind, "epsilon": epsilon, "theta": "3"}, [*rows, ("\\left ", "", "")])
    choice, problems = chosen(form)
    if problems:  # bounds that are the same float
        assert set(problems) <= {f"upper-{i}" for i in range(3)} | {"look"}
        return
    plan = parse(as_toml(choice), "b.toml")
    assert [c.name for c in plan.private] == columns
    assert all(c.mechanism == choice.mechanism for c in plan.private)
    assert [c.mapping for c in plan.private] == list(choice.mappings.values())
    assert plan.drop == ("\\left ",)
    assert plan.guarantee().total == choice.guarantee().total


@pytest.mark.parametrize("cells", ["2", "3", "60", "1024"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_mechanism_is_drawn_on_every_size_of_grid(kind, cells):
    form = Form.of({"kind": kind, "cells": cells, "epsilon": "0.3"}, BOUNDS)
    part = pages.mechanism_part(form)
    assert part.html.count("<svg viewBox") >= 5
    assert "nan" not in part.html
    assert "inf" not in re.sub(r"<[^>]*>|in figures|infinite", "", part.html)


def test_text_from_a_form_cannot_become_markup():
    form = Form.of({}, [("<script>x</script>", "1", "2")])
    part = pages.mechanism_part(form)
    assert "<script>" not in part.html
    assert "&lt;script&gt;" in part.html
    choice, _ = chosen(form)
    assert "<script>" not in "".join(draw(c) for c in view(choice).charts.values())


def ask(address, path="", method="GET", body=None, **headers):
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    try:
        connection.request(method, path or parts.path, body, headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def address():
    with live(Site()) as found:
        yield found


def test_only_the_whole_address_opens_the_page(address):
    path = urlsplit(address).path
    answer, body = ask(address)
    assert answer.status == 200
    assert "Start with one number" in body
    for wrong in (
        "/",
        "/x/",
        path[:-2] + "/",
        path[:-1],
        "/%C3%A9/",
        f"/x{path}",
        "/static/explorer.js",
    ):
        answer, body = ask(address, wrong)
        assert answer.status == 403, wrong
        assert "The token is wrong" in body
        assert answer.headers["content-security-policy"]


def test_another_host_name_is_refused(address):
    port = urlsplit(address).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert ask(address, host=host)[0].status == 403
    assert ask(address, host=f"localhost:{port}")[0].status == 200


def test_every_answer_forbids_what_is_not_ours(address):
    path = urlsplit(address).path
    for where in (
        "",
        f"{path}mechanism/part",
        f"{path}record/part",
        f"{path}static/explorer.css",
        f"{path}nothing",
        "/x/",
    ):
        headers = ask(address, where)[0].headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers
        assert "server" not in headers


def test_a_page_of_another_site_cannot_start_anything(address):
    start = f"{urlsplit(address).path}trial/start"
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert ask(address, start, "POST", "label=y", **headers)[0].status == 403
    answer, body = ask(address, start, "POST", "label=y", origin=address.rsplit("/", 2)[0])
    assert answer.status == 200
    assert "There is no table" in json.loads(body)["problem"]
    assert ask(address, start, "GET")[0].status == 405


def test_strange_requests_get_a_sentence_and_no_defect(address):
    path = urlsplit(address).path
    many = urlencode([("column", "c")] * 6000)
    assert ask(address, f"{path}mechanism/part?{many}")[0].status in (400, 431)
    for query in ("epsilon=%FF&cells=%00", "column=%0a&lower=1&upper=2", "look=-5", "a[]=1&&=;"):
        answer, body = ask(address, f"{path}mechanism/part?{query}")
        assert answer.status == 200, query
        json.loads(body)
    assert ask(address, f"{path}static/..%2f__init__.py")[0].status == 404
    assert ask(address, f"{path}run")[0].status == 404


def test_what_cannot_be_served_is_reported_before_a_page_opens(tmp_path):
    with pytest.raises(ConfigError, match="There is no job in"):
        Site.of(None, None, tmp_path)
    (tmp_path / "b.toml").write_text("[columns.a]\nbounds = [1, 2]\n")
    with pytest.raises(ConfigError, match=r"has no \[ledger\]"):
        Site.of(None, tmp_path / "b.toml", None)


def test_the_verb_prints_an_address_that_answers_and_ends_when_told(tmp_path):
    (tmp_path / "b.toml").write_text("[columns.age]\nbounds = [17, 90]\n")
    command = [sys.executable, "-m", "opboost", "explore", "--no-open", "--format", "json"]
    command += ["-c", "b.toml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        try:
            told = "".join(process.stdout.readline() for _ in range(3))
            address = json.loads(told)["address"]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
            answer, body = ask(address)
            assert answer.status == 200
            assert "<b>b.toml</b> declares one column" in body
        finally:
            process.terminate()
        assert process.wait(timeout=20) in (0, 143, -15)


def test_defaults_of_the_form_are_all_its_fields(address):
    _, body = ask(address, f"{urlsplit(address).path}mechanism")
    found = set(re.findall(r'<(?:input|select)[^>]* name="(\w+)"', body))
    assert found == {*DEFAULTS, "column", "lower", "upper"}
