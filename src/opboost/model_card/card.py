"""The facts of a model card, and the bounds that follow: how well anybody can guess a record."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from opboost.model_card.attack_figures import LINKED_PEOPLE, measured_at
from opboost.training.held_out_score import HeldOutScore

NO_PURPOSE = "Not stated. Give --purpose, or write [card] purpose in the party's file."
"""What the card says if no purpose was stated."""

RARE_SHARE = 0.01
"""The prior probability of the rarer of two records in the card's second example of a guess."""


@dataclass(frozen=True, slots=True)
class CardColumn:
    """One private column: what is promised, and what was computed exactly.

    Attributes:
        promised: The largest loss of any pair that the promise allows.
        exact: The largest loss of any pair, computed from the mechanism's exact distribution; for a
            mechanism with several runs, over the pairs that have a promise.
        covered: Whether the promise covers every pair.
        blind_guess: The chance of guessing a cell without seeing anything, if all cells are equally
            likely.
        best_guess: The same chance after seeing the noisy value; None if the grid is too large to
            compute it, or if categories are sent as bits.
    """

    name: str
    party: str
    mechanism: str
    cells: int
    promise: str
    promised: float
    exact: float
    covered: bool
    blind_guess: float
    best_guess: float | None


@dataclass(frozen=True, slots=True)
class CardParty:
    """One party of the job, and the most that it reveals about one person."""

    name: str
    role: str
    columns: int
    total: float


@dataclass(frozen=True, slots=True)
class CardDigest:
    """The SHA-256 digest of a file or a description, in hexadecimal digits."""

    what: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What a feature party's ledger states, over all jobs and recipients."""

    most: float
    cap: float | None
    people: int
    entry: int
    at: str
    hash: str


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The finished job that made the model, from the label party's state folder."""

    job: str
    finished: str
    rows: int


@dataclass(frozen=True, slots=True)
class Card:
    """Everything that a card says about a model; HTML, Markdown and JSON show the same facts.

    Attributes:
        total: The most revealed about one person: by what the model was trained on, and by the
            scores that predictions may request.
        scores: The part of the total that is reserved for such scores.
        promise: The guarantee in words, without its total.
        recipient: To whom at most this total is revealed.
        limits: What the total does not cover, in sentences.
    """

    name: str
    purpose: str
    made: str
    version: str
    total: float
    scores: float
    recipient: str
    promise: tuple[str, ...]
    task: str
    label: str
    own_columns: tuple[str, ...]
    columns: tuple[CardColumn, ...]
    parties: tuple[CardParty, ...]
    score: HeldOutScore | None
    warning: str
    limits: tuple[str, ...]
    digests: tuple[CardDigest, ...]
    job: JobFacts | None = None
    ledger: LedgerFacts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain data, with the bounds on a guess and what attacks achieve."""
        return {**asdict(self), "guess": self.guesses(), "attacks": self.attacks()}

    def guesses(self) -> list[dict[str, float]]:
        """Return the chances of a right guess between two records: before, and at most after."""
        return [
            {"before": share, "at_most_after": guess_bound(self.total, share)}
            for share in (0.5, RARE_SHARE)
        ]

    def attacks(self) -> dict[str, Any]:
        """Return the bound on linkage at this total, and measurements at a similar one."""
        found = measured_at(self.total)
        return {
            "people": LINKED_PEOPLE,
            "linked_at_most": guess_bound(self.total, 1 / LINKED_PEOPLE),
            "measured": None if found is None else asdict(found),
        }


def guess_bound(total: float, before: float = 0.5) -> float:
    """Return the largest belief in one of two records that a release of this total can cause.

    By Bayes' rule the odds grow by e^total at most; from even odds that is
    e^total / (1 + e^total).

    >>> round(guess_bound(4.0), 3), round(guess_bound(4.0, before=0.01), 3), guess_bound(0.0)
    (0.982, 0.355, 0.5)
    """
    if math.isinf(total):
        return 1.0
    odds = math.log(before / (1 - before)) + total
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


def percent(chance: float) -> str:
    """Return a chance as a percentage; only a certainty is shown as 100%.

    >>> percent(0.9820), percent(0.03125), percent(0.01), percent(0.999999), percent(1.0)
    ('98.2%', '3.1%', '1%', 'almost 100%', '100%')
    """
    if 0.9995 < chance < 1:
        return "almost 100%"
    return f"{100 * chance:.3g}%" if chance >= 0.1 else f"{100 * chance:.2g}%"


def score_lines(score: HeldOutScore | None) -> list[tuple[str, str]]:
    """Return the model's scores with descriptions, the one that uses the least data first.

    >>> from opboost.training.held_out_score import Figures
    >>> found = HeldOutScore("AUC", 400, 0.2, 0.832, True, Figures(0.861, 0.874, 0.01))
    >>> for line in score_lines(found):
    ...     print(line)
    ('own columns alone', '0.832')
    ('all columns, private ones with noise (measured)', '0.861')
    ('all columns, without noise (estimate)', '0.874 ± 0.010')
    """
    if score is None or score.whole is None or score.own is None:
        return []
    alone = "own columns alone" if score.has_own else "the same prediction for everybody"
    lines = [(alone, f"{score.own:.3f}")]
    lines += [
        (f"own columns and those of {name}, with noise (measured)", f"{figures.released:.3f}")
        for name, figures in (score.parties or {}).items()
    ]
    whole = score.whole
    lines.append(("all columns, private ones with noise (measured)", f"{whole.released:.3f}"))
    if whole.clear is not None:
        error = f" ± {whole.clear_error:.3f}" if whole.clear_error is not None else ""
        lines.append(("all columns, without noise (estimate)", f"{whole.clear:.3f}{error}"))
    return lines


def score_words(score: HeldOutScore | None) -> str:
    """Return what the scores are based on, or why there are none."""
    if score is None:
        return "The model holds no score: no rows were held out when it was trained."
    if score.whole is None:
        return f"The model holds no score: {score.unscored}."
    words = (
        f"{score.metric} on {score.rows:,} rows that a second model of the same kind did not learn "
        "from."
    )
    if score.whole.clear is None:
        words += " The score without noise is not estimated: the model was trained on noisy rows."
    return words
