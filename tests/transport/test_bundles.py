"""A job by bundles gives the same model as over the network, and nothing else changes."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY, run_federation
from opboost.transport.shared.development_certificates import new_kit
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import ROWS, Party, federation, serving
from tests.support.parties import refused


@pytest.fixture
def small(tmp_path):
    return Office(federation(tmp_path, ("shop",), align="given"))


@pytest.mark.parametrize("align", ["psi", "given"])
def test_the_model_is_that_of_the_network_and_costs_nothing_more(tmp_path, align):
    made = federation(tmp_path, align=align)
    run_federation(made, timeout=120)
    model = tmp_path / LABEL_PARTY / "model.opboost"
    by_network = tree_of_model(model)
    office = Office(made, processes=True)
    refused = office.tried(LABEL_PARTY, "align")
    assert refused.returncode == 2
    assert "--again" in refused.stderr
    assert office.model("--again") == model
    assert tree_of_model(model) == by_network
    for name in made.parties:
        shown = json.loads(run("ledger", "show", "-c", made.config(name), "--format", "json")[1])
        drawn = [r["new_cells"] for r in shown["releases"] if r.get("new_cells") is not None]
        assert drawn == [2 * ROWS, 0]
        receipts = tmp_path / LABEL_PARTY / "state"
        checked = run("ledger", "verify", "-c", made.config(name), "--receipts", receipts)
        assert checked[0] == 0
    done = json.loads(
        run("serve", "-c", made.config(LABEL_PARTY), "--status", "--format", "json")[1]
    )
    assert done["phase"] == "done"


def tree_of_model(path):
    """Return the model's bytes, part by part."""
    import zipfile

    with zipfile.ZipFile(path) as parts:
        return {name: parts.read(name) for name in parts.namelist()}


def test_a_command_that_is_repeated_gives_the_same_bundle(small):
    def twice(party, verb, *given):
        written = [small.written(party, verb, *given, to=small.out(party) / n) for n in "12"]
        (name,) = written[0]
        one, two = (Path(w[name]) for w in written)
        assert one.read_bytes() == two.read_bytes()
        return one

    first = twice(LABEL_PARTY, "align")
    export = twice("shop", "export", first)
    query = twice(LABEL_PARTY, "split-query", export)
    answer = twice("shop", "answer", query)
    manifests = [small.run(LABEL_PARTY, "finish", answer)["manifest"] for _ in "12"]
    assert manifests[0] == manifests[1]
    entries = json.loads(run("ledger", "export", "-c", small.made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open", "reserve", "commit", "answer"]


@pytest.mark.parametrize("align", ["psi", "given"])
def test_a_party_that_is_killed_at_any_moment_repeats_its_command(tmp_path, align):
    office = Office(federation(tmp_path, ("shop",), align=align), processes=True)

    def killed(party, verb, *given):
        for pause in (0.05, 0.2, 0.6):
            victim = Party(office.command(party, verb, *given))
            time.sleep(pause)
            victim.kill()
            victim.communicate()
        (path,) = office.written(party, verb, *given).values()
        return path

    first = killed(LABEL_PARTY, "align")
    if align == "psi":
        first = killed(LABEL_PARTY, "align", killed("shop", "align", first))
    query = killed(LABEL_PARTY, "split-query", killed("shop", "export", first))
    office.run(LABEL_PARTY, "finish", killed("shop", "answer", query))
    op.load(tmp_path / LABEL_PARTY / "model.opboost")
    shown = json.loads(
        run("ledger", "show", "-c", office.made.config("shop"), "--format", "json")[1]
    )
    assert shown["spent"][0]["most"] == 18.0
    assert sum(r.get("new_cells") or 0 for r in shown["releases"]) == 2 * ROWS
    states = [tmp_path / p / "state" for p in (LABEL_PARTY, "shop")]
    assert not [f for state in states for f in state.glob("*/bundles/opening-*")]
    # Secrets and points are no longer needed, and are gone.
    assert not [f for state in states for f in state.rglob("secret")]
    assert not [f for state in states for f in state.glob("**/*.label")]


def test_network_and_bundles_are_not_mixed_in_one_run(small):
    made = small.made
    with serving(made):
        pass
    status, words = refused(small, LABEL_PARTY, "align")
    assert (status, "begun with opboost serve" in words) == (2, True)
    small.begun("--again")
    status, _, words = run("serve", "-c", made.config(LABEL_PARTY))
    assert (status, "begun with opboost bundle" in words) == (2, True)


def test_verbs_are_refused_to_the_party_that_they_are_not_for(small):
    first = small.begun()["shop"]
    assert refused(small, "shop", "split-query", first)[0] == 2
    assert refused(small, LABEL_PARTY, "export", first)[0] == 2
    status, words = refused(small, "shop", "align", first)
    assert (status, "nothing to align" in words) == (2, True)
    assert refused(small, "shop", "export", small.made.folder / "none.bundle")[0] == 2
    (small.made.folder / "certs" / "bank.public").unlink()
    status, words = refused(small, "shop", "export", first)
    assert (status, "[peers.bank] public" in words) == (2, True)


def test_the_public_key_may_lie_elsewhere(small):
    first = small.begun()["shop"]
    key = small.made.folder / "certs" / "bank.public"
    key.rename(small.made.folder / "elsewhere")
    config = small.made.config("shop")
    config.write_text(config.read_text() + '\n[peers.bank]\npublic = "../elsewhere"\n')
    export = small.written("shop", "export", first)
    assert list(export) == [LABEL_PARTY]
    query = small.written(LABEL_PARTY, "split-query", export[LABEL_PARTY])
    assert list(query) == ["shop"], "the label party could not open what was encrypted to its key"


def test_an_encryption_key_that_is_not_the_published_one_is_reported_before_anything_travels(small):
    certs = small.made.folder / "certs"
    other = new_kit(LABEL_PARTY, small.made.folder / "elsewhere")
    shutil.copy(other / "encryption.key", certs / LABEL_PARTY / "encryption.key")
    status, words = refused(small, LABEL_PARTY, "align")
    assert (status, "is not the public half of" in words) == (2, True)


def test_points_and_secrets_go_as_soon_as_the_common_rows_are_known(tmp_path):
    office = Office(federation(tmp_path))
    first = office.begun()
    met = [office.written(p, "align", first[p])[LABEL_PARTY] for p in office.made.parties]
    office.written(LABEL_PARTY, "align", *met)
    kinds = ("secret", "*.label", "*.feature", "*.raised", "*.doubled")
    state = tmp_path / LABEL_PARTY / "state"
    assert not [f for kind in kinds for f in state.rglob(kind)]


def test_a_manifest_that_a_kill_prevented_is_written_when_the_command_is_repeated(small):
    first = small.begun()["shop"]
    small.run("shop", "export", first)
    (file,) = (small.made.folder / "shop" / "state").glob("*/released.json")
    kept = json.loads(file.read_text())
    file.unlink()
    small.run("shop", "export", first)
    again = json.loads(file.read_text())
    for name in ("rows", "columns", "bytes", "phase"):
        assert again[name] == kept[name]


def test_words_tell_what_to_do_next(small):
    status, out, words = run(
        "bundle", "align", "-c", small.made.config(LABEL_PARTY), "--to", small.out(LABEL_PARTY)
    )
    assert status == 0
    name = Path(out.strip()).name
    assert (
        f"for shop, which continues with: opboost bundle export -c shop.toml {name} --to DIR"
        in words
    )
    assert "Waiting for shop: step 4 (export)." in words


def test_without_a_question_the_model_is_written_at_once(small):
    config = small.made.config(LABEL_PARTY)
    config.write_text(
        config.read_text().replace('column = "ill"', 'column = "ill"\nask = "if-needed"')
    )
    export = small.written("shop", "export", small.begun()["shop"])[LABEL_PARTY]
    said = small.run(LABEL_PARTY, "split-query", export)
    assert (said["written"], said["waiting"]) == ([], {})
    assert said["manifest"]["rows"] == ROWS
    op.load(small.made.folder / LABEL_PARTY / "model.opboost")
