"""The label party: trains on codes, asks for the values behind the cuts it used, owns the model.

Once it has a model, it also predicts new rows, for which feature parties hold some columns.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from opboost.boosting import make_booster
from opboost.boosting.booster import Booster, check_by_party, check_continues
from opboost.boosting.label_rules import check_label, check_no_missing
from opboost.budgets.budget import checked_total
from opboost.budgets.job_limit import check_record
from opboost.columns.codebook import CodedColumn
from opboost.columns.continued_columns import check_same_private
from opboost.config.sections import DEFAULT_HELD_OUT, Memory, unfit_for
from opboost.errors import ColumnError, ParameterError
from opboost.files.predict_without import check_left_out, check_taking_part
from opboost.parties.channel import (
    Channel,
    Weigh,
    check_channels,
    declined_to_all,
    refuse_all,
)
from opboost.parties.label.federated_prediction import predict_by_columns, predict_by_scores
from opboost.parties.label.federated_training import FederatedTraining, checked_rounds
from opboost.parties.label.known_rows import (
    check_presence,
    check_row_choice,
)
from opboost.parties.label.label_rows import LabelRows
from opboost.parties.label.model_with_parties import ModelWithParties
from opboost.parties.label.needed_columns import needed_columns
from opboost.parties.label.pilot_answer import pilot_answer
from opboost.parties.label.predictions import (
    Predicted,
    check_no_absence,
    check_own,
)
from opboost.parties.label.received_release import (
    ReceivedRelease,
    named_apart,
    own_names,
)
from opboost.parties.label.row_alignment import RowAlignment
from opboost.parties.label.score_query import (
    check_scores,
    score_task,
)
from opboost.parties.label.split_query import Ask
from opboost.parties.message_checks import check_private, check_total
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Schema, Weights, Welcome, job_number
from opboost.psi.align_rules import AlignRules, RowChoice, checked_rows
from opboost.psi.row_keys import Normalisation, row_keys
from opboost.psi.table_keys import Keys
from opboost.training.continued_model import check_same_labels, check_same_own
from opboost.training.denoised_rows import Choice, check_choice
from opboost.training.feature_matrix import OwnTable
from opboost.training.held_out_score import checked_share
from opboost.training.own_trees_first import check_adds_trees
from opboost.training.score_by_party import SMALLEST_LEAF
from opboost.training.targets import as_numbers, label_kind
from opboost.training.training_settings import Structure

if TYPE_CHECKING:
    from opboost.estimators import OpBoostClassifier, OpBoostRegressor

    Estimator = OpBoostClassifier | OpBoostRegressor


class LabelParty:
    """The party that holds the label, and perhaps features of its own.

    Args:
        features: The label party's own columns, or None.
        y: The label, one value per row of the feature parties; None for rows to be predicted.
        booster, booster_params, random_state, denoise: As for ``op.OpBoostClassifier``.
        task: ``"classify"``, ``"regress"``, or ``"auto"``, which treats text, truth values and
            numbers with two distinct values as classes.
        ids: Row IDs, or keys as bytes, which are used unchanged: no normalisation is applied to
            them.  Needed if feature parties have IDs.  The parties compare a keyed digest of all
            IDs in order.  For a table that is not in memory, pass ``Keys``.
        align: As for ``op.FeatureParty``.  With ``"psi"`` rows are matched privately.
        rows: ``"common"`` trains on the rows that all parties have.  ``"mine"`` trains on all rows
            of the label party; if a party does not know a person, its columns count as not sent.
            That assumes that absence says nothing about the label.  Feature parties must agree to
            it (``op.FeatureParty(rows="mine")``): each learns which of its people the label party
            has.
        presence: With ``rows="mine"``: whether the model gets a column (``"known to shop"``) that
            says whether a feature party knows the person.  Use it if absence does say something
            about the label.
        ask: Which values a split query asks for.  ``"used"`` asks for those behind the model's
            cuts, which reveals something about the labels.  ``"all"`` asks for every value of every
            column, which reveals nothing about them.  ``"if-needed"`` is ``"used"``, but sends no
            query if the release already contains the values.  ``"auto"`` is ``"all"`` for a party
            whose release contains its values, if no column has more than 256 of them, and
            ``"used"`` for any other party.
        memory: ``"external"`` leaves the received columns on disk, denoises them there and trains
            XGBoost from disk, one block at a time.
        record: The most that all feature parties together may reveal about one person.  If their
            plans add up to more, they are refused before anything is drawn.
        share_weights: Whether a party with a pilot is sent the weights of its columns, which reveal
            something about the labels.  Without weights, its columns are drawn evenly for each
            person.
        weights_epsilon: The level of randomised response applied to each label before columns are
            weighed; None for no randomised response.
        held_out: The share of rows on which a second model, trained without them, is scored
            (``model.held_out_score_``); 0 switches the score off.  The returned model learns from
            all rows.
        early_stopping_rounds: Stop training after this many rounds without improvement on a share
            of the rows (``held_out``, or a fifth if that is 0), from which the model does not
            learn.  None trains all rounds on all rows.
        continue_from: A model of the same parties, columns and declarations, to which trees are
            added on these rows.  A person in both training runs is charged for both.
        structure: ``"by-party"`` restricts each tree to the columns of one party, so that the score
            is a sum over parties.
        share_trees: Whether predictions may show a feature party its own trees, so that it can
            release a score instead of columns.  Splits and leaf values reveal more about labels
            than a split query does.
        smallest_leaf: The fewest people in a leaf that a feature party is shown.

    ``train`` returns an ordinary fitted estimator.  It can predict, be explained and be saved, like
    one that was trained on one machine.  ``predict`` applies it to rows for which other parties
    hold some columns.
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
        ask: Ask = "auto",
        align: AlignRules | Literal["psi", "given"] = "given",
        rows: RowChoice = "common",
        presence: bool = False,
        memory: Memory = "internal",
        record: float | None = None,
        share_weights: bool = True,
        weights_epsilon: float | None = None,
        held_out: float = DEFAULT_HELD_OUT,
        early_stopping_rounds: int | None = None,
        continue_from: Estimator | None = None,
        structure: Structure = "free",
        share_trees: bool = False,
        smallest_leaf: int = SMALLEST_LEAF,
    ) -> None:
        check_choice(denoise)
        held_out = checked_share(held_out)
        early_stopping_rounds = checked_rounds(early_stopping_rounds, memory)
        if type(smallest_leaf) is not int or smallest_leaf < 1:
            raise ParameterError(
                f"smallest_leaf is a whole number of people from 1; got {smallest_leaf!r}."
            )
        self._share_trees = share_trees
        if structure not in ("free", "by-party"):
            raise ParameterError(f"structure is 'free' or 'by-party'; got {structure!r}.")
        if structure == "by-party":
            check_by_party(booster)
        if weights_epsilon is not None and not 0 < weights_epsilon < float("inf"):
            raise ParameterError(
                f"weights_epsilon must be a positive, finite number; got {weights_epsilon!r}."
            )
        if ask not in get_args(Ask):
            known = ", ".join(map(repr, get_args(Ask)))
            raise ParameterError(f"ask must be one of {known}; got {ask!r}.")
        self._share_weights, self._weights_epsilon = share_weights, weights_epsilon
        if problem := unfit_for(memory, booster):
            raise ParameterError(f"{problem}.")
        self._record = 0.0 if record is None else checked_total(record)
        label = None if y is None else np.asarray(y)
        sized = next((part for part in (label, features, ids) if part is not None), None)
        if sized is None:
            raise ParameterError("Rows without a label need features=, or ids=[...].")
        if features is not None and len(features) != len(sized):
            raise ParameterError(
                f"The label has {len(sized):,} rows, the label party's features {len(features):,}."
            )
        if features is not None and y is not None:  # refuse before anybody releases anything
            OwnTable.of(features)
        choice = checked_rows(rows)
        check_row_choice(choice, presence, memory, continue_from)
        if choice == "mine" and y is not None:
            check_adds_trees(booster)
        self._rules = AlignRules.of(align)
        keys = _row_keys(ids, len(sized), self._rules)
        self._rows = LabelRows(len(sized), features, label, keys, choice, presence)
        self._earlier = continue_from
        self._training: FederatedTraining | None = None
        if label is not None:
            check_no_missing(label)
            kind = label_kind(label, task)
            if kind == "regress":
                check_label(booster_params, as_numbers(label))
            estimator_settings = {
                "booster": booster,
                "booster_params": booster_params,
                "denoise": denoise,
                "random_state": random_state,
            }
            self._training = FederatedTraining(
                kind,
                estimator_settings,
                ask=ask,
                memory=memory,
                structure=structure,
                held_out=held_out,
                early_stopping=early_stopping_rounds,
                continue_from=continue_from,
                smallest_leaf=smallest_leaf,
            )
        if continue_from is not None:
            if not hasattr(continue_from, "trained_model_"):
                raise ParameterError(
                    "continue_from is a fitted estimator; got "
                    f"{type(continue_from).__name__}. Load a file first: op.load(path)."
                )
            if memory == "external":
                raise ParameterError("A model is continued in memory: leave memory='external' out.")
            check_continues(make_booster(booster, booster_params), continue_from.trained_)
            if self._training is not None:
                target = self._training.target(label)
                check_same_labels(continue_from.trained_model_, target.labels, target.task)
                check_same_own(continue_from.trained_model_, OwnTable.of(features))

    def check_training(self) -> None:
        """Refuse a label or a booster that cannot be trained, before anybody releases."""
        self._learning().rehearse(self._rows.y)

    def train(
        self,
        channels: Sequence[Channel],
        *,
        welcome: Welcome | None = None,
        state: Path | None = None,
    ) -> Estimator:
        """Receive every party's release, train, ask for split values, and put them into the model.

        ``state`` is a folder that keeps the model in codes until its split values arrive, so that a
        restarted label party asks the same question again.
        """
        return self.train_model(channels, welcome=welcome, state=state).estimator()

    def train_model(
        self,
        channels: Sequence[Channel],
        *,
        welcome: Welcome | None = None,
        state: Path | None = None,
    ) -> ModelWithParties:
        """Train as :meth:`train` does; the result can be saved without loading scikit-learn."""
        check_channels(channels)
        training = self._learning()
        welcome = self._welcome(welcome)
        self.check_parties([channel.party for channel in channels])
        self.agree(channels, welcome)
        if self._rules is not None:
            aligned = self.align(channels, welcome, state)
            return aligned.train_model(channels, welcome=welcome, state=state)
        training.check_watching(self._rows.y)
        self._check_record(channels, welcome)
        self._rows.check_given(channels, welcome)
        offers = [
            self._offer(channel, welcome, self.weigher(channel, welcome)) for channel in channels
        ]
        offers = named_apart(offers, own_names(OwnTable.of(self._rows.own).columns))
        self._check_continued(channels, offers)
        return training.train(channels, offers, self._rows, state)

    def check_parties(self, parties: Sequence[str]) -> None:
        """Refuse parties that do not fit the continued model or the own columns."""
        if self._earlier is not None:
            needed_columns(self._earlier, parties)
        if self._rows.presence:
            check_presence(self._rows.own, parties)

    def agree(self, channels: Sequence[Channel], welcome: Welcome) -> None:
        """Tell every party which columns and values the job needs, before anybody draws.

        A continued model needs the columns of its training.  It also needs the values of their
        codes, as does early stopping.
        """
        stops_early = self._training is not None and self._training.early_stopping is not None
        if self._earlier is None and not stops_early:
            return
        names = [channel.party for channel in channels]
        needed = {} if self._earlier is None else needed_columns(self._earlier, names)
        for channel in channels:
            columns = needed.get(channel.party, ())
            channel.agree(replace(self._welcome(welcome), columns=columns, values=True))

    def _check_continued(self, channels: Sequence[Channel], offers: list[ReceivedRelease]) -> None:
        """Refuse columns that differ from the continued model's, and tell every party."""
        if self._earlier is None:
            return
        try:
            private = [c for offer in offers for c in offer.private]
            check_same_private(self._earlier.trained_model_.layout.private, private)
        except ColumnError:
            refuse_all(channels, "The columns are not those of the model that is continued.")
            raise

    def predict(
        self,
        model: Estimator,
        channels: Sequence[Channel],
        *,
        welcome: Welcome | None = None,
        state: Path | None = None,
        release: Literal["columns", "score"] = "columns",
        without: Sequence[str] = (),
    ) -> Predicted:
        """Receive every party's release of these rows, and predict the rows that all parties have.

        With ``rows="mine"`` all rows are predicted, even those that no party knows.  ``without``
        names parties of the model that do not take part: their columns count as not sent.

        The parties release the columns that the model was trained on, under the same declarations.
        The prediction then equals that of ``model.predict(desensitize=True)`` with the same noise.
        With ``release="score"`` each party instead releases its part of the score, once per person;
        this needs a model trained with ``structure="by-party"``.

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
        names = [channel.party for channel in channels]
        check_left_out(model, without, names)
        if channels or not without:
            check_channels(channels)
        welcome = self._welcome(welcome)
        check_own(model, self._rows.own)
        if release == "score":
            check_no_absence(self._rows.choice, without)
            check_scores(model, names, self._share_trees)
        elif release != "columns":
            raise ParameterError(f"release is 'columns' or 'score'; got {release!r}.")
        else:
            check_taking_part(model, without, names)
        if release == "score":
            for channel in channels:  # nobody draws before all have accepted
                channel.want_score(score_task(model, channel.party, welcome.job))
        if self._rules is not None and channels:
            aligned = self.align(channels, welcome, state)
            return aligned.predict(
                model, channels, welcome=welcome, release=release, without=without
            )
        self._check_record(channels, welcome)
        self._rows.check_given(channels, welcome)
        if release == "score":
            with declined_to_all(channels):
                found = predict_by_scores(model, self._rows, channels, welcome, self._check)
        else:
            offers = [self._offer(channel, welcome) for channel in channels]
            found = predict_by_columns(model, self._rows, channels, offers, without)
        for channel in channels:
            channel.close()
        return found

    def align(
        self, channels: Sequence[Channel], welcome: Welcome, state: Path | None = None
    ) -> LabelParty:
        """Find the rows that all parties have, tell each party which they are, and keep only those.

        Every party orders the common rows by the digests of their keys.  ``state`` holds the
        secrets during the alignment, and the outcome afterwards.
        """
        if self._rules is None:
            raise ParameterError("Rows are given, or aligned already. Build it with align='psi'.")
        digests = self._rows.keys.digests()
        match = RowAlignment(
            self._rules, self._rows.choice, self._rows.y, self._check_watching, self._check_record
        )
        rows, known = match.found(channels, welcome, digests, state)
        made = copy(self)
        made._rules, made._rows = None, self._rows.aligned(rows, digests, known, welcome.nonce)
        return made

    def _welcome(self, welcome: Welcome | None) -> Welcome:
        """Return the job's first message, with its limit per person and its choice of rows."""
        return replace(welcome or _new_job(), record=self._record, rows=self._rows.choice)

    def _check_record(self, channels: Sequence[Channel], welcome: Welcome) -> None:
        """Refuse parties whose plans add up to more than the job allows, before anything is drawn.

        If rows are aligned, this happens before any party knows the common rows.
        """
        if self._record:
            totals = {channel.party: channel.introduced(welcome) for channel in channels}
            check_record(totals, self._record)

    def _learning(self) -> FederatedTraining:
        """Return this party's training; refuse if it has no label."""
        if self._training is None:
            raise ParameterError("There is no label to learn. Give y=..., or use predict.")
        return self._training

    def _check_watching(self, y: Any) -> None:
        """Before anybody draws, refuse labels with too few rows to hold out for early stopping."""
        if self._training is not None:
            self._training.check_watching(y)

    def _offer(
        self, channel: Channel, welcome: Welcome, weigh: Weigh | None = None
    ) -> ReceivedRelease:
        schema = channel.open(welcome, weigh)
        check_private(schema.private())
        self._check(schema, channel, welcome)
        return ReceivedRelease(channel, schema, schema.private())

    def _check(self, schema: Schema, channel: Channel, welcome: Welcome) -> None:
        """Refuse a release of other rows, or with a larger total than the party announced."""
        self._rows.check_schema(schema, channel.party, welcome)
        if self._record:
            check_total(schema, channel.introduced(welcome))

    def weigher(self, channel: Channel, welcome: Welcome) -> Weigh:
        """Return the function that answers a party's pilot; rows must be given or aligned first."""

        def weigh(schema: Schema, columns: Iterator[tuple[ColumnHead, CodedColumn]]) -> Weights:
            self._check(schema, channel, welcome)
            if not self._share_weights:
                return Weights(welcome.job, ())
            target = self._learning().target(self._rows.y)
            if self._rows.known is not None:
                target = target.where(self._rows.known.places[channel.party])
            return pilot_answer(schema, columns, target, self._weights_epsilon)

        return weigh


def _row_keys(ids: Sequence[Any] | Keys | None, count: int, rules: AlignRules | None) -> Keys:
    """Return the keys of the rows' IDs; refuse IDs that do not fit the rows."""
    if ids is None:
        if rules is not None:
            raise ParameterError("Rows are matched by their IDs. Give ids=[...].")
        return Keys.held(())
    if len(ids) != count:
        raise ParameterError(f"There are {len(ids):,} IDs for {count:,} rows.")
    if isinstance(ids, Keys):
        return ids
    if all(isinstance(i, bytes) for i in ids):
        return Keys.held(ids)
    rule = rules.normalisation if rules else Normalisation()
    return Keys.held(row_keys([list(ids)], ["ids"], rule))


def _new_job() -> Welcome:
    return Welcome(job_number(secrets.token_bytes(4)), secrets.token_bytes(32), b"")
