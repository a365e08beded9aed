"""A new period: everybody's cells are drawn and charged again at the next release."""

from __future__ import annotations

from opboost import durable
from opboost.errors import ConfigError, PrivacyError
from opboost.ledger.chain import Entry
from opboost.ledger.store import Changed, Ledger
from opboost.ledger.verify import check_chain


def renew(ledger: Ledger, attribute: str = "", *, changed: Changed | None = None) -> Entry:
    """Begin a new period for one attribute, or for all of them and the choice of columns.

    Whoever decides on it must not look at the data: what a renewal reveals is charged, that it
    happened is not.  Caps run over all periods.  It is refused while a reservation is open.
    """
    with durable.alone(ledger.folder):
        check_chain(ledger)
        refuse_open(ledger)
        known = {c.attribute for run in ledger.runs() for c in run.columns}
        if attribute and attribute not in known:
            listed = ", ".join(sorted(known)) or "none yet"
            raise ConfigError(
                f"The ledger knows no attribute {attribute!r}, so there is nothing to renew. It "
                f"knows: {listed}."
            )
        if attribute and changed not in (None, ledger.changed):
            raise ConfigError(
                f'changed = "{changed}" holds for all attributes. Renew all of them: leave out '
                "--attribute."
            )
        with ledger.writing():
            return ledger.append(
                "renew", {"attribute": attribute, "changed": changed or ledger.changed}
            )


def refuse_open(ledger: Ledger) -> None:
    """Refuse a change of the whole ledger while a release is reserved and not finished."""
    for entry in ledger.open_reservations():
        raise PrivacyError(
            f"Job {entry.body['job']!r} has reserved a release in entry {entry.number} and has "
            "not finished it. Run it again to finish it, or take the reservation back: "
            f"opboost ledger abort -c FILE {entry.number}"
        )


def abort(ledger: Ledger, number: int) -> Entry:
    """Take back an open reservation of a release that will not be finished; nothing was sent."""
    with durable.alone(ledger.folder):
        check_chain(ledger)
        found = next((e for e in ledger.open_reservations() if e.number == number), None)
        if found is None:
            listed = ", ".join(str(e.number) for e in ledger.open_reservations()) or "none"
            raise ConfigError(
                f"Entry {number} is no open reservation of the ledger. Open ones: {listed}."
            )
        about = {k: found.body[k] for k in ("job", "recipient")}
        with ledger.writing():
            reason = "taken back by hand"
            return ledger.append("abort", {"reservation": number, **about, "reason": reason})
