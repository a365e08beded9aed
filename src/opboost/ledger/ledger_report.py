"""A ledger on one page to print: for a privacy officer, without network and without scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from opboost.ledger.chain import Entry
from opboost.ledger.ledger_summary import summary
from opboost.ledger.store import Ledger
from opboost.ledger.verify_ledger import LedgerFinding, verify


@dataclass(frozen=True, slots=True)
class Report:
    """What the page says.

    ``found`` is the ledger's summary, ``findings`` what is wrong with the chain and its files.
    """

    name: str
    found: Mapping[str, Any]
    findings: tuple[LedgerFinding, ...]
    head: Entry
    forgotten: int
    migrated: tuple[str, ...]
    made: str
    version: str

    @classmethod
    def of(cls, ledger: Ledger, name: str, version: str) -> Report:
        """Read and verify a whole ledger; nothing is written to it."""
        return ledger.consistently(lambda: cls._of(ledger, name, version))

    @classmethod
    def _of(cls, ledger: Ledger, name: str, version: str) -> Report:
        findings = tuple(verify(ledger))
        return cls(
            name,
            summary(ledger),
            findings,
            ledger.head(),
            len(ledger.tombstones()),
            tuple(e.at for e in ledger.entries("migrate")),
            datetime.now(UTC).isoformat(timespec="seconds"),
            version,
        )

    def page(self) -> str:
        """The page; whatever names it holds are escaped."""
        lines = self.found["releases"]
        redraw = any(p["changed"] == "redraw" for p in self.found["periods"])
        spent = self.found["spent"]
        return _template().render(
            report=self,
            total=spent[-1],
            spent=spent,
            sent=[line for line in lines if line["kind"] in ("commit", "align", "answer")],
            open=[line for line in lines if line["kind"] == "reserve"],
            aborted=sum(line["kind"] == "abort" for line in lines),
            periods=self.found["periods"],
            redraw=redraw or bool(self.migrated),
            over=[line["attribute"] for line in spent[:-1] if line["exceeded"]],
        )


def level(amount: float | None) -> str:
    """A level as people read it."""
    if amount is None:
        return "none"
    return "no bound" if math.isinf(amount) else f"{amount:g}"


def factor(total: float) -> Markup:
    """How much the odds may change: e to the total.

    >>> print(factor(0.0), factor(0.5), factor(11.52), factor(57.6))
    1 1.65 101,000 1.04 × 10<sup>25</sup>
    """
    power = total / math.log(10)
    if power < 2:
        return Markup(f"{math.exp(total):.3g}")
    if power < 9:
        return Markup(f"{float(f'{math.exp(total):.3g}'):,.0f}")
    whole = math.floor(power)
    mantissa, more = f"{10 ** (power - whole):.2e}".split("e")  # 9.999 is 1.00e+01
    return Markup(f"{mantissa} × 10<sup>{whole + int(more)}</sup>")


def _template() -> Template:
    pages = Environment(
        loader=PackageLoader("opboost.ledger"), autoescape=True, undefined=StrictUndefined
    )
    pages.filters |= {"level": level, "factor": factor, "count": "{:,}".format}
    return pages.get_template("report.html")
