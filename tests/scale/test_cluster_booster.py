"""A cluster that a configuration names trains the model or is refused in one sentence."""

from __future__ import annotations

import re
import socket
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import opboost as op
from opboost.cli import app
from opboost.config import parse
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import ConfigError, MissingPackageError, PeerError
from opboost.scale.cluster_booster import ClusterBooster, booster_of, connected_booster
from robustness.bundle_office import Office
from robustness.party_processes import federation, joined, serving
from tests.support.parties import ended

HEAD = '[mechanism]\nkind = "clamp-map"\nepsilon = 1.0\n[columns.a]\nbounds = [0, 1]\n[booster]\n'
ROWS = 1500


def section(lines):
    return parse(HEAD + lines, "b.toml").booster


@pytest.fixture(scope="module")
def address():
    from distributed import LocalCluster

    settings = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
    with LocalCluster(**settings, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def closed():
    """Return an address where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('engine = "dask"', "needs the cluster's address, such as address = \"tcp://"),
        ('engine = "spark"', "needs the cluster's address, such as address = \"spark://"),
        ('engine = "dask"\naddress = "scheduler"', "looks like"),
        ('engine = "spark"\naddress = "tcp://a:1"', "looks like"),
        ('engine = "spark"\naddress = "spark://a:1"', "needs folder, an absolute path"),
        ('engine = "spark"\naddress = "spark://a:1"\nfolder = "here"', "absolute path"),
        ('engine = "dask"\naddress = "tcp://a:1"\nworkers = 2', "for engine = 'spark'"),
        ('kind = "lightgbm"\nengine = "dask"\naddress = "tcp://a:1"', "trains kind 'xgboost'"),
        ('address = "tcp://a:1"', "address is for engine = 'dask' or 'spark'"),
        ('engine = "dask"\naddress = "tcp://a:1"\nparams = { rows_a_tree = 9 }', "one machine"),
    ],
)
def test_settings_that_name_no_cluster_are_refused(lines, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        section(lines)


def test_a_configuration_without_an_engine_names_a_library():
    assert booster_of(section("")) == "xgboost"
    made = booster_of(section('engine = "dask"\naddress = "tcp://a:1"\nparams = { eta = 0.1 }'))
    assert made == ClusterBooster("dask", "tcp://a:1", {"eta": 0.1})


def test_a_scheduler_that_does_not_answer_gets_one_sentence(closed):
    with pytest.raises(PeerError, match=r"The Dask scheduler at tcp://\S+ does not answer") as told:
        booster_of(section(f'engine = "dask"\naddress = "tcp://{closed}"')).check()
    assert "\n" not in str(told.value)


def test_a_program_that_is_no_scheduler_gets_one_sentence(monkeypatch):
    monkeypatch.setattr("opboost.scale.cluster_booster.ANSWER_TIMEOUT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(PeerError, match="does not answer"):
            ClusterBooster("dask", address).check()


def test_a_cluster_without_workers_is_refused():
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as cluster,
        pytest.raises(PeerError, match="no workers"),
    ):
        ClusterBooster("dask", cluster.scheduler_address).check()


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingPackageError, match=re.escape("opboost[boost,spark]")):
        ClusterBooster("spark", "local[1]").check()


def test_a_connection_ends_with_its_block(address):
    with connected_booster(section(f'engine = "dask"\naddress = "{address}"')) as booster:
        client = booster._booster().client
        assert client.status == "running"
    assert client.status == "closed"


def test_one_machine_trains_on_the_cluster_that_its_file_names(tmp_path, address, closed):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 1, ROWS), "b": rng.normal(size=ROWS)})
    table.assign(y=table["a"] > 0.5).to_csv(tmp_path / "t.csv", index=False)
    plan, model = tmp_path / "b.toml", tmp_path / "m.opboost"
    lines = 'engine = "dask"\naddress = "{}"\ndenoise = true\nparams = {{ n_estimators = 7 }}\n'
    more = '[table]\npublic = ["b"]\n'
    arguments = [
        "train",
        str(tmp_path / "t.csv"),
        "--label",
        "y",
        "-c",
        str(plan),
        "-o",
        str(model),
    ]
    plan.write_text(HEAD + lines.format(f"tcp://{closed}") + more)
    refused = CliRunner().invoke(app, arguments)
    assert isinstance(refused.exception, PeerError)
    assert not model.exists()
    plan.write_text(HEAD + lines.format(address) + more)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert op.load(model).model_.num_boosted_rounds() == 7


def test_a_served_job_trains_on_the_cluster_that_its_file_names(tmp_path, address):
    made = federation(tmp_path, ("shop",), align="given")
    config = made.config(LABEL_PARTY)
    lines = (
        f'[booster]\nengine = "dask"\naddress = "{address}"\nmemory = "external"\ndenoise = true'
    )
    config.write_text(config.read_text().replace("[booster]", lines))
    with serving(made) as (process, where):
        joined(made, where)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    model = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    assert model._model.posterior is not None


def test_no_job_begins_for_a_cluster_that_does_not_answer(tmp_path, closed):
    made = federation(tmp_path, ("shop",), align="given")
    config = made.config(LABEL_PARTY)
    lines = f'[booster]\nengine = "dask"\naddress = "tcp://{closed}"'
    config.write_text(config.read_text().replace("[booster]", lines))
    done = ended(made.command(LABEL_PARTY))
    assert (done.returncode, "does not answer" in done.stderr) == (4, True)
    done = Office(made).tried(LABEL_PARTY, "align")
    assert (done.returncode, "does not answer" in done.stderr) == (4, True)
    assert not list((tmp_path / LABEL_PARTY).rglob("job.json"))
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "shop" / "ledger").exists()
