"""The label party: trains on codes, asks for the values behind the cuts it used, owns the model.

With a trained model it also predicts new rows, some of whose columns feature parties hold.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.boosting import make_booster
from opboost.boosting.booster import Booster, check_by_party, check_continues
from opboost.boosting.label_rules import check_label, check_no_missing
from opboost.budgets.budget import checked_total
from opboost.budgets.job_limit import check_record
from opboost.columns.codebook import CodedColumn
from opboost.columns.continued_columns import check_same_private
from opboost.columns.dataframes import rows_of
from opboost.config.sections import DEFAULT_HELD_OUT, Memory, unfit_for
from opboost.errors import ColumnError, DataError, ParameterError, PeerError
from opboost.files.predict_without import check_left_out, check_taking_part
from opboost.parties.channel import (
    Channel,
    Weigh,
    check_channels,
    declined_to_all,
    refuse_all,
)
from opboost.parties.label.known_rows import (
    KnownRows,
    check_presence,
    check_row_choice,
    check_some_known,
    present,
    with_model_presence,
    with_presence,
)
from opboost.parties.label.model_in_codes import digest_of, first_books, trained_once
from opboost.parties.label.model_with_parties import ESTIMATORS, ModelWithParties
from opboost.parties.label.needed_columns import needed_columns
from opboost.parties.label.pilot_answer import pilot_answer
from opboost.parties.label.predictions import (
    Predicted,
    check_no_absence,
    check_offers,
    check_own,
    names_of_party,
    of_model,
)
from opboost.parties.label.received_release import (
    ReceivedRelease,
    named_apart,
    origins,
    own_names,
    promise,
    scores_later,
    seed,
    sent_by_all,
    stored_by_all,
)
from opboost.parties.label.row_alignment import RowAlignment
from opboost.parties.label.score_once import scored_once
from opboost.parties.label.score_query import (
    check_score_schema,
    check_scores,
    score_task,
    scores_of,
    with_scores,
)
from opboost.parties.label.split_query import Ask, ask_nothing, split_values
from opboost.parties.label.training_rehearsal import rehearse_training
from opboost.parties.message_checks import check_private, check_schema, check_total
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import Rows, Schema, Weights, Welcome, job_number
from opboost.psi.align_rules import AlignRules, RowChoice, checked_rows
from opboost.psi.row_keys import Digests, Normalisation, row_keys
from opboost.psi.table_keys import Keys
from opboost.training.absent_columns import marked_absent
from opboost.training.continued_model import check_same_labels, check_same_own
from opboost.training.denoised_rows import Choice, check_choice
from opboost.training.feature_matrix import Books, OwnTable
from opboost.training.held_out_rows import Split, split_rows
from opboost.training.held_out_score import checked_share
from opboost.training.own_trees_first import check_adds_trees, prepare_partly_known_rows
from opboost.training.released_columns import ReleasedColumn
from opboost.training.released_columns import rows_of as release_rows
from opboost.training.score_by_party import SMALLEST_LEAF, score_parts
from opboost.training.score_stored_rows import ReceivedOnDisk, score_stored
from opboost.training.score_training import Recipe, Scored, score_training
from opboost.training.targets import Target, as_numbers, label_kind
from opboost.training.train_model import (
    HeldOut,
    PreparedRows,
    prepare_watched_rows,
)
from opboost.training.trained_model import TrainedModel
from opboost.training.training_settings import Structure, TrainingSettings

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
            it (``op.FeatureParty(rows="mine")``): each learns whom it shares with the label party.
        presence: With ``rows="mine"``: whether the model gets a column (``"known to shop"``) that
            says whether a feature party knows the person.  Use it if absence does say something
            about the label.
        ask: Which values a split query asks for.  ``"used"`` asks for those behind the model's
            cuts, which reveals something about the labels.  ``"all"`` asks for every value of every
            column, which reveals nothing about them.  ``"if-needed"`` is ``"used"``, without a
            query if a release already contains everything.  ``"auto"`` is ``"all"`` for a party
            whose release contains its values, at most 256 per column, and ``"used"`` otherwise.
        memory: ``"external"`` leaves the received columns on disk, denoises them there and trains
            XGBoost from disk, one block at a time.
        record: The most that all feature parties together may reveal about one person.  If their
            plans add up to more, they are refused before anything is drawn.
        share_weights: Whether to send a party whose pilot releases first the weights of its
            columns, which reveal something about the labels.  Without them its people choose
            evenly.
        weights_epsilon: The level of randomised response applied to each label before columns are
            weighed; None for no randomised response.
        held_out: The share of rows on which a second model, trained without them, is scored
            (``model.held_out_score_``); 0 switches the score off.  The returned model learns from
            all rows.
        early_stopping_rounds: Stop training after this many rounds without improvement on a share
            of the rows (``held_out``, or a fifth), from which the model does not learn.  None
            trains all rounds on all rows.
        continue_from: A model of the same parties, columns and declarations, to which trees are
            added on these rows.  A person who is in both trainings is charged for both.
        structure: ``"by-party"`` restricts each tree to the columns of one party, so that the score
            is a sum over parties.
        share_trees: Whether predictions may show a feature party its own trees, so that it can
            release a score instead of columns.  Splits and leaf values reveal more about labels
            than a split query does.
        smallest_leaf: The fewest people in a leaf that a feature party is shown.

    ``train`` returns an ordinary fitted estimator: it predicts, explains itself and is saved like
    one that was trained on one machine.  ``predict`` applies it to rows of which other parties hold
    a part.
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
        self._held_out = checked_share(held_out)
        self._early_stopping = _checked_rounds(early_stopping_rounds, memory)
        if type(smallest_leaf) is not int or smallest_leaf < 1:
            raise ParameterError(
                f"smallest_leaf is a whole number of people from 1; got {smallest_leaf!r}."
            )
        self._share_trees, self._smallest_leaf = share_trees, smallest_leaf
        if structure not in ("free", "by-party"):
            raise ParameterError(f"structure is 'free' or 'by-party'; got {structure!r}.")
        if structure == "by-party":
            check_by_party(booster)
        self._structure: Structure = structure
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
        self._memory, self._record = memory, 0.0 if record is None else checked_total(record)
        self._own, self._y = features, None if y is None else np.asarray(y)
        sized = next((part for part in (self._y, features, ids) if part is not None), None)
        if sized is None:
            raise ParameterError("Rows without a label need features=, or ids=[...].")
        if features is not None and len(features) != len(sized):
            raise ParameterError(
                f"The label has {len(sized):,} rows, the label party's features {len(features):,}."
            )
        if features is not None and y is not None:  # refuse before anybody releases anything
            OwnTable.of(features)
        self._count = len(sized)
        self._places: IntArray | None = None  # all rows, in table order
        self._kept, self._presence = checked_rows(rows), presence
        self._known: KnownRows | None = None  # who knows which rows, once aligned
        check_row_choice(self._kept, presence, memory, continue_from)
        if self._kept == "mine" and y is not None:
            check_adds_trees(booster)
        self._rules, self._ask = AlignRules.of(align), ask
        self._ids = self._keys(ids)
        if self._y is not None:
            check_no_missing(self._y)
        self._kind = None if self._y is None else label_kind(self._y, task)
        if self._kind == "regress":
            check_label(booster_params, as_numbers(self._y))
        self._earlier = continue_from
        if continue_from is not None:
            if not hasattr(continue_from, "trained_model_"):
                raise ParameterError(
                    "continue_from is a fitted estimator; got "
                    f"{type(continue_from).__name__}. Load a file first: op.load(path)."
                )
            if memory == "external":
                raise ParameterError("A model is continued in memory: leave memory='external' out.")
            check_continues(make_booster(booster, booster_params), continue_from.trained_)
            if self._kind is not None:
                target = self._target(self._y)
                check_same_labels(continue_from.trained_model_, target.labels, target.task)
                check_same_own(continue_from.trained_model_, OwnTable.of(features))
        self._settings: dict[str, Any] = {
            "booster": booster,
            "booster_params": booster_params,
            "denoise": denoise,
            "random_state": random_state,
        }

    def check_training(self) -> None:
        """Refuse a label or a booster that cannot be trained, before anybody releases."""
        if self._kind is None:
            raise ParameterError("There is no label to learn. Give y=..., or use predict.")
        self._check_watching(self._y)
        booster, params = self._settings["booster"], self._settings["booster_params"]
        rehearse_training(booster, params, self._target(self._y))

    def train(
        self,
        channels: Sequence[Channel],
        *,
        welcome: Welcome | None = None,
        state: Path | None = None,
    ) -> Estimator:
        """Receive every party's release, train, ask for split values, and put them into the model.

        ``state`` is a folder in which a model in codes waits for its split values, so that after a
        restart the label party asks the same question again.
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
        if self._kind is None:
            raise ParameterError("There is no label to learn. Give y=..., or use predict.")
        welcome = self._welcome(welcome)
        self.check_parties([channel.party for channel in channels])
        self.agree(channels, welcome)
        if self._rules is not None:
            aligned = self.align(channels, welcome, state)
            return aligned.train_model(channels, welcome=welcome, state=state)
        self._check_watching(self._y)
        self._check_record(channels, welcome)
        self._check_given_rows(channels, welcome)
        offers = [
            self._offer(channel, welcome, self.weigher(channel, welcome)) for channel in channels
        ]
        offers = named_apart(offers, own_names(OwnTable.of(self._own).columns))
        self._check_continued(channels, offers)
        with self._aside(state) as disk:
            return self._trained(channels, offers, state, disk)

    def check_parties(self, parties: Sequence[str]) -> None:
        """Refuse parties that do not fit the continued model or the own columns."""
        if self._earlier is not None:
            needed_columns(self._earlier, parties)
        if self._presence:
            check_presence(self._own, parties)

    def agree(self, channels: Sequence[Channel], welcome: Welcome) -> None:
        """Tell every party what the job needs of its columns, before anybody draws.

        A continued model needs the columns of its training.  It also needs the values of their
        codes, as does early stopping.
        """
        if self._earlier is None and self._early_stopping is None:
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

    def _trained(
        self,
        channels: Sequence[Channel],
        offers: list[ReceivedRelease],
        state: Path | None,
        disk: Path | None,
    ) -> ModelWithParties:
        """Receive, prepare the rows, fit, ask for values, and replace cuts by them."""
        assert self._kind is not None
        release = self._released(offers) if disk is None else []
        stored = {} if disk is None else {n: c for o in offers for n, c in o.stored(disk).items()}
        y, own, there = self._y, self._own, None
        if self._kept == "mine":
            check_some_known(release, y)
            own = self._own_with_presence(offers, release)
        else:
            there = sent_by_all(offers, release) if disk is None else stored_by_all(offers, stored)
        if there is not None:
            own, y = _where(own, there), _where(y, there)
            release = release_rows(release, there)
            stored = {name: [c.where(there) for c in columns] for name, columns in stored.items()}
        params = dict(self._settings)
        if params["random_state"] is None:  # the same codes give the same model
            params["random_state"] = seed(offers)
        earlier = None if self._earlier is None else self._earlier.trained_model_
        settings = TrainingSettings.of(
            **params,
            name=ESTIMATORS[self._kind],
            continue_from=earlier,
            structure=self._structure,
            early_stopping=self._early_stopping,
        )
        owners = [o.channel.party for o in offers for _ in o.private]
        target, watched = self._target(y), None
        if self._early_stopping is not None:
            rows = self._watching(target, release, settings.seed)
            held = release_rows(release, rows.held)
            watched = HeldOut(held, _where(own, rows.held), target.y[rows.held])
            release, own = release_rows(release, rows.seen), _where(own, rows.seen)
            target = target.where(rows.seen)
        private = tuple(c for offer in offers for c in offer.private)
        if disk is None:
            prepare = prepare_watched_rows if self._kept == "common" else prepare_partly_known_rows
            prepared = prepare(list(release), OwnTable.of(own), target, settings, owners, watched)
        else:
            sent = {c.name: offer.sent for offer in offers for c in offer.private}
            received = ReceivedOnDisk(private, stored, sent, owners)
            prepared = received.prepared(OwnTable.of(own), target, settings)
        folder = self._folder(state)
        trained = trained_once(prepared.booster or settings.booster, prepared.problem, folder)
        books = first_books(prepared.books, folder)
        if earlier is None:
            values = split_values(offers, trained, books, self._ask)
        else:
            ask_nothing(offers)
            values = {}
        model = prepared.finished(trained, values)
        model = self._with_scores(model, prepared, books)
        for channel in channels:
            channel.close()
        promised = promise(offers)
        if self._held_out:

            def scored() -> Scored:
                table, share, recipe = OwnTable.of(own), self._held_out, Recipe.of(model)
                if disk is not None:
                    problem = prepared.problem
                    return score_stored(received, problem, table, target, settings, recipe, share)
                parties = {o.channel.party: [c.name for c in o.private] for o in offers}
                return score_training(
                    release,
                    table,
                    target,
                    settings,
                    recipe,
                    share,
                    parties=parties,
                    watched=watched,
                )

            score = scored_once(scored, self._held_out, folder)
            model = replace(model, score=score)
            if state is None:  # with a job folder, the command prints it
                print(score.line(total=promised.total + scores_later(offers)), file=sys.stderr)
        before = None if self._earlier is None else self._earlier.desensitizer_.account.counted()
        later = scores_later(offers)
        return ModelWithParties(
            self._kind, params, model, promised, origins(offers), later, before or {}
        )

    def _watching(
        self, target: Target, release: Sequence[ReleasedColumn], seed: int | None
    ) -> Split:
        """Return which rows are watched for early stopping, and which the model learns from."""
        if any(c.withheld for c in release):
            raise ParameterError(
                "early_stopping needs the values of released codes, and a party withholds them "
                "(codebook = 'cuts'). Leave early_stopping out, or let it send codebook = 'full'."
            )
        return self._watched_split(target, seed or 0)

    def _check_watching(self, y: Any) -> None:
        """Refuse labels with too few rows to watch for early stopping, before anybody draws."""
        if self._early_stopping is not None:
            self._watched_split(self._target(y), 0)

    def _watched_split(self, target: Target, seed: int) -> Split:
        """Hold out rows to watch for early stopping; their number follows from the labels alone."""
        split = split_rows(target, self._held_out or DEFAULT_HELD_OUT, seed)
        if split.unscored:
            raise DataError(
                f"No rows can watch the training: {split.unscored}",
                hint="Leave early_stopping out.",
            )
        return split

    def _with_scores(
        self, model: TrainedModel, prepared: PreparedRows, books: Books
    ) -> TrainedModel:
        """Return the model with the score tasks that parties get in predictions by score."""
        known = all(book is not None for book in books.values())
        if not model.layout.parties or not known or self._earlier is not None:
            return model
        draws, problem = prepared.rows.draws, prepared.problem
        with suppress(ParameterError):  # for an objective of another kind
            parts = score_parts(
                model.layout, model.trained, problem, books, draws, self._smallest_leaf
            )
            return replace(model, scores=parts)
        return model

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

        With ``rows="mine"`` all rows are predicted, whoever knows them.  ``without`` names parties
        of the model that do not take part: their columns count as not sent.

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
        check_own(model, self._own)
        if release == "score":
            check_no_absence(self._kept, without)
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
        self._check_given_rows(channels, welcome)
        if release == "score":
            with declined_to_all(channels):
                return self._predict_by_score(model, channels, welcome)
        offers = [self._offer(channel, welcome) for channel in channels]
        lacking = [n for party in without for n in names_of_party(model, party)]
        offers = named_apart(offers, [*own_names(model.own_columns_), *lacking])
        try:
            check_offers(model, offers, without)
        except PeerError:
            refuse_all(channels, "What came is not what the model was trained on.")
            raise
        columns = of_model(model, self._released(offers), self._count)
        places = np.arange(self._count) if self._places is None else self._places
        own, there = self._own, None
        if self._kept == "common" and offers:
            there = sent_by_all(offers, columns)
        own = with_model_presence(model, own, columns)
        if there is not None:
            columns, own, places = release_rows(columns, there), _where(own, there), places[there]
        found = Predicted.of(model, own, columns, places, promise(offers))
        for channel in channels:
            channel.close()
        return found

    def _predict_by_score(
        self, model: Estimator, channels: Sequence[Channel], welcome: Welcome
    ) -> Predicted:
        """Ask every party for its part of the score, and add up the answers."""
        offers = []
        for channel in channels:
            schema = channel.open_score(welcome)
            self._check(schema, channel, welcome)
            try:
                check_score_schema(model, schema)
            except PeerError:
                channel.refuse("What came is not the score that was asked for.")
                raise
            offers.append(ReceivedRelease(channel, schema, scores_of(schema)))
        columns = [c for offer in offers for c in offer.received()]
        there = sent_by_all(offers, columns)
        places = np.arange(self._count) if self._places is None else self._places
        own = self._own
        if there is not None:
            columns, own, places = release_rows(columns, there), _where(own, there), places[there]
        parties = [offer.channel.party for offer in offers]
        answers = dict(zip(parties, columns, strict=True))
        found = Predicted.of_scores(model, own, answers, places, with_scores(model, answers))
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
        digests = self._ids.digests()
        match = RowAlignment(
            self._rules, self._kept, self._y, self._check_watching, self._check_record
        )
        rows, known = match.found(channels, welcome, digests, state)
        return self._restricted(rows, digests, known, welcome.nonce)

    def _welcome(self, welcome: Welcome | None) -> Welcome:
        """Return the job's first message, with its limit per person and its choice of rows."""
        return replace(welcome or _new_job(), record=self._record, rows=self._kept)

    def _check_record(self, channels: Sequence[Channel], welcome: Welcome) -> None:
        """Refuse parties whose plans add up to more than the job allows, before anything is drawn.

        If rows are aligned, no party knows them yet.
        """
        if self._record:
            totals = {channel.party: channel.introduced(welcome) for channel in channels}
            check_record(totals, self._record)

    def _released(self, offers: Sequence[ReceivedRelease]) -> list[ReleasedColumn]:
        """Return the parties' released columns, for the rows that the job is about."""
        found = []
        for offer in offers:
            columns = offer.received()
            if self._known is not None:
                columns = [self._known.spread(c, offer.channel.party) for c in columns]
            elif self._kept == "mine":
                columns = marked_absent(columns)
            found += columns
        return found

    def _own_with_presence(
        self, offers: Sequence[ReceivedRelease], release: Sequence[ReleasedColumn]
    ) -> Any:
        """Return the own columns, with the presence columns if they are wanted."""
        if not self._presence:
            return self._own
        parties = origins(offers).parties
        return with_presence(self._own, present(release, parties))

    def _restricted(
        self, rows: IntArray, digests: Digests, known: Mapping[str, IntArray], nonce: bytes
    ) -> LabelParty:
        """Return the same party with some of its rows, in the order given."""
        made = copy(self)
        made._own = None if self._own is None else rows_of(self._own, rows)
        made._y = None if self._y is None else self._y[rows]
        made._rules, made._places, made._count = None, rows, len(rows)
        made._ids = self._ids.chosen(rows, digests, nonce)  # training needs their memory
        if self._kept == "mine":
            made._known = KnownRows.of(digests, rows, known)
        return made

    @contextmanager
    def _aside(self, state: Path | None) -> Iterator[Path | None]:
        """Yield a folder for codes and bins while a model is trained from disk.

        A kill leaves a ``.part`` folder, which the next run deletes.
        """
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
        """Return the folder that keeps the model in codes, which depends on the settings."""
        if state is None:
            return None
        given: list[Any] = [*sorted(self._settings.items(), key=lambda i: i[0]), self._memory]
        if self._earlier is not None:
            given.append(digest_of(self._earlier.trained_))
        settings = repr(given)
        if self._structure != "free":
            settings += self._structure
        if self._kept != "common":
            settings += f"{self._kept} {self._presence}"
        if self._early_stopping is not None:
            settings += f"{self._early_stopping} {self._held_out}"
        return state / f"trained-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"

    def _offer(
        self, channel: Channel, welcome: Welcome, weigh: Weigh | None = None
    ) -> ReceivedRelease:
        schema = channel.open(welcome, weigh)
        check_private(schema.private())
        self._check(schema, channel, welcome)
        return ReceivedRelease(channel, schema, schema.private())

    def _check_given_rows(self, channels: Sequence[Channel], welcome: Welcome) -> None:
        """Refuse given rows that are not the label party's, before anybody draws."""
        if self._places is not None:  # aligned: both sides have proved that they know the rows
            return
        expected = self._count, self._ids.digest(welcome.nonce)
        for channel in channels:

            def check(rows: Rows, party: str = channel.party) -> None:
                check_schema(rows, party, welcome.job, *expected)

            channel.check_rows(welcome, check)

    def _check(self, schema: Schema, channel: Channel, welcome: Welcome) -> None:
        rows, digest = self._count, self._ids.digest(welcome.nonce)
        if self._known is not None:
            rows, digest = self._known.expected(channel.party, welcome.nonce)
        check_schema(schema, channel.party, welcome.job, rows, digest)
        if self._record:
            check_total(schema, channel.introduced(welcome))

    def weigher(self, channel: Channel, welcome: Welcome) -> Weigh:
        """Return the function that answers a party's pilot; rows must be given or aligned first."""

        def weigh(schema: Schema, columns: Iterator[tuple[ColumnHead, CodedColumn]]) -> Weights:
            self._check(schema, channel, welcome)
            if not self._share_weights:
                return Weights(welcome.job, ())
            target = self._target(self._y)
            if self._known is not None:
                target = target.where(self._known.places[channel.party])
            return pilot_answer(schema, columns, target, self._weights_epsilon)

        return weigh

    def _target(self, y: Any) -> Target:
        numbers = self._kind == "regress"
        return Target.of_numbers(y) if numbers else Target.of_classes(y)


def _where(table: Any, rows: BoolArray | IntArray) -> Any:
    """Return some rows of a table; None if there is no table."""
    places = np.arange(len(rows))[rows] if rows.dtype == np.bool_ else rows.astype(np.int64)
    return None if table is None else rows_of(table, places)


def _checked_rounds(rounds: int | None, memory: Memory) -> int | None:
    """Return a valid number of early-stopping rounds; refuse any other."""
    if rounds is None:
        return None
    if type(rounds) is not int or rounds < 1:
        raise ParameterError(
            f"early_stopping_rounds is a whole number from 1, or None; got {rounds!r}."
        )
    if memory == "external":
        raise ParameterError("Early stopping needs rows in memory: leave memory='external' out.")
    return rounds


def _new_job() -> Welcome:
    return Welcome(job_number(secrets.token_bytes(4)), secrets.token_bytes(32), b"")
