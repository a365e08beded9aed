"""Parties that share some rows: the exact rows and their order, stored state, and refusals."""

from __future__ import annotations

import hashlib
import hmac
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import opboost as op
from opboost.errors import DataError, ParameterError, PeerError, PrivacyError, WireError
from opboost.parties.alignment import PsiPeer, kept_secret
from opboost.parties.row_proof import RowProof
from opboost.protocol.messages import Ack, Aligned, Points, Proof, Welcome, encode
from opboost.protocol.stored_columns import read_column
from opboost.psi.common_rows import Common, packed
from opboost.psi.point_matching import PointList
from opboost.psi.row_keys import key_digests
from opboost.psi.table_keys import Keys
from opboost.storage import atomic_files
from opboost.transport.feature.network_psi import PsiClient

GRID = op.Domain(1, 10)
JOB = "20260102T030405Z-01020304"
WELCOME = Welcome(JOB, bytes(32), b"")
EXACT = op.ClampMap(GRID, 40.0)  # so little noise that each code is its value


def people(rng, count, of=400):
    return [f"p{i:03d}" for i in rng.permutation(of)[:count]]


def value_of(person, shift=0):
    return (int(person[1:]) * 7 + shift) % 10 + 1


def shop(ids, name="shop", shift=0, kind=pd.DataFrame, align="psi", **settings):
    columns = {"x": [value_of(i, shift) for i in ids], "id": ids}
    table = kind(columns) if callable(kind) else kind
    schema = [op.PrivateColumn("x", op.NumericMapping(GRID, (0.5, 10.5)), EXACT)]
    return op.FeatureParty(table, schema, ids="id", name=name, align=align, **settings)


def bank(ids, align="psi", kind=pd.DataFrame, **settings):
    y = np.array([value_of(i) > 5 for i in ids])
    own = kind({"own": [value_of(i, 3) for i in ids]})
    return op.LabelParty(own, y, ids=ids, random_state=0, align=align, booster="gbdt", **settings)


class Seen(op.MemoryChannel):
    """A channel that records what the label party trains on."""

    def columns(self):
        for head, column in super().columns():
            self.values = head.codebook.values[column.codes]
            yield head, column


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_party_has_the_common_rows_in_one_order(kind):
    rng = np.random.default_rng(1)
    ours, north, south = people(rng, 350), people(rng, 330), people(rng, 340)
    channels = [
        Seen(shop(north, "north", kind=kind)),
        Seen(shop(south, "south", shift=2, kind=kind)),
    ]
    label = bank(ours, kind=kind)
    aligned = label.align(channels, WELCOME)
    common = set(ours) & set(north) & set(south)
    order = sorted(common, key=lambda i: bytes(key_digests([i.encode()])[0]))
    assert aligned._rows.y.tolist() == [value_of(i) > 5 for i in order]
    own = aligned._rows.own["own"]
    assert list(own.to_pylist() if hasattr(own, "to_pylist") else own) == [
        value_of(i, 3) for i in order
    ]
    aligned.train(channels, welcome=WELCOME)
    for channel, shift in zip(channels, (0, 2), strict=True):
        assert channel.values.tolist() == [value_of(i, shift) for i in order]
        ledger = channel._party.ledger
        entries = [(e.kind, e.body) for e in ledger.entries()]
        kinds = [k for k, _ in entries]
        assert kinds == ["open", "align", "aligned", "reserve", "commit", "answer"]
        assert entries[1][1]["theirs"] == 350
        assert entries[2][1]["common"] == len(common)
        assert entries[4][1]["new_cells"] == len(common)  # and nobody else
        text = " ".join(e.text for e in ledger.entries())
        assert not any(i in text for i in ours)


def test_a_table_in_pieces_gives_what_a_table_in_memory_gives(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    ours, theirs = people(rng, 5000, 6000), people(rng, 5500, 6000)
    monkeypatch.setattr("opboost.files.read_tables.PIECE_CELLS", 2048)  # pieces of 1,024 rows
    table = pa.table({"x": [value_of(i) for i in theirs], "id": theirs})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    pa.csv.write_csv(table, tmp_path / "t.csv")
    order = sorted(set(ours) & set(theirs), key=lambda i: bytes(key_digests([i.encode()])[0]))
    for file in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        channel = Seen(shop(theirs, kind=file))
        bank(ours).train([channel])
        assert channel.values.tolist() == [value_of(i) for i in order]


def test_the_same_ledger_gives_the_same_codes_in_every_job_whatever_the_rows_order(tmp_path):
    rng = np.random.default_rng(3)
    ours, theirs = people(rng, 300), people(rng, 300)
    noisy = [op.PrivateColumn("x", op.NumericMapping(GRID, (0.5, 10.5)), op.ClampMap(GRID, 0.5))]
    seen = []
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        for order in (theirs, theirs[::-1]):
            table = pd.DataFrame({"x": [value_of(i) for i in order], "id": order})
            party = op.FeatureParty(table, noisy, ids="id", align="psi", ledger=ledger)
            channel = Seen(party)
            model = bank(ours).train([channel])
            seen.append((channel.values.tolist(), model.predict_proba(_grid(model)).tolist()))
        commits = [e.body for e in ledger.entries("commit")]
    assert seen[0] == seen[1]
    assert commits[1]["new_cells"] == 0


def _grid(model):
    cells = range(1, 11)
    return pd.DataFrame(dict.fromkeys(model.feature_names_in_, cells))


def test_spellings_meet_and_the_ledger_keeps_the_tables_own(tmp_path):
    ids = people(np.random.default_rng(4), 200)
    loose = op.AlignRules(op.Normalisation(trim=True, case="lower"))
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        for spelt in (ids, [f" {i}  " for i in ids]):
            table = pd.DataFrame({"x": [value_of(i) for i in ids], "id": spelt})
            schema = [op.PrivateColumn("x", op.NumericMapping(GRID, (0.5, 10.5)), EXACT)]
            party = op.FeatureParty(table, schema, ids="id", align=loose, ledger=ledger)
            channel = Seen(party)
            y = np.array([value_of(i) > 5 for i in ids])
            small = [i.lower() for i in ids]
            op.LabelParty(None, y, ids=small, align=loose, booster="gbdt").train([channel])
            assert len(channel.values) == 200
        assert [e.body["new_cells"] for e in ledger.entries("commit")] == [200, 0]


def test_ids_that_meet_under_the_rule_are_refused_with_counts():
    loose = op.AlignRules(op.Normalisation(case="lower"))
    ids = people(np.random.default_rng(5), 200)
    ids += [ids[0].lower(), "P900", "p900"]
    with pytest.raises(DataError, match=r"2 IDs appear more than once, in 4 rows") as refused:
        bank(ids[:200], align=loose).train([op.MemoryChannel(shop(ids, align=loose))])
    assert "p900" not in str(refused.value).lower()
    with pytest.raises(DataError, match=r"2 IDs appear more than once, in 4 rows"):
        bank(ids, align=loose).train([op.MemoryChannel(shop(ids[:200], align=loose))])


def test_too_few_common_rows_are_refused_before_anything_is_released():
    rng = np.random.default_rng(6)
    ids = people(rng, 400)
    for rules in (op.AlignRules(minimum_rows=101), op.AlignRules(minimum_rows=1)):
        stern = op.AlignRules(minimum_rows=101)
        party = shop(ids[:250], align=stern)
        with pytest.raises(PrivacyError, match=r"100 rows in common; with fewer than 101"):
            bank(ids[150:], align=rules).train([op.MemoryChannel(party)])
        assert [e.kind for e in party.ledger.entries()] == ["open", "align"]
    party = shop(ids[:250], align=op.AlignRules(minimum_rows=100))
    bank(ids[150:], align=op.AlignRules(minimum_rows=100)).train([op.MemoryChannel(party)])


def test_parties_without_a_common_row_are_refused_before_anything_is_released():
    ids, rules = people(np.random.default_rng(8), 300), op.AlignRules(minimum_rows=1)
    party = shop(ids[:150], align=rules)
    with pytest.raises(PrivacyError, match=r"have 0 rows in common; .* Check that IDs are spelt"):
        bank(ids[150:], align=rules).train([op.MemoryChannel(party)])
    assert [e.kind for e in party.ledger.entries()] == ["open", "align"]


def test_sets_that_are_too_large_are_refused_by_both_sides():
    ids = people(np.random.default_rng(7), 300)
    little, much = op.AlignRules(most_rows=250), op.AlignRules()
    with pytest.raises(PrivacyError, match=r"has 300 rows, .* no more than 250 are accepted"):
        bank(ids).train([op.MemoryChannel(shop(ids[:200], align=little))])
    with pytest.raises(PrivacyError, match=r"has 300 rows"):
        bank(ids[:200], align=little).train([op.MemoryChannel(shop(ids, align=much))])
    for label, feature in ((little, much), (much, little)):
        with pytest.raises(PrivacyError, match=r"no more than 250 may be aligned"):
            bank(ids, align=label).train([op.MemoryChannel(shop(ids, align=feature))])


def test_one_label_party_may_not_align_again_and_again(tmp_path):
    ids = people(np.random.default_rng(8), 200)
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        few = op.AlignRules(repeats=2)
        for _ in range(2):
            job = Welcome(f"2026010{_ + 1}T030405Z-01020304", bytes(32), b"")
            party = shop(ids, align=few, ledger=ledger)
            bank(ids[:150]).train([op.MemoryChannel(party)], welcome=job)
        party = shop(ids, align=few, ledger=ledger, state=tmp_path / "state")
        with pytest.raises(PrivacyError, match=r"has aligned its rows with this table in 2 jobs"):
            bank(ids[:150]).train([op.MemoryChannel(party)])
        other = shop(ids, align=few, ledger=ledger, recipient="another bank")
        bank(ids[:150]).train([op.MemoryChannel(other)])


def test_an_alignment_is_resumed_and_its_secret_is_deleted(tmp_path):
    ids = people(np.random.default_rng(9), 200)
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        settings = {"ledger": ledger, "state": tmp_path / "state"}
        label = PsiPeer(JOB, "label", kept_secret(None), key_digests(_bytes(ids[:150])), RULES)
        first = next(label.pieces())
        psi_session = shop(ids, **settings).psi_session(WELCOME)
        psi_session.begin([first])
        shown = next(psi_session.pieces())
        secret = tmp_path / "state" / JOB / "secret"
        assert secret.stat().st_mode & 0o777 == 0o600
        again = shop(ids[::-1], **settings).psi_session(WELCOME)  # killed; its table reordered
        again.begin([first])
        assert next(again.pieces()) == shown
        (raised,) = again.raised([first])
        match = met(label, raised, shown)
        aligned, proof = told(match, ids[:150])
        with pytest.raises(PeerError, match="not aligned yet"):
            again.rows()
        finish(again, aligned, proof)
        assert not secret.exists()
        third = shop(ids, **settings)
        assert third.psi_session(WELCOME).done
        assert {ids[r] for r in third.psi_session(WELCOME).rows()} == set(ids[:150])
        assert [e.kind for e in ledger.entries()] == ["open", "align", "aligned"]
        with pytest.raises(DataError, match="not those that were aligned"):
            shop(ids[:-1], **settings).release(WELCOME)
        with pytest.raises(PrivacyError, match="another recipient or under another configuration"):
            shop(ids, align="given", **settings).release(WELCOME)


def test_the_label_partys_secrets_go_even_if_it_was_killed_on_the_way(tmp_path):
    ids = people(np.random.default_rng(15), 200)
    channel = op.MemoryChannel(shop(ids))
    label = bank(ids[:150])
    first = label.align([channel], WELCOME, tmp_path)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["common"]
    kept_secret(tmp_path / "align" / "shop")
    again = label.align([channel], WELCOME, tmp_path)  # asks nobody, because the outcome is stored
    assert sorted(f.name for f in tmp_path.iterdir()) == ["common"]
    assert again._rows.keys.digest(WELCOME.nonce) == first._rows.keys.digest(WELCOME.nonce)
    with pytest.raises(ParameterError, match="are given"):
        first.align([channel], WELCOME)


RULES = op.AlignRules()


def met(label, raised, shown):
    """Return what a label party matches: its own raised points, and the other party's."""
    with PointList() as ours, PointList() as theirs:
        ours.add(raised.points)
        theirs.add(label.doubled(shown))
        return label.met(ours, theirs)


def told(match, ids):
    """Return the message of an honest label party: its bitmap, and its half of the row proof."""
    digests = key_digests(_bytes(ids))
    proof = proof_of(digests[Common.of(digests, match.rows).rows(digests)])
    return match.told(JOB, match.rows, proof.share), proof


def proof_of(digests, nonce=WELCOME.nonce):
    """Return half of the proof of these rows, in the order that all parties share."""
    return RowProof.of(
        kept_secret(None), Keys.of_digests(digests, np.arange(len(digests))).digest(nonce)
    )


def finish(psi_session, aligned, proof):
    """Finish an alignment with a label party that has this half of the proof."""
    claim = psi_session.claim(aligned)
    psi_session.finish(aligned, Proof(JOB, proof.answered(claim, aligned.count).label))


def _bytes(ids):
    return [i.encode() for i in ids]


def test_points_and_bitmaps_of_another_job_or_secret_are_refused():
    ids = people(np.random.default_rng(10), 200)
    digests = key_digests(_bytes(ids))
    label = PsiPeer(JOB, "label", kept_secret(None), digests, RULES)
    feature = PsiPeer(JOB, "feature", kept_secret(None), digests, RULES)
    stranger = PsiPeer(JOB, "feature", kept_secret(None), digests, RULES)
    other_job = PsiPeer("20260102T030406Z-01020304", "feature", kept_secret(None), digests, RULES)
    label.doubled(next(feature.pieces()))
    with pytest.raises(WireError, match="two secrets"):
        label.doubled(next(stranger.pieces()))
    for wrong in (next(other_job.pieces()), next(label.pieces())):
        with pytest.raises(WireError, match="another job or step"):
            label.doubled(wrong)
    fresh = PsiPeer(JOB, "label", kept_secret(None), digests, RULES)
    with pytest.raises(WireError, match="does not lie on the curve"):
        fresh.doubled(Points(JOB, "feature", bytes(16), 1, 0, b"\2" + bytes(31)))
    psi_session = shop(ids).psi_session(WELCOME)
    psi_session.begin(label.pieces())
    with pytest.raises(PeerError, match="about other points"):
        psi_session.claim(Aligned(JOB, bytes(16), 200, 0, bytes(25), b"\2" + bytes(31)))


def test_a_table_that_changes_between_alignment_and_drawing_is_refused(tmp_path):
    ids = people(np.random.default_rng(11), 200)
    file = tmp_path / "t.parquet"
    table = pa.table({"x": [value_of(i) for i in ids], "id": ids})
    pa.parquet.write_table(table, file)
    party = shop(ids, kind=file)
    channel = op.MemoryChannel(party)
    label = bank(ids[:150]).align([channel], WELCOME)
    pa.parquet.write_table(table.take(list(range(199, -1, -1))), file)
    with pytest.raises(DataError, match="changed while it was read"):
        label.train([channel], welcome=WELCOME)
    assert [e.kind for e in party.ledger.entries()][-1] == "abort"


def test_bad_settings_of_an_alignment_say_what_to_do():
    ids = people(np.random.default_rng(12), 200)
    y = np.arange(200) % 2
    with pytest.raises(ParameterError, match=r"Give ids="):
        op.LabelParty(None, y, align="psi")
    with pytest.raises(ParameterError, match=r"199 IDs for 200 rows"):
        op.LabelParty(None, y, ids=ids[:199])
    with pytest.raises(ParameterError, match=r"align is 'psi', 'given'"):
        op.LabelParty(None, y, ids=ids, align="sorted")
    schema = [op.PrivateColumn("x", op.NumericMapping(GRID, (0, 1)), EXACT)]
    with pytest.raises(ParameterError, match=r"Give ids='customer_id'"):
        op.FeatureParty(pd.DataFrame({"x": [0.5]}), schema, align="psi")
    with pytest.raises(ParameterError, match=r"minimum_rows is 1 or more"):
        op.AlignRules(minimum_rows=0)
    with pytest.raises(PeerError, match=r"but this job has given rows"):
        bank(ids).train([op.MemoryChannel(shop(ids, align="given"))])


def test_a_label_that_is_constant_in_the_common_rows_is_refused_before_a_release():
    ids = people(np.random.default_rng(13), 300)
    y = np.array([0] * 150 + [1] * 150)
    party = shop(ids[:150])
    with pytest.raises(DataError, match="only one value in the rows that all parties have"):
        op.LabelParty(None, y, ids=ids, align="psi").train([op.MemoryChannel(party)])
    assert [e.kind for e in party.ledger.entries()] == ["open", "align"]


def test_the_file_of_a_column_holds_common_rows_alone(tmp_path):
    ids = people(np.random.default_rng(14), 300)
    party = shop(ids, state=tmp_path)
    bank(ids[100:]).train([op.MemoryChannel(party)], welcome=WELCOME)
    (file,) = party.released(JOB)[1]
    assert len(read_column(file)[1].codes) == 200


class Guesser:
    """A label party that sends different points in the same job whenever it can."""

    def __init__(self, ids, guesses, size):
        self.secret, self.theirs, self.told = kept_secret(None), [], 0
        self.batches = [guesses[i : i + size] for i in range(0, len(guesses), size)]
        self.ids, self.raised = ids, set()

    def points(self, batch):
        blinded = self.secret.blinded(key_digests(_bytes(batch)))
        return Points(JOB, "label", bytes(16), len(batch), 0, blinded)

    def ask(self, step, message, *expected):
        if step == "aligned":
            if not self.theirs:
                return Ack(JOB, "feature")
            if self.told < len(self.batches):
                return Ack(JOB, "raised")
            total = len(self.ids)
            everyone = packed(np.arange(total), total)
            share = self.secret.blinded(key_digests([b"no rows of its own"]))
            return Aligned(JOB, self.theirs[0].tag, total, total, everyone, share)
        if step == "prove":
            return Proof(JOB, message.proof)
        if step == "want":
            return self.points(self.batches[min(self.told, len(self.batches) - 1)])
        if message.step == "feature":
            self.theirs.append(message)
        else:
            self.raised |= {message.points[i : i + 32] for i in range(0, len(message.points), 32)}
            self.told += 1
        return Ack(JOB, message.step)


def test_a_label_party_that_changes_its_points_learns_no_more_than_it_first_showed(tmp_path):
    ids = people(np.random.default_rng(16), 120)
    guesses = [f"p{i:03d}" for i in range(400)]
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        capped = op.AlignRules(minimum_rows=1, most_rows=200, repeats=1)
        party = shop(ids, ledger=ledger, state=tmp_path / "state", align=capped)
        liar = Guesser(ids, guesses, 200)
        talk = PsiClient(
            party.psi_session(WELCOME), JOB, liar.ask, wait=60, progress=lambda *_: None
        )
        with pytest.raises(PeerError, match="does not prove that it has the rows"):
            talk.align()
        assert (liar.told, len(liar.raised)) == (2, 200)

        # After a resume, it sends different points, over the network and by bundles.
        fresh = PsiClient(
            party.psi_session(WELCOME), JOB, liar.ask, wait=60, progress=lambda *_: None
        )
        liar.told, liar.theirs = 1, []
        with pytest.raises(PrivacyError, match="other points than those with which job"):
            fresh.align()
        for batch in (guesses[200:], guesses[:100], guesses[199:0:-1]):
            psi_session = party.psi_session(WELCOME)
            with pytest.raises(PrivacyError, match="other points than those with which job"):
                psi_session.begin([liar.points(batch)])
            with pytest.raises(PeerError, match="has not begun"):
                psi_session.raised([liar.points(batch)])
        psi_session = party.psi_session(WELCOME)
        psi_session.begin([liar.points(guesses[:200])])
        with pytest.raises(WireError, match="differ from those that were shown"):
            list(psi_session.raised([liar.points(guesses[200:])]))
        (entry,) = ledger.entries("align")
        assert entry.body["theirs"] == 200


def test_a_job_that_is_aligned_or_whose_state_was_lost_raises_nothing_more(tmp_path):
    ids = people(np.random.default_rng(17), 200)
    state = tmp_path / "state"
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        party = shop(ids, ledger=ledger, state=state)
        label = PsiPeer(JOB, "label", kept_secret(None), key_digests(_bytes(ids[:150])), RULES)
        points = list(label.pieces())
        psi_session = party.psi_session(WELCOME)
        psi_session.begin(points)
        kept = (state / JOB / "secret").read_bytes()
        (state / JOB / "secret").unlink()
        for broken in (
            None,
            atomic_files.with_checksum(kept_secret(None).key),
        ):  # lost, or replaced by another
            if broken is not None:
                (state / JOB / "secret").write_bytes(broken)
            with pytest.raises(PeerError, match="lost its state of this job"):
                party.psi_session(WELCOME).begin(points)
        (state / JOB / "secret").write_bytes(kept)
        (shown,) = psi_session.pieces()
        (raised,) = psi_session.raised(points)
        aligned, proof = told(met(label, raised, shown), ids[:150])
        (state / JOB / ".secret.0.part").write_bytes(kept)  # as after a kill
        finish(psi_session, aligned, proof)
        assert sorted(f.name for f in (state / JOB).iterdir()) == ["binding.json", "common"]
        with pytest.raises(PrivacyError, match="it raises no more points"):
            party.psi_session(WELCOME).begin(points)
        shutil.rmtree(state / JOB)
        with pytest.raises(PrivacyError, match="it raises no more points"):
            party.psi_session(WELCOME).begin(points)
        assert not (state / JOB).exists()
        assert [e.kind for e in ledger.entries()] == ["open", "align", "aligned"]


def test_a_label_party_names_no_rows_that_it_does_not_have(tmp_path):
    ids = people(np.random.default_rng(18), 300)
    few = [*ids[:2], "P999"]
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        party = shop(ids, ledger=ledger, state=tmp_path / "state")
        label = PsiPeer(JOB, "label", kept_secret(None), key_digests(_bytes(few)), RULES)
        psi_session = party.psi_session(WELCOME)
        psi_session.begin(label.pieces())
        (shown,) = psi_session.pieces()
        everyone = packed(np.arange(300), 300)
        whole = psi_session._digests[
            Common.of(psi_session._digests, np.arange(300)).rows(psi_session._digests)
        ]
        known = proof_of(key_digests(_bytes(sorted(few))))
        lie = Aligned(JOB, shown.tag, 300, 300, everyone, known.share)
        claim = psi_session.claim(lie)
        guess = known.with_feature(JOB, claim.share)
        assert guess.feature != claim.proof  # it now knows that its only guess was wrong
        for proof in (bytes(32), guess.label, guess.feature, claim.proof):
            with pytest.raises(PeerError, match="does not prove that it has the rows"):
                psi_session.finish(lie, Proof(JOB, proof))
        assert party.psi_session(WELCOME).claim(lie) == claim  # resumed, it answers the same
        with pytest.raises(PeerError, match="not aligned yet"):
            party.release(WELCOME)
        assert [e.kind for e in ledger.entries()] == ["open", "align"]
        assert not (tmp_path / "state" / JOB / "common").exists()

        # Another half of a proof would be a second guess, even if it is right.
        right = proof_of(whole)
        for other in (
            Aligned(JOB, shown.tag, 300, 300, everyone, right.share),
            Aligned(JOB, shown.tag, 300, 150, packed(np.arange(150), 300), known.share),
        ):
            for again in (psi_session, party.psi_session(WELCOME)):
                with pytest.raises(PrivacyError, match="now names different common rows"):
                    again.claim(other)


def test_a_label_party_that_has_the_rows_proves_it_and_may_not_change_its_mind(tmp_path):
    ids = people(np.random.default_rng(18), 300)
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        party = shop(ids, ledger=ledger, state=tmp_path / "state")
        label = PsiPeer(JOB, "label", kept_secret(None), key_digests(_bytes(ids)), RULES)
        psi_session = party.psi_session(WELCOME)
        psi_session.begin(label.pieces())
        (shown,) = psi_session.pieces()
        everyone = packed(np.arange(300), 300)
        whole = psi_session._digests[
            Common.of(psi_session._digests, np.arange(300)).rows(psi_session._digests)
        ]
        proof = proof_of(whole)
        aligned = Aligned(JOB, shown.tag, 300, 300, everyone, proof.share)
        finish(psi_session, aligned, proof)
        psi_session.finish(aligned, Proof(JOB, bytes(32)))  # repeated: nothing happens
        half = Aligned(JOB, shown.tag, 300, 150, packed(np.arange(150), 300), proof.share)
        with pytest.raises(PrivacyError, match="now names different common rows"):
            party.psi_session(WELCOME).finish(half, Proof(JOB, bytes(32)))


class Swapper(op.MemoryChannel):
    """A feature party that swaps two raised points, so that a row it lacks counts as common."""

    def __init__(self, party, places):
        super().__init__(party)
        self.places, self.seen = places, []

    def met(self, side):
        places, raise_all = self.places, self._psi_session.raised

        def swapped(theirs):
            for points in raise_all(theirs):
                whole = [points.points[i : i + 32] for i in range(0, len(points.points), 32)]
                first, second = places(side)
                whole[first], whole[second] = whole[second], whole[first]
                yield replace(points, points=b"".join(whole))

        self._psi_session.raised = swapped
        return super().met(side)

    def tell(self, aligned, proof):
        self.seen.append(aligned)
        super().tell(aligned, proof)


def test_a_feature_party_cannot_test_guesses_at_a_row_that_only_the_label_party_has():
    """The party knows all common rows but one, which it made the label party call common.

    Everything that it received is compared with every digest that it can compute from a guess.
    """
    theirs = people(np.random.default_rng(20), 150)
    hidden = "P400"
    label = bank([*theirs, hidden])
    digests = label._rows.keys.digests()

    def places(side):
        """Return the places of the hidden row and of a common one in the secret order."""
        order = side.order.tolist()
        return order.index(150), order.index(0)

    channel = Swapper(shop(theirs), places)
    with pytest.raises(PeerError, match="does not prove that it has the common rows"):
        label.align([channel], WELCOME)
    (aligned,) = channel.seen
    assert aligned.count == 150
    sent = encode(aligned)
    for guess in [f"P{i:03d}" for i in range(390, 410)]:
        keys = key_digests(_bytes([*theirs[1:], guess]))
        ordered = keys[Common.of(keys, np.arange(150)).rows(keys)]
        mine = proof_of(ordered)
        for found in (
            hmac.digest(WELCOME.nonce, OLD + ordered.tobytes(), "sha256"),
            Keys.of_digests(ordered, np.arange(len(ordered))).digest(WELCOME.nonce),
            mine.share,
            mine.with_label(JOB, aligned.share).label,
            hashlib.sha256(ordered.tobytes()).digest(),
        ):
            assert found not in sent, guess
    assert bytes(digests[150]) not in sent


OLD = b"opboost rows of the label party 1\0"
"""The start of version 1's keyed digest, against which such a party could test guesses."""


def test_what_a_meeting_refuses_leaves_nothing_behind(tmp_path):
    ids = people(np.random.default_rng(19), 200)
    (good,) = PsiPeer(JOB, "label", kept_secret(None), key_digests(_bytes(ids)), RULES).pieces()
    large = key_digests(_bytes([str(i) for i in range(9000)]))
    long = list(PsiPeer(JOB, "label", kept_secret(None), large, RULES).pieces())
    other = PsiPeer("20260102T030406Z-01020304", "label", kept_secret(None), large, RULES)
    off = Points(JOB, "label", bytes(16), 200, 0, good.points[:-32] + b"\2" + bytes(31))
    twice = Points(JOB, "label", bytes(16), 200, 0, good.points[:32] * 200)
    with op.Ledger(tmp_path / "ledger", tmp_path / "key") as ledger:
        party = shop(ids, ledger=ledger, state=tmp_path / "state")
        for points, words in (
            ([off], "does not lie on the curve"),
            ([twice], "occurs twice"),
            ([], "are missing"),
            (long[:1], "are missing"),
            (long[::-1], "out of order"),
            ([long[0], good], "two secrets"),
            (other.pieces(), "another job or step"),
        ):
            with pytest.raises(WireError, match=words):
                party.psi_session(WELCOME).begin(points)
        assert [e.kind for e in ledger.entries()] == ["open"]
        assert not (tmp_path / "state").exists()
