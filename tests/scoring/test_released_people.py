"""People in stored releases are scored by ID with the posterior, without asking a party."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost import scale
from opboost.config import parse
from opboost.errors import ConfigError, DataError
from opboost.files.read_tables import pieces
from opboost.scoring.api_key import Access
from opboost.scoring.released_people import ReleasedPeople
from opboost.scoring.score_server import Limits, application
from opboost.scoring.scorer import Scorer
from opboost.storage import atomic_files
from opboost.training.released_columns import from_sample
from tests.support.asking import ask, post

TOML = """
[mechanism]
kind = "clamp-map"
epsilon = 1.5
[columns.pay]
bounds = [0, 6000]
[columns.city]
categories = ["north", "south", "east"]
[table]
public = ["customer"]
[align]
id = "customer"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a stored release of sixty people, and a model of such columns."""
    rng = np.random.default_rng(0)
    n = 400
    table = pd.DataFrame(
        {
            "customer": [f"C-{i}" for i in range(n)],
            "pay": rng.normal(3000, 1000, n),
            "city": rng.choice(["north", "south", "east"], n),
        }
    )
    plan = parse(TOML, "b.toml")
    folder = tmp_path_factory.mktemp("released")
    table[:60].to_parquet(folder / "people.parquet")
    scale.desensitize(folder / "people.parquet", plan, folder / "out", ids="customer")
    tenure = rng.uniform(0, 20, n)
    model = op.OpBoostClassifier(
        plan.private, denoise=True, booster_params={"n_estimators": 5}, random_state=0
    ).fit(table[["pay", "city"]].assign(tenure=tenure), table["pay"] + 100 * tenure > 4000)
    return folder / "out", model


def app_of(folder, model, ids=("customer",)):
    scorer = Scorer(model, "credit", released=ReleasedPeople([folder], ids, model))
    return application(scorer, Limits(), Access(None, local=True))


def expected(folder, model, rows, tenure):
    """Return the model's scores of these rows of the stored release, found without an index."""
    (part,) = folder.glob("part-*.parquet")
    table = next(pieces(part)).take(rows)
    released = {
        c.name: [op_column(table, str(name)) for name in c.release_names()]
        for c in model.private_columns_
    }
    columns = from_sample(model.private_columns_, released, 1.0)
    own = np.array(tenure, dtype=np.float32)[:, None]
    assert model.trained_model_.posterior is not None
    return model.trained_model_.of_released_rows(own, columns)


def op_column(table, name):
    from opboost.columns.dataframes import OutColumn

    return OutColumn(name, table.column(name).to_numpy())


def test_people_are_scored_through_the_posterior_by_their_id(made):
    folder, model = made
    app = app_of(folder, model)
    wanted, tenure = [7, 0, 59, 7], [3.0, 12.5, 1.0, 19.0]
    spelt = ["C-7", " c-0 ", "Ｃ-59", "C-7"]  # the spelling of an ID does not matter
    rows = [{"customer": c, "tenure": t} for c, t in zip(spelt, tenure, strict=True)]
    status, found = post(app, "/score", {"rows": rows})
    assert status == 200
    np.testing.assert_allclose(
        found["probabilities"], expected(folder, model, wanted, tenure), rtol=1e-12
    )
    inputs = [
        {"name": "customer", "shape": [4], "datatype": "BYTES", "data": spelt},
        {"name": "tenure", "shape": [4], "datatype": "FP64", "data": tenure},
    ]
    _, again = post(app, "/v2/models/credit/infer", {"inputs": inputs})
    assert again["outputs"][0]["data"] == found["predictions"]


def test_somebody_who_is_not_there_is_a_404_without_the_id(made, capfd):
    app = app_of(*made)
    rows = [{"customer": c, "tenure": 1.0} for c in ("C-3", "C-99", "C-98")]
    status, found = post(app, "/score", {"rows": rows})
    assert status == 404
    assert found["error"].startswith(
        "No stored release contains the person of rows[1]. People missing: 2 of 3."
    )
    _, _, metrics = ask(app, "GET", "/metrics")
    assert "C-9" not in json.dumps(found) + metrics + "".join(capfd.readouterr())
    for wrong in (None, 1.5, "nan", ""):
        status, found = post(app, "/score", {"rows": [{"customer": wrong, "tenure": 1.0}]})
        assert (status, "column 'customer'" in found["error"]) == (422, True)
    status, found = post(app, "/score", {"rows": [{"tenure": 1.0}]})
    assert (status, found["error"][:28]) == (422, "Column 'customer' is missing")


def copied(folder, target):
    target.mkdir()
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def changed(folder, **values):
    """Write another manifest into the same folder."""
    plain = json.loads(atomic_files.read_checked(folder / "_manifest.json", ""))
    data = json.dumps({**plain, **values}).encode()
    (folder / "_manifest.json").write_bytes(atomic_files.with_checksum(data))


def test_a_release_that_changes_is_read_again_or_not_answered_from(made, tmp_path):
    folder = copied(made[0], tmp_path / "out")
    app = app_of(folder, made[1])
    asked = {"rows": [{"customer": "C-3", "tenure": 1.0}]}
    assert post(app, "/score", asked)[0] == 200
    manifest = (folder / "_manifest.json").read_bytes()
    (part,) = folder.glob("part-*.parquet")
    changed(folder, parts={part.name: "0" * 64})
    status, found = post(app, "/score", asked)
    assert (status, found["error"][:38]) == (503, "The stored release is being changed or")
    assert ask(app, "GET", "/v2/health/ready")[0] == 503
    (folder / "_manifest.json").write_bytes(manifest)
    assert post(app, "/score", asked)[0] == 200
    assert ask(app, "GET", "/v2/health/ready")[0] == 200


def test_folders_that_do_not_fit_are_refused_before_anybody_is_answered(made, tmp_path):
    folder, model = made
    with pytest.raises(ConfigError, match="--released needs --id"):
        ReleasedPeople([folder], [], model)
    with pytest.raises(DataError, match="holds no stored release"):
        ReleasedPeople([tmp_path], ["customer"], model)
    with pytest.raises(DataError, match="is in two stored releases"):
        ReleasedPeople([folder, copied(folder, tmp_path / "twice")], ["customer"], model)
    with pytest.raises(DataError, match="Column 'number' is not in the stored release"):
        ReleasedPeople([folder], ["number"], model)
    with pytest.raises(DataError, match="An ID occurs in two rows"):
        ReleasedPeople([folder], ["pay"], model)
    other = copied(folder, tmp_path / "other")
    changed(other, noise={"pay": {"mechanism": {}, "gaps": None}})
    with pytest.raises(DataError, match="with different noise than the model was trained for"):
        ReleasedPeople([other], ["customer"], model)
    # Version 0.1 wrote only promises, in these words.
    promised = "pay: 1.5-dLDP a cell (at most 13.5 in all)\ncity: 1.5-LDP"
    changed(other, noise={}, guarantee=promised)
    assert len(ReleasedPeople([other], ["customer"], model)) == 60
    changed(other, noise={}, guarantee="pay: 9-LDP")
    with pytest.raises(DataError, match="with different noise"):
        ReleasedPeople([other], ["customer"], model)
    changed(other, noise={}, guarantee=promised, columns_per_row=1)
    with pytest.raises(DataError, match="a different share of their columns"):
        ReleasedPeople([other], ["customer"], model)
    cut = copied(folder, tmp_path / "cut")
    next(cut.glob("part-*")).write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"part-00000\.parquet|was changed"):
        ReleasedPeople([cut], ["customer"], model)
