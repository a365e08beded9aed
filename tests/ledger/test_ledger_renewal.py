"""A new period: everybody is drawn and charged again, whatever the data; caps still hold."""

from __future__ import annotations

import json

import numpy as np
import pytest

import opboost as op
from opboost.config.columns_file import parse
from opboost.errors import ConfigError, PrivacyError
from opboost.ledger import Drawing
from opboost.ledger.ledger_summary import summary
from opboost.ledger.renewal import abort, forecast, renew
from opboost.ledger.verify_ledger import verify
from opboost.protocol.messages import Welcome
from opboost.storage import atomic_files
from robustness.command_line import run
from robustness.party_processes import federation, joined, serving
from tests.ledger.test_ledger_modes import CONFIG, desensitized
from tests.support.ledger import AGE, LEVEL, opened, release, table, values
from tests.support.releases import charge_to, made, people

PAY = op.PrivateColumn("pay", AGE.mapping, AGE.mechanism)
BOTH = (AGE, PAY)


def rows(count=400):
    return table(count, pay=np.linspace(0, 100, count))


def most(ledger):
    return {line["attribute"]: line["most"] for line in summary(ledger)["spent"]}


def sent(out):
    return np.column_stack([~c[0].missing for c in out])


def test_a_new_period_draws_and_charges_everybody_again(tmp_path):
    with opened(tmp_path) as ledger:
        first, _ = release(ledger, rows(), BOTH)
        renew(ledger)
        second, made = release(ledger, rows(), BOTH, job="2")
        third, repeated = release(ledger, rows(), BOTH, job="3", to="rival")
        assert (made.new_cells, repeated.new_cells) == (800, 0)
        assert values(second) != values(first)
        assert values(third) == values(second)
        assert most(ledger) == {"age": 2 * LEVEL, "pay": 2 * LEVEL, "all together": 4 * LEVEL}
        assert summary(ledger)["spent"][-1]["people"] == 400
        assert not verify(ledger)


def test_one_attribute_is_renewed_alone(tmp_path):
    with opened(tmp_path) as ledger:
        first, _ = release(ledger, rows(), BOTH)
        renew(ledger, "age")
        second, made = release(ledger, rows(), BOTH, job="2")
        assert made.new_cells == 400
        assert values(second)[0] != values(first)[0]
        assert values(second)[1] == values(first)[1]
        assert most(ledger) == {"age": 2 * LEVEL, "pay": LEVEL, "all together": 3 * LEVEL}
        renew(ledger)
        renew(ledger, "pay")
        _, made = release(ledger, rows(), BOTH, job="3")
        assert made.new_cells == 800
        assert most(ledger)["all together"] == 5 * LEVEL


def test_the_choice_of_columns_is_made_again_with_everything_and_not_with_one_attribute(tmp_path):
    kept = {"budget": op.Budget.sampled(1)}
    with opened(tmp_path) as ledger:
        first, _ = release(ledger, rows(), BOTH, **kept)
        renew(ledger, "age")
        second, made = release(ledger, rows(), BOTH, job="2", **kept)
        assert (sent(second) == sent(first)).all()
        assert made.new_cells == sent(first)[:, 0].sum()
        renew(ledger)
        third, made = release(ledger, rows(), BOTH, job="3", **kept)
        assert 0.3 < np.mean(sent(third)[:, 0] == sent(first)[:, 0]) < 0.7
        assert (sent(third).sum(axis=1) == 1).all()
        assert made.new_cells == 400


def test_caps_run_over_all_periods(tmp_path):
    with opened(tmp_path, attribute=2 * LEVEL) as ledger:
        release(ledger, rows())
        renew(ledger)
        release(ledger, rows(), job="2")
        renew(ledger, "age")
        with pytest.raises(PrivacyError, match=r"400 people would exceed it"):
            release(ledger, rows(), job="3")
        assert most(ledger)["age"] == 2 * LEVEL
    with opened(tmp_path, person=2 * LEVEL) as ledger:
        with pytest.raises(PrivacyError, match=r"on all attributes together no more than 9"):
            release(ledger, rows(), job="4")
        _, made = release(ledger, rows(500)[400:], job="5")
        assert made.new_cells == 100


def reserved(ledger, **more):
    """Interrupt a release before its commit; return the number of its reservation."""
    drawing = Drawing(ledger, [AGE], ["age"], job="cut", recipient="bank", **more)
    with pytest.raises(KeyboardInterrupt), drawing:
        raise KeyboardInterrupt
    return ledger.open_reservations()[-1].number


def test_a_renewal_is_refused_while_a_release_is_reserved(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, rows())
        number = reserved(ledger)
        before = ledger.head().number
        with pytest.raises(PrivacyError, match=rf"opboost ledger abort -c FILE {number}"):
            renew(ledger)
        assert ledger.head().number == before
        with pytest.raises(ConfigError, match=rf"not an open reservation.* Open ones: {number}\."):
            abort(ledger, 0)
        abort(ledger, number)
        renew(ledger)
        assert [e.kind for e in ledger.entries()][-2:] == ["abort", "renew"]
        with pytest.raises(ConfigError, match=r"Open ones: none\."):
            abort(ledger, number)


def test_a_renewal_waits_for_nobody_who_draws(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, rows())
        with atomic_files.alone(ledger.folder), pytest.raises(ConfigError, match="Another process"):
            renew(ledger)


def test_an_attribute_that_was_never_released_is_not_renewed(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, rows())
        with pytest.raises(ConfigError, match=r"does not know attribute 'agee'.* It knows: age\."):
            renew(ledger, "agee")
        assert [e.kind for e in ledger.entries("renew")] == []


def moved(people):
    return people.assign(age=99.9 - people["age"])


def test_changed_values_are_drawn_anew_only_in_a_period_that_says_so(tmp_path):
    with opened(tmp_path) as ledger:
        first, _ = release(ledger, rows())
        assert values(release(ledger, moved(rows()), job="2")[0]) == values(first)
        with pytest.raises(ConfigError, match=r"applies to all attributes"):
            renew(ledger, "age", changed="redraw")
        renew(ledger, changed="redraw")
        assert ledger.changed == "redraw"
        third, _ = release(ledger, rows(), job="3")
        fourth, drawn = release(ledger, moved(rows()), job="4")
        assert drawn.new_cells > 300
        assert values(release(ledger, rows(), job="5")[0]) == values(third)
        assert values(release(ledger, moved(rows()), job="6")[0]) == values(fourth)
        renew(ledger, "age")
        assert ledger.changed == "redraw"
        renew(ledger, changed="keep")
        seventh, _ = release(ledger, rows(), job="7")
        assert values(release(ledger, moved(rows()), job="8")[0]) == values(seventh)
        assert not verify(ledger)
    with pytest.raises(ConfigError, match=r'says changed = "redraw".* run opboost ledger renew'):
        opened(tmp_path, changed="redraw")


def test_a_forecast_tells_what_the_next_release_may_add(tmp_path):
    plan = parse(
        "[columns.age]\nbounds = [0, 100]\n[columns.pay]\nbounds = [0, 100]\n"
        '[mechanism]\nkind = "clamp-map"\nepsilon = 0.5\n[grid]\nlower = 1\nupper = 10',
        "b.toml",
    )
    assert plan.guarantee().total == 2 * LEVEL
    with opened(tmp_path, attribute=1.5 * LEVEL, person=4 * LEVEL) as ledger:
        release(ledger, rows())
        told = forecast(ledger, plan)
        assert (told.people, told.spent, told.next) == (400, LEVEL, 2 * LEVEL)
        assert told.beyond == ("age",)
        told = forecast(ledger, plan, "pay")
        assert (told.people, told.spent, told.next, told.beyond) == (0, 0, LEVEL, ())
    with opened(tmp_path, person=2.5 * LEVEL) as ledger:
        assert forecast(ledger, plan).beyond == ("all together",)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "people.csv").write_text("id,age\n" + "".join(f"p{n},{n}\n" for n in range(50)))
    (tmp_path / "b.toml").write_text(CONFIG)
    assert desensitized(tmp_path, "1.csv")[0] == 0
    return tmp_path


def test_the_verb_says_what_a_renewal_means(home):
    total = json.loads(run("certify", "-c", home / "b.toml", "--format", "json")[1])["total"]
    status, out, _ = run("ledger", "renew", "-c", home / "b.toml")
    assert status == 0
    assert "Entry 3 begins a new period for all attributes and the choice of columns." in out
    assert f"So far 50 people were charged, at most {total:g} each" in out
    assert f"adds at most {total:g} for each person" in out
    assert "no bound" not in out
    said = json.loads(
        run("ledger", "renew", "-c", home / "b.toml", "--attribute", "age", "--format", "json")[1]
    )
    assert said == {
        "entry": 4, "period": 1, "attribute": "age", "changed": "keep", "people": 50,
        "most": total, "next": total, "beyond_cap": [],
    }  # fmt: skip
    (home / "b.toml").write_text(
        CONFIG.replace("[mechanism]", f"cap_person = {total}\n[mechanism]")
    )
    out = run("ledger", "renew", "-c", home / "b.toml")[1]
    assert "It may exceed the cap on 'all together', and would then be refused." in out
    assert desensitized(home, "2.csv")[0] == 3


def test_the_verb_takes_a_reservation_back(home):
    with opened(home) as ledger:
        number = reserved(ledger, people="id")
    status, _, words = run("ledger", "renew", "-c", home / "b.toml")
    assert status == 3
    assert f"opboost ledger abort -c FILE {number}" in words
    status, out, _ = run("ledger", "abort", "-c", home / "b.toml", number)
    assert status == 0
    assert f"cancels the reservation of job 'cut' in entry {number}" in out
    assert run("ledger", "renew", "-c", home / "b.toml")[0] == 0
    assert run("ledger", "abort", "-c", home / "b.toml", number)[0] == 2
    assert run("ledger", "verify", "-c", home / "b.toml")[0] == 0


def with_changed(home, changed):
    text = CONFIG.replace("[mechanism]", f'changed = "{changed}"\n[mechanism]')
    (home / "b.toml").write_text(text)


def test_changed_is_chosen_with_a_renewal_and_the_file_agrees(home):
    with_changed(home, "redraw")
    status, _, words = desensitized(home, "2.csv")
    assert status == 2
    assert 'says changed = "redraw", but the ledger was created with "keep"' in words
    status, _, words = run("ledger", "renew", "-c", home / "b.toml")
    assert status == 2
    assert "Give --changed redraw, or change the file." in words
    status, out, _ = run("ledger", "renew", "-c", home / "b.toml", "--changed", "redraw")
    assert status == 0
    assert "no bound over time" in out
    status, out, _ = desensitized(home, "2.csv")
    assert status == 0
    assert "no bound over time" in out
    out = run("ledger", "show", "-c", home / "b.toml")[1]
    assert "No bound over time" in out
    shown = json.loads(run("ledger", "show", "-c", home / "b.toml", "--format", "json")[1])
    assert shown["changed"] == "redraw"
    with_changed(home, "keep")
    assert desensitized(home, "3.csv")[0] == 2
    assert run("ledger", "renew", "-c", home / "b.toml", "--changed", "keep")[0] == 0
    status, out, _ = desensitized(home, "3.csv")
    assert (status, "no bound" in out) == (0, False)


def test_a_ledger_that_keeps_draws_is_not_said_to_have_no_bound(home):
    assert "no bound" not in desensitized(home, "2.csv")[1]
    assert "no bound" not in run("ledger", "show", "-c", home / "b.toml")[1]


def test_a_party_of_a_redraw_ledger_says_so_in_its_manifest(tmp_path):
    made_federation = federation(tmp_path, ("shop",))
    config = made_federation.config("shop")
    config.write_text(config.read_text().replace("[ledger]", '[ledger]\nchanged = "redraw"'))
    with serving(made_federation) as (process, address):
        (manifest,) = joined(made_federation, address)
        process.communicate(timeout=60)
    assert "no bound over time" in manifest["guarantee"]
    kept = json.loads((tmp_path / "shop/state" / manifest["job"] / "manifest.json").read_text())
    assert "no bound over time" in kept["guarantee"]


def test_a_stored_release_of_a_redraw_ledger_says_so_and_may_be_renewed(tmp_path):
    charge = charge_to(tmp_path)
    plain = made(tmp_path / "1", [people(50)], charge)
    assert "no bound" not in plain.guarantee
    with pytest.raises(PrivacyError, match=r"start a new period with opboost ledger renew"):
        made(tmp_path / "2", [people(50)], charge)
    renew(charge.ledger, changed="redraw")
    (tmp_path / ".2.release").rename(tmp_path / "given up")
    stored = made(tmp_path / "2", [people(50)], charge)
    assert "no bound over time" in stored.guarantee
    assert most(charge.ledger)["age"] == pytest.approx(2 * 0.64 * 9)
    charge.ledger.close()


def test_a_stored_release_of_an_earlier_period_may_still_be_sent(tmp_path):
    """Sending it again reveals nothing new and costs nothing."""
    from tests.scale.test_release_sent import PLAN, shop, stored
    from tests.scale.test_release_sent import sent as sent_by

    charge = charge_to(tmp_path)
    made(tmp_path / "out", [people()], charge)
    before = summary(charge.ledger)["spent"]
    renew(charge.ledger)
    welcome = Welcome("20260102T030405Z-01020304", bytes(32), b"")
    assert sent_by(shop(tmp_path, charge), welcome) == stored(tmp_path / "out", PLAN)
    assert summary(charge.ledger)["spent"] == before
    charge.ledger.close()
