"""A ledger on one printable page for a privacy officer, without network access or scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from opboost.ledger.chain import Entry
from opboost.ledger.ledger_summary import summary
from opboost.ledger.store import Ledger
from opboost.ledger.verify_ledger import LedgerFinding, verify
from opboost.pages.printed_page import (
    SIGNATURE,
    cell,
    dated_header,
    factor,
    heads,
    html_page,
    level,
    printed_style,
)

Line = Mapping[str, Any]
"""One release, one attribute's spending or one period, as in the ledger's summary."""


@dataclass(frozen=True, slots=True)
class Report:
    """The content of the page.

    ``found`` is the ledger's summary, ``findings`` are the faults of the chain and its files.
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

    @property
    def redraw(self) -> bool:
        """Whether changed values are, or were, redrawn."""
        redrawn = any(period["changed"] == "redraw" for period in self.found["periods"])
        return redrawn or bool(self.migrated)

    def page(self) -> str:
        """Return the page, with all names escaped."""
        lines = self.found["releases"]
        sent = [line for line in lines if line["kind"] in ("commit", "align", "answer")]
        unfinished = [line for line in lines if line["kind"] == "reserve"]
        aborted = sum(line["kind"] == "abort" for line in lines)
        title = f"Privacy ledger of {self.name}"
        sections = [
            _most(self),
            _findings(self.findings),
            _spent(self.found["spent"]),
            _sent(sent, aborted),
            _unfinished(unfinished),
            _periods(self),
            _bounds(self.redraw),
            _record(self),
            SIGNATURE,
        ]
        header = dated_header(title, self.made, self.version)
        return html_page(title, printed_style(), header, sections)


def _most(report: Report) -> str:
    """Return the first section: the highest total for any one person."""
    *attributes, total = report.found["spent"]
    most = level(total["most"])
    if total["cap"] is None:
        cap = "No cap is set for a person."
    elif total["exceeded"]:
        cap = f'<span class="bad">Over the cap of {level(total["cap"])}.</span>'
    else:
        cap = f"Cap {level(total['cap'])}; {level(total['left'])} left."
    if most == "no bound":
        meaning = (
            "Something was released without a bound: somebody's values may be known for certain."
        )
    else:
        meaning = (
            "The total is a sum of ε. Whatever a recipient believed before, all releases together "
            "change the odds between any two possible records of one person by a factor of at most "
            f"e<sup>{most}</sup> ≈&nbsp;{factor(total['most'])}. "
            "With a total of 0, nothing could be learnt."
        )
    exceeded = ", ".join(escape(line["attribute"]) for line in attributes if line["exceeded"])
    over = f"The cap per attribute is exceeded for {exceeded}." if exceeded else ""
    redrawn = "No bound over time: this ledger redraws, or has redrawn, changed values."
    warnings = [over, redrawn if report.redraw else ""]
    return f"""\
<section id="most" aria-labelledby="most-title">
  <h2 id="most-title" style="margin-top: 0">Highest total for any one person</h2>
  <p id="total">{most}</p>
  <p>{cap} {total["people"]:,} people, over all recipients and all periods.</p>
  <p>{meaning}</p>
{"".join(f'  <p class="bad">{words}</p>' for words in warnings if words)}
</section>
"""


def _findings(findings: Sequence[LedgerFinding]) -> str:
    if not findings:
        return ""
    items = "".join(
        f"<li>{'' if f.entry is None else f'Entry {f.entry} '}{escape(f.words)}</li>"
        for f in findings
    )
    return f"""\
<section class="warning" id="verdict">
  <h2 style="margin-top: 0">The record does not verify</h2>
  <ul>{items}</ul>
</section>
"""


def _spent(lines: Sequence[Line]) -> str:
    rows = [_spent_row(line) for line in lines]
    body = f"<tbody>{''.join(rows[:-1])}</tbody>" if rows[:-1] else ""
    titles = heads(
        ("attribute", ""),
        *((t, "number") for t in ("people", "most for one person", "cap", "left")),
    )
    return f"""\
<section aria-labelledby="spent-title">
  <h2 id="spent-title">What was spent, and what is left under the caps</h2>
  <table id="spent">
    {titles}
    {body}
    <tfoot>{rows[-1]}</tfoot>
  </table>
</section>
"""


def _spent_row(line: Line) -> str:
    if line["exceeded"]:
        left = '<span class="bad">exceeded</span>'
    else:
        left = "–" if line["left"] is None else level(line["left"])
    return (
        f'<tr><th scope="row" class="name">{escape(line["attribute"])}</th>'
        + cell("people", f"{line['people']:,}")
        + cell("most for one person", level(line["most"]))
        + cell("cap", level(line["cap"]))
        + cell("left", left)
        + "</tr>"
    )


def _sent(lines: Sequence[Line], aborted: int) -> str:
    titles = heads(
        ("time", ""),
        ("recipient", ""),
        ("what", "what"),
        ("attributes", "attributes"),
        *((title, "number") for title in ("rows", "new cells", "known cells")),
    )
    table = f"""\
  <table id="sent">
    {titles}
    <tbody>
{"".join(map(_sent_row, lines))}    </tbody>
  </table>
  <p class="soft">A new cell is drawn and charged; a known cell repeats what was drawn before, and \
costs nothing.</p>"""
    were = "release was" if aborted == 1 else "releases were"
    taken_back = f"<p>{aborted:,} {were} aborted before anything was sent.</p>"
    return f"""\
<section aria-labelledby="sent-title">
  <h2 id="sent-title">Who received what, and when</h2>
{table if lines else "  <p>Nothing was sent.</p>"}
  {taken_back if aborted else ""}
</section>
"""


def _sent_row(line: Line) -> str:
    at, entry = line.get("closed_at", line["at"]), line.get("closed", line["entry"])
    columns = ", ".join(map(escape, line["columns"]))
    cells = [
        cell("recipient", escape(line["recipient"]), "name"),
        cell(
            "what",
            f'{escape(line["what"])}<br><span class="soft">job {escape(line["job"])}</span>',
            "name",
        ),
        cell("attributes", columns or "–", "name" if columns else "name none"),
    ]
    for key, label in (("rows", "rows"), ("new_cells", "new cells"), ("old_cells", "known cells")):
        known = key in line
        cells.append(
            cell(label, f"{line[key]:,}" if known else "–", "number" if known else "number none")
        )
    when = f'<time>{escape(at)}</time><br><span class="soft">entry {entry}</span>'
    return f'    <tr><th scope="row">{when}</th>{"".join(cells)}</tr>\n'


def _unfinished(lines: Sequence[Line]) -> str:
    items = "".join(
        f"<li><time>{escape(line['at'])}</time>: entry {line['entry']}, job {escape(line['job'])}, "
        f"for {escape(line['recipient'])} ({', '.join(map(escape, line['columns']))}): "
        f"{escape(line['what'])}.</li>"
        for line in lines
    )
    return f"""\
<section aria-labelledby="open-title">
  <h2 id="open-title">Reserved and not finished</h2>
  {f'<ul id="open">{items}</ul>' if lines else "<p>None.</p>"}
</section>
"""


def _periods(report: Report) -> str:
    items = [
        f"<li><time>{escape(p['at'])}</time>: {_period(p, first=not number)}.</li>"
        for number, p in enumerate(report.found["periods"])
    ]
    items += [
        f"<li><time>{escape(at)}</time>: migrated from version 0.1, which redrew changed "
        "values.</li>"
        for at in report.migrated
    ]
    were = "person was" if report.forgotten == 1 else "people were"
    forgotten = (
        f"<p>{report.forgotten:,} {were} forgotten at their request: nothing is remembered about "
        "them, and nothing more is sent.</p>"
    )
    return f"""\
<section aria-labelledby="periods-title">
  <h2 id="periods-title">Periods</h2>
  <ul id="periods">
    {"".join(items)}
  </ul>
  {forgotten if report.forgotten else ""}
</section>
"""


def _period(period: Line, *, first: bool) -> str:
    if first:
        begun = "the ledger was created"
    else:
        begun = f"a new period of {escape(period['attribute'] or 'all attributes')}"
    return begun + ("; changed values are redrawn" if period["changed"] == "redraw" else "")


def _bounds(redraw: bool) -> str:
    if redraw:
        over_time = (
            "It does not bound what a comparison of two releases shows while changed values are "
            "redrawn: a noisy value that differs proves that the person's value changed."
        )
    else:
        over_time = (
            "Within a period, each noisy value is drawn once and repeated even if the value "
            "changes, so comparing releases shows nothing more."
        )
    return f"""\
<section aria-labelledby="bounds-title">
  <h2 id="bounds-title">What a cap bounds, and what it does not</h2>
  <p>A cap bounds what all releases of this ledger together reveal about one person's values, over
  all recipients and all periods. {over_time}
  A cap does not hide that a person is in the table, and does not bound what alignments reveal (who
  is known to both sides), what left this party other than through this ledger, or what other
  organisations reveal about the same people.</p>
</section>
"""


def _record(report: Report) -> str:
    if report.findings:
        verdict = '<span class="bad">It does not verify</span> (see above).'
    else:
        verdict = "Every entry verifies, and every file that the ledger names."
    head = report.head
    return f"""\
<section aria-labelledby="record-title">
  <h2 id="record-title">The record</h2>
  <p id="verified">{verdict} Last entry: number {head.number} of <time>{escape(head.at)}</time>, \
hash</p>
  <p class="hash">{head.hash.hex()}</p>
  <p class="soft">Keep this page apart from the ledger: a later copy of the ledger must contain
  this entry, or it was rolled back. Recipients' receipts show the same:
  <code style="white-space: nowrap">opboost ledger verify --receipts</code>.</p>
</section>
"""
