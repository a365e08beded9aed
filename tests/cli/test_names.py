"""Names that a peer chose: refused if they control a terminal, and otherwise shown literally."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.table import Table

import opboost as op
from opboost.cli.common import json_text, print_json, stderr, stdout
from opboost.config.job_file import load_label
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import ColumnError, WireError, unseen, visible
from opboost.explorer.job_view import AskedColumn, JobRun, Party
from opboost.explorer.pages import run_page
from opboost.parties.feature.feature_party import FeatureParty
from opboost.protocol.messages import ColumnSchema
from opboost.transport.label.label_job import new_job, read_data
from robustness.command_line import run
from robustness.party_processes import federation

GRID = op.Domain(1, 10)
FORGED = "pay\x1b[1A\x1b[2K\none person's record: at most 0.1"
UNSEEN = (FORGED, "a\u202eb", "a\u200bb", "a\u2066b", "a\x9bb", "a\u3164b", "a\ufe0fb", "a\u00adb")
SEEN = ("größe", "給与 総額", "pay\u00a0(EUR)", "[red]x", ":smile:", "Umsatz €", "naïve")


def shop(name="pay", **settings):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.uniform(0, 10, 200), "town": ["north", "south"] * 100})
    schema = [
        op.PrivateColumn(name, op.NumericMapping(GRID, (0, 10)), op.ClampMap(GRID, 2.0)),
        op.PrivateColumn("town", None, op.UnaryEncoding(["north", "south"], 2.0)),
    ]
    return FeatureParty(table, schema, **settings)


def bank():
    return op.LabelParty(None, np.arange(200) % 2, booster="gbdt", random_state=0)


class Liar(FeatureParty):
    """A feature party whose schema holds what an honest program would refuse to send."""

    def release(self, welcome):
        schema, files = super().release(welcome)
        return replace(schema, columns=tuple(map(self.change, schema.columns))), files


def lying(change):
    party = shop()
    party.__class__ = Liar
    party.change = lambda column: ColumnSchema(json.dumps(change(json.loads(column.spec))))
    return party


@pytest.mark.parametrize("text", UNSEEN)
def test_a_name_or_category_that_cannot_be_seen_is_refused_when_it_comes(text):
    code = f"U\\+{ord(unseen(text)):04X}"
    for change in (
        lambda spec: spec | ({"name": text} if spec["name"] == "pay" else {}),
        lambda spec: _with_category(spec, text),
        lambda spec: spec | {"note": [{text: 1}]},
    ):
        with pytest.raises(WireError, match=rf"invisible character \({code}\)") as refused:
            bank().train([op.MemoryChannel(lying(change))])
        assert not unseen(str(refused.value))


def _with_category(spec, text):
    if spec["name"] != "town":
        return spec
    return spec | {"mechanism": spec["mechanism"] | {"categories": ["north", text]}}


@pytest.mark.parametrize("text", SEEN)
def test_a_name_that_can_be_seen_is_taken_as_it_is(text):
    model = bank().train([op.MemoryChannel(shop(text))])
    assert text in list(model.feature_names_in_)
    assert str(model.guarantee_).startswith(f"{text}: ")


def test_a_feature_party_learns_of_a_wrong_own_name_before_anything_leaves():
    with pytest.raises(ColumnError, match=r"\(U\+001B\). Rename it; names = \"hidden\""):
        shop(FORGED)
    assert bank().train([op.MemoryChannel(shop(FORGED, names="hidden"))]).guarantee_.total > 0


def test_a_promise_has_one_line_a_column_whatever_its_name():
    promise = op.DLDP(0.64, GRID).on(FORGED)
    assert str(promise).splitlines() == [
        r"pay\x1b[1A\x1b[2K\none person's record: at most 0.1: 0.64-dLDP per cell "
        "(at most 5.76 in all)",
        "one person's record: at most 5.76",
    ]


def test_texts_are_printed_as_they_stand_and_steer_nothing(capsys):
    said = "[red]x[/red] [link=http://a]y[/link] :smile: \x1b[31m\u202e\u200b"
    told = r"[red]x[/red] [link=http://a]y[/link] :smile: \x1b[31m\u202e\u200b"
    table = Table(said)
    table.add_row(said)
    stdout().print(said, soft_wrap=True)
    stdout().print(table, width=200)
    stderr().print(said)
    out, err = capsys.readouterr()
    assert out.count(told) == 3
    assert err.strip() == told
    assert not unseen((out + err).replace("\n", ""))
    print_json({said: [said]})
    assert json.loads(out := capsys.readouterr().out) == {said: [said]}
    assert not unseen(out.replace("\n", ""))
    assert json_text(["größer\U000e0041"]) == '["größer\\udb40\\udc41"]'


def test_a_manifest_that_an_older_release_wrote_forges_no_line(tmp_path):
    made = federation(tmp_path, ("shop",), align="given")
    config = load_label(made.config(LABEL_PARTY))
    folder = new_job(config, read_data(config), receipts=True, way="network")
    manifest = {
        "job": folder.name,
        "finished": "2026-01-01",
        "seconds": 1.0,
        "guarantee": "pay\x1b[1A\x1b[2K: 2-dLDP\none person's record: at most 18",
        "total": 18.0,
        "parties": {"shop": {"columns": 2, "bytes": 10}},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "ended").touch()
    config.model.touch()
    status, out, _ = run("serve", "-c", made.config(LABEL_PARTY))
    assert (status, out.splitlines()[0]) == (0, r"pay\x1b[1A\x1b[2K: 2-dLDP")
    assert out.splitlines()[-1] == "One person's record: at most 18."


def test_a_page_spells_out_what_a_browser_would_obey():
    text = "a\u202e<b>x</b>\u200b"
    party = Party("shop", "asked", "", 1, 1, 10, 1.0, 4.0, (AskedColumn(text, 3, False),))
    page = str(run_page(JobRun("job", text, 3, (party,), 0.5, None, None, (), None, ())))
    assert r"a\u202e&lt;b&gt;x&lt;/b&gt;\u200b" in page
    assert not unseen(page.replace("\n", ""))


def test_what_is_spelt_out_is_what_cannot_be_seen():
    for text in UNSEEN:
        assert unseen(text) in text
        assert unseen(visible(text)) == ""
    for text in SEEN:
        assert (unseen(text), visible(text)) == ("", text)
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"
