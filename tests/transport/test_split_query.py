"""The split queries that feature parties receive over the network."""

from __future__ import annotations

from opboost.demo.local_federation import LABEL_PARTY
from opboost.protocol.messages import SplitQuery, decode
from opboost.protocol.stored_columns import read_column
from robustness.party_processes import federation
from tests.support.parties import ran


def test_a_small_public_grid_is_asked_for_whole_and_a_withheld_one_for_what_is_used(tmp_path):
    made = federation(tmp_path, booster={"num_boost_round": 2, "max_depth": 1, "nthread": 1})
    telco = made.config("telco")
    telco.write_text(telco.read_text().replace("[tls]", 'codebook = "cuts"\n\n[tls]', 1))
    assert [m["phase"] for m in ran(made)] == ["done", "done"]
    (job,) = (f.parent for f in (tmp_path / LABEL_PARTY / "state").glob("*/job.json"))
    asked = {
        name: decode((job / "parties" / name / "query").read_bytes(), SplitQuery).columns
        for name in made.parties
    }
    shop = [read_column(f)[0].values for f in sorted((job / "parties" / "shop").glob("*.arrow"))]
    assert [c.codes for c in asked["shop"]] == [tuple(range(1, values)) for values in shop]
    assert sum(shop) > 12  # two columns of ten cells, most of which occur
    assert sum(len(c.codes) for c in asked["telco"]) <= 2
