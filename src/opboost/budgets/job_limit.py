"""Compare the total that a job's feature parties reveal with the limit that the job sets."""

from __future__ import annotations

import math
from fractions import Fraction

from opboost.errors import PrivacyError


def check_record(totals: dict[str, float], limit: float) -> None:
    """Refuse feature parties that together reveal more about one person than the job allows.

    >>> check_record({"shop": 4.0, "telco": 4.0}, 8.0)
    """
    unbounded = [party for party, total in totals.items() if math.isinf(total)]
    if unbounded:
        raise PrivacyError(
            f"Party {unbounded[0]!r} may reveal any amount about one person, but the job allows "
            f"{limit:g} ([job] record). Give it a [budget] record, or leave record out of [job] in "
            "the job file of all parties."
        )
    together = sum(map(exact_level, totals.values()))
    if together > exact_level(limit):
        listed = ", ".join(f"{party} {total:g}" for party, total in totals.items())
        added = f" ({float(together):g} in all)" if len(totals) > 1 else ""
        raise PrivacyError(
            f"The job allows {limit:g} to be revealed about one person ([job] record), but the "
            f"plans of its feature parties add up to more: {listed}{added}. Lower [budget] record "
            "of a party, or agree on a higher record in the job file of all parties. Nothing was "
            "drawn."
        )


def exact_level(level: float) -> Fraction:
    """Return a level as people write it: 5.76 is 576/100."""
    return Fraction(repr(float(level)))
