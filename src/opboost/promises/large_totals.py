"""The warning about record totals that hide next to nothing."""

from __future__ import annotations

import math

LARGE_TOTAL = 20.0
"""Larger record totals get a warning: the odds between two records may change by over 10^8."""


def large_total_warning(total: float) -> str | None:
    """Return a warning that says what a large record total means; None up to 20 or at infinity.

    An outcome is at most e^total times as likely with one record as with any other.  By Bayes'
    rule, an observer who thinks two records equally likely and sees what was sent guesses right
    with probability at most e^total/(1 + e^total).  The promise does not exclude such a guess.

    >>> words = large_total_warning(46.4)
    >>> words[:78]
    'Warning: a record total of 46.4 hides next to nothing. What is sent may be e^4'
    >>> large_total_warning(8.0) is None
    True
    """
    if not LARGE_TOTAL < total < math.inf:
        return None
    power = f"e^{total:.6g}"
    odds, miss = _power_of_e(total, 1), _power_of_e(-total, 0)
    return (
        f"Warning: a record total of {total:.6g} hides next to nothing. What is sent may be "
        f"{power} ≈ {odds} times as likely with one record as with another, so a guess at which "
        f"of two records it was may be right with a probability of {power}/(1 + {power}) ≈ 1 − "
        f"{miss}. Totals of 1 to 8 are usual; write [budget] record = 4.0 to state one."
    )


def _power_of_e(exponent: float, digits: int) -> str:
    """Return e^exponent in decimal, however large or small.

    >>> _power_of_e(1800.0, 1), _power_of_e(-25.0, 0)
    ('5.4e781', '1e-11')
    """
    tens = exponent / math.log(10)
    whole = math.floor(tens)
    shown = f"{10 ** (tens - whole):.{digits}f}"
    if float(shown) >= 10:
        shown, whole = f"{1:.{digits}f}", whole + 1
    return f"{shown}e{whole}"
