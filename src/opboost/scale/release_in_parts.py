"""A release made by many workers: noise drawn once, people charged once, even if it is killed.

    begin    make a folder beside the target, and in it the secret from which noise is derived
    check    refuse the release before anything is drawn if the ledger would refuse it in the end
    write    workers write the parts; the scheduler may repeat any of them (part_writer.py)
    commit   check that all parts are there and no ID occurs twice -> charge people -> write the
             manifest -> destroy the secret -> give the folder of parts the target's name

Each step can be interrupted; the next run resumes it with the same noise.  Do not send anything
before the target appears.  From then on the noise exists only in the stored parts, because the
secret is destroyed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from opboost._typing import BoolArray
from opboost.budgets.budget import RecordBudget, check_no_pilot
from opboost.columns.column_specs import column_to_dict
from opboost.columns.duplicate_ids import DuplicateIds
from opboost.columns.row_ids import Spelling, id_array
from opboost.config import Plan
from opboost.errors import DataError, ParameterError, PrivacyError
from opboost.files.stored_release import (
    MANIFEST,
    Manifest,
    charged,
    job_of,
    making,
    noise_of,
    noted,
    read_manifest,
)
from opboost.files.write_tables import check_new
from opboost.ledger import Caps, Drawing, Ledger
from opboost.ledger.forget_person import forgotten
from opboost.ledger.renewal import over_time
from opboost.randomness.per_person_rng import row_names
from opboost.scale import release_secret
from opboost.scale.forgotten_people import hide
from opboost.scale.part_writer import PARTS, RELEASED, PartWriter, check_part, read_receipt
from opboost.scale.release_secret import RECEIPT, abandon, remake
from opboost.storage import atomic_files

STATE = "release.json"


@dataclass(frozen=True, slots=True)
class Charge:
    """How a release is charged: the ledger, the recipient, and the attributes new to the ledger."""

    ledger: Ledger
    recipient: str = "unnamed recipient"
    new_attributes: tuple[str, ...] = ()
    people: str = ""


class ReleaseInParts:
    """One release in progress; if it ends without :meth:`commit`, the next run resumes it.

    Args:
        target: The folder that appears once the release is complete.
        plan: The declarations of the columns.
        ids: The columns that identify people; a person's ID determines their noise.
        parts: The number of parts.
        source: What identifies the table, such as its files.  A release is never resumed with
            another table.
        charge: The ledger to charge, if there is one.

    >>> import tempfile, pyarrow as pa
    >>> import opboost as op
    >>> from opboost.config.columns_file import parse
    >>> plan = parse(
    ...     '[mechanism]\\nkind = "clamp-map"\\nepsilon = 0.64\\n'
    ...     '[columns.age]\\nbounds = [17, 90]\\n[table]\\npublic = ["id"]',
    ...     "b.toml",
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     target = Path(place) / "out"
    ...     with ReleaseInParts(target, plan, ["id"], parts=1, source="doc") as release:
    ...         _ = release.block.write(0, [pa.table({"id": [1, 2], "age": [30, 60]})])
    ...         release.commit().rows
    2
    """

    def __init__(
        self,
        target: str | Path,
        plan: Plan,
        ids: Sequence[str],
        *,
        parts: int,
        source: object,
        charge: Charge | None = None,
    ) -> None:
        self.target, self._plan, self._parts, self._charge = Path(target), plan, parts, charge
        if not ids:
            raise ParameterError(
                "A release in parts derives each person's noise from the person's ID, so that a "
                "repeated task draws the same noise. Name the ID column: ids='customer_id', in "
                'TOML [align] id = "customer_id".'
            )
        check_no_pilot(plan.budget, "and a release in parts has none")
        self.folder = making(self.target)
        self.outside: dict[str, int] = {}
        spelling: Spelling = charge.ledger.ids if charge else "exact"
        self.block = PartWriter(self.folder, plan, tuple(ids), charge is not None, spelling)
        self._about = _digest(
            {
                "columns": [column_to_dict(c) for c in plan.private],
                "public": plan.public,
                "sampled": plan.budget and plan.budget.columns_per_row,
                "ids": list(ids),
                "parts": parts,
                "source": source,
                "charged": charge is not None,
                **_weights(plan),
            }
        )

    def __enter__(self) -> ReleaseInParts:
        check_new(
            self.target,
            "A second release of the same rows would reveal more about the same people. "
            "Send the one you have, or give another name.",
        )
        with ExitStack() as stack:
            stack.enter_context(atomic_files.alone(self.folder))
            self.id = self._begun()
            if not self._written() and not release_secret.has_secret(self.folder):
                raise PrivacyError(
                    f"The secret of the release in {self.folder} was lost before the release was "
                    "complete. The release cannot be finished with the same noise. Nothing of it "
                    "was sent: remove that folder and begin again."
                )
            if self._charge is not None:
                self._drawing(self._charge).check()
            self._alone = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._alone.__exit__(*error)

    def _begun(self) -> str:
        """Return the release's name: a new one, or the name of the release to resume."""
        state = self.folder / STATE
        if not state.exists():
            release_secret.make_secret(self.folder)
            (self.folder / PARTS).mkdir(exist_ok=True)
            plain = {"release": secrets.token_hex(16), "about": self._about}
            atomic_files.write(state, atomic_files.with_checksum(json.dumps(plain).encode()))
        found = atomic_files.read_json(state, dict[str, str], abandon(self.folder), checksum=True)
        if found.get("about") != self._about:
            raise PrivacyError(
                f"A release to {self.target} was begun with another table or configuration. "
                "To finish that release, restore its table and configuration. To abandon it, "
                f"remove {self.folder}: nothing of it was sent."
            )
        return str(found["release"])

    def _written(self) -> bool:
        return (self.folder / PARTS / MANIFEST).exists()

    def missing(self) -> list[int]:
        """Return the numbers of the parts that have not been made yet."""
        if self._written():
            return []
        return [n for n in range(self._parts) if not (self.folder / RECEIPT.format(n)).exists()]

    def check(self, ids: Callable[[], Iterable[pa.Table]]) -> None:
        """Refuse the release before a part is made if the ledger would refuse it in the end.

        ``ids`` reads the ID columns of all rows; it is called only if the ledger could refuse some
        people.  :meth:`commit` checks again, because other releases may happen in between.
        """
        if self._charge is None or not self.missing() or self._is_charged(self._charge.ledger):
            return
        ledger = self._charge.ledger
        if not ledger.runs() and ledger.caps == Caps():
            return
        try:
            self._drawing(self._charge).check(self._chosen(ids()))
        except PrivacyError as error:
            if len(self.missing()) < self._parts:
                raise self._waiting(error) from None
            (self.folder / STATE).unlink()  # no part was made, so another table may be used
            release_secret.destroy(self.folder)
            shutil.rmtree(self.folder)
            raise

    def _chosen(
        self, tables: Iterable[pa.Table]
    ) -> Iterator[tuple[pa.LargeBinaryArray, BoolArray | None]]:
        """Yield people's IDs, and which columns are released about each of them (None: all)."""
        secret = release_secret.read_secret(self.folder)
        for table in tables:
            people = id_array(table, self.block.ids, spelling=self.block.spelling)
            yield people, self.block.sent(secret, row_names(secret, people))

    def _is_charged(self, ledger: Ledger) -> bool:
        job = job_of(self.id)
        return any(e.body["job"] == job for e in ledger.entries("commit"))

    def _waiting(self, error: PrivacyError) -> PrivacyError:
        return PrivacyError(
            f"{error} The parts, and the secret from which their noise is derived, stay in "
            f"{self.folder}: run the same command again once the ledger accepts the release. To "
            "abandon the release, or to use another table or configuration, remove that folder."
        )

    def commit(self) -> Manifest:
        """Charge the ledger, write the manifest, destroy the secret, and place the target."""
        if not self._written():
            hidden = self._hide_forgotten()
            manifest = self._whole()
            try:
                self._pay(manifest, hidden)
            except PrivacyError as error:
                raise self._waiting(error) from None
            data = atomic_files.with_checksum(json.dumps(asdict(manifest), indent=1).encode())
            atomic_files.write(self.folder / PARTS / MANIFEST, data)
        release_secret.destroy(self.folder)
        atomic_files.move([(self.folder / PARTS, self.target)])
        shutil.rmtree(self.folder)
        return read_manifest(self.target)

    def _whole(self) -> Manifest:
        """Return the manifest; refuse if a part is missing or damaged, or an ID occurs twice."""
        receipts = [read_receipt(self.folder, n) for n in range(self._parts)]
        made = {n: receipt for n, receipt in enumerate(receipts) if receipt is not None}
        if len(made) < self._parts:
            raise DataError(
                f"{self._parts - len(made)} of {self._parts} parts are missing",
                hint="Run the same command again: it makes only the missing parts.",
            )
        with DuplicateIds(self.folder) as rows:
            for number, receipt in made.items():
                check_part(self.folder, number, receipt)
                found = 0
                for piece in release_secret.rows_of(self.folder, number):
                    rows.add(piece)
                    found += len(piece)
                if found != receipt.rows:
                    raise atomic_files.damaged(
                        self.folder / release_secret.ROWS.format(number),
                        remake(self.folder, number),
                    )
            twice = rows.repeats()
        if twice:
            raise DataError(
                f"{twice:,} rows repeat an ID of another row, and would get the same noise",
                hint=f"Keep one row of each ID, remove {self.folder} and begin again.",
            )
        parts = {RELEASED.format(n): r.sha256 for n, r in made.items() if r.rows}
        atomic_files.clear(self.folder / PARTS)  # partial files of killed workers
        if stray := {p.name for p in (self.folder / PARTS).iterdir()} - set(parts):
            raise DataError(
                f"{self.folder / PARTS} holds files that belong to no part: "
                f"{', '.join(sorted(stray))}",
                hint="Remove them and run again.",
            )
        total = sum(r.rows for r in made.values())
        if not total:
            raise DataError("The table has no rows", hint=f"Remove {self.folder}.")
        for receipt in made.values():
            for name, count in receipt.outside.items():
                self.outside[name] = self.outside.get(name, 0) + count
        ledger = self._charge.ledger if self._charge else None
        promise = over_time(self._plan.guarantee(), ledger)
        noise = {str(c.name): noise_of(c) for c in self._plan.private}
        budget = self._plan.budget
        per_row = None if budget is None else budget.columns_per_row
        return Manifest(self.id, total, str(promise), promise.total, parts, noise, per_row)

    def _hide_forgotten(self) -> int:
        """Remove the released values of forgotten people; return the number of their rows."""
        if self._charge is None or not len(self._charge.ledger.tombstones()):
            return 0
        names = [str(n) for c in self._plan.private for n in c.release_names()]
        gone = forgotten(self._charge.ledger)
        return sum(hide(self.folder, n, names, gone) for n in range(self._parts))

    def _pay(self, manifest: Manifest, hidden: int) -> None:
        """Charge each person once, unless an earlier run of this release has charged everybody.

        ``hidden`` is the number of rows whose values were removed because a person was forgotten.
        """
        if self._charge is None or charged(manifest, self._charge.ledger):
            return
        secret = release_secret.read_secret(self.folder)
        with self._drawing(self._charge) as drawing:
            pieces = (release_secret.people_of(self.folder, n, secret) for n in range(self._parts))
            for people in chain.from_iterable(pieces):
                sent = self.block.sent(secret, row_names(secret, people))
                hidden -= int(drawing.forgotten(people).sum())
                drawing.charge(people, sent)
            if hidden:
                raise PrivacyError("A person was forgotten while the release was made.")
            if drawing.rows != manifest.rows:
                raise atomic_files.damaged(self.folder, abandon(self.folder))
            drawing.remarks["output"] = manifest.output()
            drawing.remarks["folder"] = noted(self.target, self._charge.ledger)

    def _drawing(self, charge: Charge) -> Drawing:
        return Drawing(
            charge.ledger,
            self._plan.private,
            self._plan.attributes,
            job=job_of(self.id),
            recipient=charge.recipient,
            budget=self._plan.budget,
            new_attributes=charge.new_attributes,
            people=charge.people or ", ".join(self.block.ids),
            stored=self.id,
        )


def stored(target: Path, ledger: Ledger | None) -> Manifest | None:
    """Return the release at ``target``, or None if the ledger does not record it as complete."""
    if ledger is None or not (target / MANIFEST).exists():
        return None
    manifest = read_manifest(target)
    return manifest if charged(manifest, ledger) else None


def _digest(plain: object) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def _weights(plan: Plan) -> dict[str, Any]:
    """Return the weights by which columns are drawn for each person, if there are any."""
    if not isinstance(plan.budget, RecordBudget) or plan.budget.weights is None:
        return {}
    return {"weights": {str(name): weight for name, weight in plan.budget.weights.items()}}
