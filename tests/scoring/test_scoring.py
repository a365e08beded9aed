"""Scoring over HTTP: the scores of ``predict``, or a status and one sentence."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import date

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.errors import ConfigError
from opboost.scoring import score_server
from opboost.scoring.api_key import Access, check_listening, read_key
from opboost.scoring.score_server import Limits, application, listening, tls_context
from opboost.scoring.scorer import Scorer
from tests.support.asking import ask, post

CITIES = ["north", "south", None]
SECRET = 31337.25
"""A value that no answer, log or metric may contain."""


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 200
    return pd.DataFrame(
        {
            "pay": rng.normal(3000, 1000, n).round(2),
            "city": rng.choice(np.array(CITIES, dtype=object), n),
            "born": [f"{y}-05-31" for y in rng.integers(1950, 2000, n)],
            "tenure": rng.uniform(0, 20, n).round(1),
            "colour": rng.choice(["red", "blue"], n),
        }
    )


@pytest.fixture(scope="module")
def model(people):
    grid = op.Domain(1, 8)
    mechanism = {
        "pay": op.ClampMap(grid, 3.0),
        "born": op.ClampMap(grid, 3.0),
        "city": op.UnaryEncoding(CITIES, 4.0),
    }
    bounds = {"pay": (0, 6000), "born": op.Dates(date(1950, 1, 1), date(2000, 1, 1))}
    clf = op.OpBoostClassifier(
        mechanism, bounds=bounds, booster_params={"n_estimators": 5}, denoise=False
    )
    return clf.fit(people, np.where(people["pay"] + 100 * people["tenure"] > 4000, "yes", "no"))


@pytest.fixture(scope="module")
def app(model):
    scorer = Scorer(model, "credit")
    scorer.warm_up()
    return application(scorer, Limits(rows=250, bytes=50_000), Access(None, local=True))


def rows_of(people):
    return json.loads(people.to_json(orient="records"))


def tensors(people):
    types = {"pay": "FP64", "tenure": "FP32"}
    return [
        {"name": n, "shape": [len(people)], "datatype": types.get(n, "BYTES"), "data": list(v)}
        for n, v in people.astype(object).where(people.notna(), None).items()
    ]


def test_plain_json_gives_the_predictions_of_the_model(app, model, people):
    status, found = post(app, "/score", {"rows": rows_of(people)})
    assert status == 200
    np.testing.assert_array_equal(found["probabilities"], model.predict_proba(people))
    assert found["predictions"] == model.predict(people).tolist()
    assert found["classes"] == ["no", "yes"]


def test_a_single_row_a_new_colour_and_a_gap_of_an_own_column(app, model, people):
    one = people[:1].assign(colour="green", tenure=np.nan)
    row = {**rows_of(one)[0], "more": "is passed over"}
    status, found = post(app, "/score", {"rows": [row]})
    assert (status, found["predictions"]) == (200, model.predict(one).tolist())


def test_the_open_inference_protocol(app, model, people):
    path = "/v2/models/credit"
    status, found = post(app, f"{path}/infer", {"id": "7", "inputs": tensors(people)})
    assert (status, found["id"], found["model_name"]) == (200, "7", "credit")
    label, chance = found["outputs"]
    assert (label["name"], label["datatype"], label["shape"]) == ("prediction", "BYTES", [200])
    assert label["data"] == model.predict(people).tolist()
    assert chance["shape"] == [200, 2]
    np.testing.assert_array_equal(chance["data"], model.predict_proba(people).ravel())
    asked = {"inputs": tensors(people[:2]), "outputs": [{"name": "probability"}]}
    asked["inputs"][0] |= {"shape": [2, 1], "data": [[v] for v in asked["inputs"][0]["data"]]}
    status, found = post(app, f"{path}/infer", asked)
    assert (status, [o["name"] for o in found["outputs"]]) == (200, ["probability"])
    _, _, about = ask(app, "GET", path)
    assert {i["name"]: i["datatype"] for i in about["inputs"]} == {
        "pay": "FP64",
        "city": "BYTES",
        "born": "BYTES",
        "tenure": "FP64",
        "colour": "BYTES",
    }
    assert about["parameters"]["record_total"] == model.guarantee_.total
    answers = {
        "/v2": ("name", "opboost"),
        "/v2/health/live": ("live", True),
        "/v2/health/ready": ("ready", True),
        f"{path}/ready": ("ready", True),
    }
    for page, (key, value) in answers.items():
        status, _, found = ask(app, "GET", page)
        assert (status, found[key]) == (200, value)


WRONG = [
    ("pay", "much", 422, "Column 'pay' takes numbers, and rows[1] holds text."),
    ("pay", None, 422, "Column 'pay' takes no missing values, and rows[1] holds null."),
    ("pay", [1], 422, "Column 'pay' takes numbers, and rows[1] holds a list."),
    pytest.param(
        "pay", 10**400, 422, "Column 'pay' takes numbers that 64 bits can hold", id="large"
    ),
    (
        "born",
        "yesterday",
        422,
        "Column 'born' takes dates as text, such as 2024-05-31, and rows[1]",
    ),
    ("born", 11, 422, "and rows[1] holds a number."),
    ("city", "atlantis", 422, "takes its declared categories ('north', 'south'), and rows[1]"),
    ("tenure", "long", 422, "Column 'tenure' takes numbers, or dates as text if it held dates"),
    ("colour", 3, 422, "Column 'colour' takes text, and rows[1] holds a number."),
    ("colour", {}, 422, "and rows[1] holds an object."),
]


@pytest.mark.parametrize(("column", "value", "status", "words"), WRONG)
def test_a_value_that_does_not_fit_is_one_sentence(app, people, column, value, status, words):
    rows = rows_of(people[:2])
    rows[1][column] = value
    found, answer = post(app, "/score", {"rows": rows})
    assert (found, list(answer)) == (status, ["error"])
    assert words in answer["error"]
    assert "atlantis" not in answer["error"]


MALFORMED = [
    (b"{", 400, "The request is not JSON in UTF-8."),
    (b"\xff", 400, "The request is not JSON in UTF-8."),
    (b"[" * 5000, 400, "The request is not JSON in UTF-8."),
    (b"[]", 400, "The request must be a JSON object."),
    (b"{}", 400, 'The request needs "rows"'),
    (b'{"rows": []}', 400, "The request has no rows."),
    (b'{"rows": [3]}', 400, "rows[0] is not an object with columns by name."),
    (b'{"rows": [{"pay": NaN}]}', 400, "JSON has no NaN. Write null for a missing value."),
    (b'{"rows": [{"pay": 1}]}', 422, "is missing in rows[0]. The model needs it in every row."),
    (json.dumps({"rows": [{}] * 251}).encode(), 413, "has 251 rows, and the limit is 250."),
]


@pytest.mark.parametrize(("body", "status", "words"), MALFORMED)
def test_a_request_that_is_none_is_one_sentence(app, body, status, words):
    found, answer = post(app, "/score", body)
    assert (found, list(answer)) == (status, ["error"])
    assert words in answer["error"]


TENSORS = [
    ({"inputs": 3}, 400, 'The request needs "inputs"'),
    ({"inputs": []}, 422, "is missing: the model needs a tensor of that name"),
    ({"datatype": "FP8"}, 400, "needs a datatype"),
    ({"shape": [2, 3]}, 400, "its shape is [n] or [n, 1]"),
    ({"shape": [1], "data": [1.0]}, 400, "different numbers of rows"),
    ({"shape": [300], "data": [1.0] * 300}, 413, "has 300 rows, and the limit is 250"),
    ({"data": 3}, 400, 'needs "shape" and "data" as lists'),
    ({"parameters": {"binary_data_size": 8}}, 400, "takes JSON tensors only"),
    ({"data": ["x", "y"]}, 422, "Column 'pay' takes numbers, and data[0] holds text."),
    ({"outputs": [{"name": "nothing"}]}, 400, "The model's outputs are prediction, probability."),
]


@pytest.mark.parametrize(("change", "status", "words"), TENSORS)
def test_a_tensor_that_does_not_fit_is_one_sentence(app, people, change, status, words):
    asked = {"inputs": tensors(people[:2])}
    if set(change) & {"inputs", "outputs"}:
        asked |= change
    else:
        asked["inputs"][0] |= change
    found, answer = post(app, "/v2/models/credit/infer", asked)
    assert (found, list(answer)) == (status, ["error"])
    assert words in answer["error"]


def test_bodies_are_bounded_whatever_their_head_says(app):
    for more in ({"headers": {"content-length": "900000"}}, {}):
        status, headers, found = ask(app, "POST", "/score", pieces=[b" " * 30_000] * 3, **more)
        assert (status, headers["connection"]) == (413, "close")
        assert found["error"].startswith("The request is larger than 50,000 bytes.")


def test_a_body_that_does_not_come_is_given_up(app, monkeypatch):
    monkeypatch.setattr(score_server, "BODY_TIMEOUT_SECONDS", 0.05)

    async def slow(scope, receive, send):
        async def never():
            await asyncio.sleep(9)

        await app(scope, never, send)

    status, _, found = ask(slow, "POST", "/score", b"{}")
    assert (status, found["error"][:28]) == (408, "The request did not arrive w")


def test_other_pages_models_and_methods(app):
    assert ask(app, "GET", "/nothing")[0] == 404
    status, found = post(app, "/v2/models/other/infer", {"inputs": []})
    assert (status, found["error"]) == (404, "No such model. This server has 'credit'.")
    status, headers, _ = ask(app, "GET", "/score")
    assert (status, headers["allow"]) == (405, "POST")


def test_metrics_count_routes_and_rows_and_hold_nothing_of_a_request(model, people, capfd):
    app = application(Scorer(model, "credit"), Limits(), Access(None, local=True))
    rows = rows_of(people[:3].assign(pay=SECRET))
    post(app, "/score", {"rows": rows})
    post(app, "/score", {"rows": [{**rows[0], "city": "atlantis"}]})
    ask(app, "GET", "/people/atlantis")
    ask(app, "GET", "/v2/models/atlantis")
    _, _, text = ask(app, "GET", "/metrics")
    assert 'opboost_score_requests_total{route="/score",status="200"} 1.0' in text
    assert 'opboost_score_requests_total{route="/score",status="422"} 1.0' in text
    assert 'opboost_score_requests_total{route="other",status="404"} 1.0' in text
    assert "opboost_score_rows_total 3.0" in text
    said = text + "".join(capfd.readouterr())
    assert "atlantis" not in said
    assert str(SECRET) not in said


def test_a_defect_is_named_without_its_message(model, monkeypatch, capfd):
    scorer = Scorer(model, "credit")
    monkeypatch.setattr(scorer, "score", lambda *_: {}[SECRET])
    app = application(scorer, Limits(), Access(None, local=True))
    row = dict.fromkeys(scorer.names)
    with pytest.raises(KeyError):  # starlette raises it again; the server stays silent
        post(app, "/score", {"rows": [row]})
    told = capfd.readouterr().err
    assert "KeyError, a defect of OpBoost." in told
    assert str(SECRET) not in told


# Access


def test_a_key_is_asked_for_everywhere_but_for_probes(model):
    app = application(Scorer(model, "credit"), Limits(), Access(b"k" * 16, local=False))
    for page in ("/v2", "/metrics", "/v2/models/credit", "/score"):
        for header in ({}, {"authorization": f"Bearer {'x' * 16}"}, {"authorization": "k" * 16}):
            status, headers, found = ask(app, "GET", page, headers=header)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert found["error"].startswith("The key is missing or wrong.")
    right = {"authorization": f"Bearer {'k' * 16}", "host": "scores.example"}
    assert ask(app, "GET", "/v2", headers=right)[0] == 200
    assert ask(app, "GET", "/v2/health/ready")[0] == 200


def test_without_a_key_a_foreign_host_is_refused(app):
    for host, status in (("evil.example", 403), ("localhost:8080", 200), ("[::1]:80", 200)):
        assert ask(app, "GET", "/v2", headers={"host": host})[0] == status


def test_where_the_key_comes_from(tmp_path, monkeypatch):
    monkeypatch.delenv("OPBOOST_SCORE_KEY", raising=False)
    assert read_key(None) is None
    file = tmp_path / "key"
    file.write_text("s" * 20 + "\n")
    assert read_key(file) == b"s" * 20
    for text in ("short", "s p a c e " * 3, ""):
        file.write_text(text)
        with pytest.raises(ConfigError, match="needs 16 or more printable ASCII") as caught:
            read_key(file)
        assert not text or text not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_key(tmp_path / "none")
    monkeypatch.setenv("OPBOOST_SCORE_KEY", "e" * 16)
    assert read_key(None) == b"e" * 16
    with pytest.raises(ConfigError, match="not from both"):
        read_key(file)


def test_listening_elsewhere_needs_a_key_or_a_loud_option():
    with pytest.raises(ConfigError, match="--insecure-without-key"):
        check_listening("0.0.0.0", None, open_to_all=False)
    check_listening("0.0.0.0", None, open_to_all=True)
    check_listening("0.0.0.0", b"k" * 16, open_to_all=False)
    check_listening("::1", None, open_to_all=False)


def test_tls_files_that_cannot_be_used(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    with pytest.raises(ConfigError, match="TLS needs both files"):
        tls_context(cert, None)
    with pytest.raises(ConfigError, match=r"cert\.pem does not exist"):
        tls_context(cert, key)
    cert.write_text("no certificate")
    key.write_text("no key")
    with pytest.raises(ConfigError, match="cannot be used"):
        tls_context(cert, key)


def test_connections_send_small_answers_at_once():
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
