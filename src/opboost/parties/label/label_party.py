"""The label party: trains on codes, asks for the values behind the cuts it used, owns the model.

With a model it also predicts new rows, of whose columns feature parties hold a part.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, Literal

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.boosting.booster import Booster, Replace, Trained
from opboost.columns.codebook import distinct
from opboost.columns.dataframes import column_names, rows_of
from opboost.config.sections import Memory, unfit_for
from opboost.errors import DataError, ParameterError, PeerError, PrivacyError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.estimators.boosted import kind_for
from opboost.estimators.learner import Books
from opboost.parties.alignment import PsiPeer, common_to_all, kept_secret
from opboost.parties.channel import Channel
from opboost.parties.label.model_in_codes import first_books, trained_once
from opboost.parties.label.predictions import Predicted, check_own, of_model
from opboost.parties.label.received_release import (
    ReceivedRelease,
    named_apart,
    of_rows,
    own_names,
    promise,
    seed,
    sent,
    sent_by_all,
    stored_by_all,
)
from opboost.parties.label.split_query import SplitQuestion
from opboost.parties.message_checks import check_private, check_schema
from opboost.parties.row_proof import RowProof
from opboost.protocol.messages import Welcome, job_number
from opboost.protocol.stored_columns import StoredColumn
from opboost.psi.align_rules import AlignRules
from opboost.psi.common_rows import Common
from opboost.psi.row_keys import Digests, Normalisation, row_keys
from opboost.psi.table_keys import Keys, refuse_repeats
from opboost.storage import atomic_files
from opboost.training.denoised_rows import Choice
from opboost.training.feature_matrix import Released, own_columns

Estimator = OpBoostClassifier | OpBoostRegressor


class LabelParty:
    """The party that holds the label, and perhaps features of its own.

    Args:
        features: Its own columns, or None.
        y: The label, a row for each row of the feature parties; None for rows to be predicted.
        booster, booster_params, random_state, denoise: As for ``op.OpBoostClassifier``.
        task: ``"classify"``, ``"regress"``, or ``"auto"``: text, truth values and two different
            numbers are classes.
        ids: Row IDs, or keys as bytes, which are taken as they are: no normalisation is applied to
            them.  Needed where feature parties have them, and compared by a keyed digest of all of
            them in their order.  Keys of a table that is not in memory are ``Keys``.
        align: As for ``op.FeatureParty``.  With ``"psi"`` the model is trained on the rows that all
            parties have.
        ask: ``"if-needed"`` sends no split query where a release already tells everything.
        memory: ``"external"`` leaves what came on disk and trains XGBoost from there, a block at a
            time, on rows as they came: ``denoise="auto"`` does not denoise then.

    ``train`` returns an ordinary fitted estimator: it predicts, explains itself and is saved like
    one that was trained on one machine.  ``predict`` uses it for rows of which others hold a part.
    """

    def __init__(
        self,
        features: Any,
        y: Any,
        *,
        booster: str | Booster = "xgboost",
        booster_params: dict[str, Any] | None = None,
        denoise: Choice = "auto",
        random_state: Any = None,
        task: Literal["auto", "classify", "regress"] = "auto",
        ids: Sequence[Any] | Keys | None = None,
        ask: Literal["always", "if-needed"] = "always",
        align: AlignRules | Literal["psi", "given"] = "given",
        memory: Memory = "internal",
    ) -> None:
        if problem := unfit_for(memory, booster, denoise):
            raise ParameterError(f"{problem}.")
        self._memory = memory
        self._own, self._y = features, None if y is None else np.asarray(y)
        sized = next((part for part in (self._y, features, ids) if part is not None), None)
        if sized is None:
            raise ParameterError("Rows without a label need features=, or ids=[...].")
        if features is not None and len(features) != len(sized):
            raise ParameterError(
                f"The label has {len(sized):,} rows, the label party's features {len(features):,}."
            )
        if features is not None and y is not None:  # refused before anybody releases anything
            own_columns(features, column_names(features))
        self._count = len(sized)
        self._places: IntArray | None = None  # all rows, in the order of the table
        self._rules, self._ask = AlignRules.of(align), ask
        self._ids = self._keys(ids)
        self._kind = None if self._y is None else kind_for(self._y, task)
        self._settings = {
            "booster": booster,
            "booster_params": booster_params,
            "denoise": denoise,
            "random_state": random_state,
        }

    def train(
        self,
        channels: Sequence[Channel],
        *,
        welcome: Welcome | None = None,
        state: Path | None = None,
    ) -> Estimator:
        """Receive every party's release, train, ask for split values, and put them into the model.

        ``state`` is a folder in which a model in codes waits for its split values, so that a
        restart asks the same question again.
        """
        _check_channels(channels)
        if self._kind is None:
            raise ParameterError("There is no label to learn. Give y=..., or use predict.")
        welcome = welcome or _new_job()
        if self._rules is not None:
            return self.align(channels, welcome, state).train(
                channels, welcome=welcome, state=state
            )
        offers = [self._offer(channel, welcome) for channel in channels]
        names = [] if self._own is None else column_names(self._own)
        offers = named_apart(offers, own_names(own_columns(self._own, names)))
        with self._aside(state) as disk:
            return self._trained(channels, offers, state, disk)

    def _trained(
        self,
        channels: Sequence[Channel],
        offers: list[ReceivedRelease],
        state: Path | None,
        disk: Path | None,
    ) -> Estimator:
        """Train on what came: in memory, or unpacked onto the disk."""
        assert self._kind is not None
        released: dict[Hashable, Sequence[Released]] = {}
        stored: dict[Hashable, Sequence[StoredColumn]] = {}
        for offer in offers:
            if disk is None:
                released |= offer.received()
            else:
                stored |= offer.stored(disk)
        y, own = self._y, self._own
        there = sent_by_all(offers, released) if disk is None else stored_by_all(offers, stored)
        if there is not None:
            own, y = _where(own, there), _where(y, there)
            released = of_rows(released, there)
            stored = {name: [c.where(there) for c in columns] for name, columns in stored.items()}
        private = tuple(c for offer in offers for c in offer.private)
        settings = dict(self._settings)
        if settings["random_state"] is None:  # the same codes, the same model
            settings["random_state"] = seed(offers)
        estimator = self._kind({c.name: c.mechanism for c in private}, **settings)
        folder = self._folder(state)
        estimator.fit_released(
            y,
            own,
            private,
            released,
            promise(offers),
            stored=None if disk is None else stored,
            sent=sent(offers),
            train=lambda booster, problem: trained_once(booster, problem, folder),
            values=lambda trained, books: self._values(offers, trained, first_books(books, folder)),
        )
        for channel in channels:
            channel.close()
        return estimator

    def predict(
        self,
        model: Estimator,
        channels: Sequence[Channel],
        *,
        welcome: Welcome | None = None,
        state: Path | None = None,
    ) -> Predicted:
        """Receive every party's release of these rows, and predict those that all parties have.

        The parties release what the model was trained on, under the same declarations; then the
        prediction is the one that ``model.predict(desensitize=True)`` makes of the same noise.

        >>> import numpy as np, pandas as pd, opboost as op
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"id": range(600), "basket": rng.uniform(0, 500, 600)})
        >>> grid = op.Domain(1, 10)
        >>> private = op.PrivateColumn(
        ...     "basket", op.NumericMapping(grid, (0, 500)), op.ClampMap(grid, 0.64)
        ... )
        >>> known, new = table[:400], table[400:]
        >>> shop = op.FeatureParty(known, [private], ids="id")
        >>> bank = op.LabelParty(None, known["basket"] > 250, ids=known["id"].tolist())
        >>> model = bank.train([op.MemoryChannel(shop)])
        >>> shop = op.FeatureParty(new, [private], ids="id", align="psi")
        >>> bank = op.LabelParty(None, None, ids=list(range(450, 700)), align="psi")
        >>> found = bank.predict(model, [op.MemoryChannel(shop)])
        >>> len(found.rows), found.probabilities.shape  # those whom both know: 450 to 599
        (150, (150, 2))
        >>> bool(np.mean(found.prediction == (table["basket"] > 250)[450:600]) > 0.75)
        True
        """
        _check_channels(channels)
        welcome = welcome or _new_job()
        check_own(model, self._own)
        if self._rules is not None:
            return self.align(channels, welcome, state).predict(model, channels, welcome=welcome)
        offers = [self._offer(channel, welcome) for channel in channels]
        offers = named_apart(offers, own_names(model.own_columns_))
        try:
            released = of_model(model, offers)
        except PeerError:
            for channel in channels:
                channel.refuse("What came is not what the model was trained on.")
            raise
        places = np.arange(self._count) if self._places is None else self._places
        own, there = self._own, sent_by_all(offers, released)
        if there is not None:
            released, own, places = of_rows(released, there), _where(own, there), places[there]
        found = Predicted.of(model, own, released, places, promise(offers))
        for channel in channels:
            channel.close()
        return found

    def align(
        self, channels: Sequence[Channel], welcome: Welcome, state: Path | None = None
    ) -> LabelParty:
        """Find the rows that all parties have, tell each which they are, and keep those alone.

        Common rows are in the order of their keys' digests, at every party.  ``state`` holds the
        secrets while this goes on, and the outcome afterwards.
        """
        if self._rules is None:
            raise ParameterError("Rows are given, or aligned already. Build it with align='psi'.")
        digests = self._ids.digests()
        if state is None:
            rows = self._meet(channels, welcome, None, digests)
            return self._restricted(rows, digests)
        kept = state / "common"
        if not kept.exists():
            rows = self._meet(channels, welcome, state, digests)
            atomic_files.write(
                kept, atomic_files.with_checksum(Common.of(digests, rows).to_bytes())
            )
        for channel in channels:
            channel.forget()
        shutil.rmtree(state / "align", ignore_errors=True)
        common = Common.from_bytes(atomic_files.read_checked(kept, atomic_files.AT_LABEL_PARTY))
        return self._restricted(common.rows(digests), digests)

    def _meet(
        self, channels: Sequence[Channel], welcome: Welcome, state: Path | None, digests: Digests
    ) -> IntArray:
        assert self._rules is not None
        refuse_repeats(digests)
        sides = []
        for channel in channels:
            secret = kept_secret(state and state / "align" / channel.party)
            sides.append(PsiPeer(welcome.job, "label", secret, digests, self._rules))
        for channel, side in zip(channels, sides, strict=True):
            channel.offer(welcome, side)
        matches = [channel.met(side) for channel, side in zip(channels, sides, strict=True)]
        rows = Common.of(digests, common_to_all(matches)).rows(digests)
        try:
            self._rules.check_common(len(rows))
            if self._y is not None and len(distinct(self._y[rows])) < 2:
                raise DataError("The label holds one value only in the rows that all parties have")
        except (PrivacyError, DataError):
            if state is not None:
                atomic_files.write(state / "stopped", b"too few rows in common")
            for channel in channels:
                channel.refuse("The parties have too few rows in common to learn from.")
            raise
        if state is not None:
            (state / "stopped").unlink(missing_ok=True)
        ids = Keys.of_digests(digests[rows]).digest(welcome.nonce)
        for channel, match in zip(channels, matches, strict=True):
            # Kept with the points, so that a label party that was killed repeats itself.
            secret = kept_secret(state and state / "align" / channel.party / "proof")
            proof = RowProof.of(secret, ids)
            channel.tell(match.told(welcome.job, rows, proof.share), proof)
        return rows

    def _restricted(self, rows: IntArray, digests: Digests) -> LabelParty:
        """The same party with some of its rows, in the order given."""
        made = copy(self)
        made._own = None if self._own is None else rows_of(self._own, rows)
        made._y = None if self._y is None else self._y[rows]
        made._rules, made._places, made._count = None, rows, len(rows)
        made._ids = Keys.of_digests(digests[rows])
        return made

    @contextmanager
    def _aside(self, state: Path | None) -> Iterator[Path | None]:
        """A folder for codes and bins while a model is trained from disk; a kill leaves a ``.part``
        that the next run takes away."""
        if self._memory == "internal":
            yield None
            return
        if state is not None:
            state.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=state, prefix=".training-", suffix=".part") as folder:
            yield Path(folder)

    def _keys(self, ids: Sequence[Any] | Keys | None) -> Keys:
        if ids is None:
            if self._rules is not None:
                raise ParameterError("Rows are matched by their IDs. Give ids=[...].")
            return Keys.held(())
        if len(ids) != self._count:
            raise ParameterError(f"There are {len(ids):,} IDs for {self._count:,} rows.")
        if isinstance(ids, Keys):
            return ids
        if all(isinstance(i, bytes) for i in ids):
            return Keys.held(ids)
        rule = self._rules.normalisation if self._rules else Normalisation()
        return Keys.held(row_keys([list(ids)], ["ids"], rule))

    def _folder(self, state: Path | None) -> Path | None:
        """Where the model in codes is kept: other settings, another model."""
        if state is None:
            return None
        settings = repr([*sorted(self._settings.items(), key=lambda i: i[0]), self._memory])
        return state / f"trained-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"

    def _offer(self, channel: Channel, welcome: Welcome) -> ReceivedRelease:
        schema = channel.open(welcome)
        check_private(schema.private())
        digest = self._ids.digest(welcome.nonce)
        check_schema(schema, channel.party, welcome.job, self._count, digest)
        return ReceivedRelease(channel, schema, schema.private())

    def _values(
        self, offers: list[ReceivedRelease], trained: Trained, books: Books
    ) -> dict[int, Replace]:
        """Ask every party for the values behind the cuts of its columns."""
        questions, feature = [], 0
        for offer in offers:
            question = SplitQuestion.of(offer, trained, books, feature)
            feature += question.width
            needed = any(books[f] is None for f in question.numbers)
            if self._ask == "always" or needed:
                offer.channel.ask(question.query(offer.schema.job))
                questions.append(question)
        found: dict[int, Replace] = {
            f: b.last_of if trained.left_up_to else b.value_of
            for f, b in books.items()
            if b is not None
        }
        for question in questions:
            found |= question.answered()
        return found


def _where(table: Any, rows: BoolArray) -> Any:
    """Some rows of a table, if there is one."""
    return None if table is None else rows_of(table, np.flatnonzero(rows))


def _new_job() -> Welcome:
    return Welcome(job_number(secrets.token_bytes(4)), secrets.token_bytes(32), b"")


def _check_channels(channels: Sequence[Channel]) -> None:
    if not isinstance(channels, Sequence) or not channels:
        raise ParameterError("Give a list of channels, to at least one feature party.")
    for channel in channels:
        if not hasattr(channel, "open") or not hasattr(channel, "party"):
            raise ParameterError(
                f"A party is met through a channel; got {type(channel).__name__}. "
                "In one process: [op.MemoryChannel(party)]."
            )
    names = [channel.party for channel in channels]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"Two channels lead to a party {name!r}. Names tell them apart.")
