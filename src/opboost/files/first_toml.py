"""A first TOML file for a table: names and kinds of its columns, and TODO for public facts.

Bounds and categories are public, so the owner must supply them.  The file shows no value: it also
suits any other table with the same columns and kinds, and missing values in the same columns.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opboost.config.todo_marks import TODO, todo_marks
from opboost.config.toml_text import toml_key, toml_text
from opboost.errors import ColumnError, visible
from opboost.files.describe_table import ColumnLook
from opboost.protocol.messages import PARTY_NAME

Role = Literal["feature", "label"]

_COMMENT_COLUMN = 33


@dataclass(frozen=True, slots=True)
class FirstToml:
    """The text of a file, and the columns with something left to fill in."""

    text: str
    todo: tuple[str, ...]
    short: str
    """The sections that are not commented out."""


def first_toml(
    looks: Sequence[ColumnLook],
    role: Role,
    *,
    name: str,
    table: str,
    label: str | None = None,
    data: dict[str, str] | None = None,
) -> FirstToml:
    """Return a commented TOML file called ``name`` for the table at the path ``table``.

    ``label`` is the column to predict.  ``data`` is the format of the table's CSV files, if it is
    not the usual one.
    """
    if label is not None and label not in {c.name for c in looks}:
        raise ColumnError(label, "should be the label but is not in the table")
    found = _sorted(looks, label)
    party = re.sub(r"\.toml$", "", name)
    party = party if PARTY_NAME.fullmatch(party) else "bank" if role == "label" else "shop"
    write = _label_file if role == "label" else _feature_file
    blocks = [b for b in write(found, name, party, table, label, _data(data or {})) if b]
    text = "\n\n".join(map("\n".join, blocks)) + "\n"
    short = "\n\n".join("\n".join(b) for b in blocks if b[0].startswith("["))
    plain = tomllib.loads(text)
    todo = tuple(dict.fromkeys(name for name, _ in todo_marks(plain)))
    return FirstToml(text, todo, short)


def left_to_declare(looks: Sequence[ColumnLook], *, record: bool, has_id: bool) -> str:
    """Return what a file must still declare; with ``has_id``, it already names an ID column."""
    found = _sorted(looks, None)
    if has_id and found.id is not None:
        dropped = [c for c in looks if c in found.dropped or c.name == found.id]
        found = _Sorted(None, found.declared, dropped)
    columns = [declaration(c, record=record) for c in found.declared]
    return "\n\n".join("\n".join(b) for b in (_align(found), *columns, _table(found)) if b)


def declaration(look: ColumnLook, *, record: bool = True) -> list[str]:
    """Return the section of one column to fill in, for a file with or without a record total.

    >>> print("\\n".join(declaration(ColumnLook("my age", "number", 9, 0, None, ""))))
    [columns."my age"]               # number
    bounds = "TODO"                  # lowest and highest possible value: for example [0, 100]
    """
    lines = [_with_comment(f"[columns.{toml_key(look.name)}]", look.kind)]
    if look.kind == "true/false":
        lines.append("categories = [false, true]")
    elif look.kind == "text":
        words = 'every possible value: for example ["low", "high"]'
        lines.append(_with_comment(f'categories = "{TODO}"', words))
        lines.append(_with_comment("# ordered = true", "if they are listed from low to high"))
    elif look.kind == "date":
        words = "first and last possible day: for example [1990-01-01, 2025-12-31]"
        lines.append(_with_comment(f'bounds = "{TODO}"', words))
        lines.append(
            _with_comment('# unit = "months"', 'the finest step: "hours", "days", "months"')
        )
    else:
        words = "lowest and highest possible value: for example [0, 100]"
        lines.append(_with_comment(f'bounds = "{TODO}"', words))
        if look.kind == "whole number" and record:
            lines.append(_with_comment("integers = true", "one cell for each, up to 32"))
    if look.missing and not record:
        lines.append(_with_comment('# missing = "flag"', "has missing values: flag or fill them"))
    elif look.missing:
        words = "has missing values: missing is one more value, at no extra cost"
        lines.append(_with_comment('missing = "symbol"', words))
    return lines


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The columns by their likely role."""

    id: str | None
    declared: list[ColumnLook]
    dropped: list[ColumnLook]


def _sorted(looks: Sequence[ColumnLook], label: str | None) -> _Sorted:
    others = [c for c in looks if c.name != label]
    like_ids = [c for c in others if c.looks_like_id]
    ids = [c.name for c in sorted(like_ids, key=lambda c: not c.named_like_id)][:1]
    dropped = [c for c in others if _is_dropped(c) and c.name not in ids]
    rest = {c.name for c in dropped} | set(ids)
    return _Sorted(ids[0] if ids else None, [c for c in others if c.name not in rest], dropped)


def _is_dropped(look: ColumnLook) -> bool:
    return look.kind == "empty" or (look.kind == "text" and look.distinct is None)


def _feature_file(
    found: _Sorted, name: str, party: str, table: str, label: str | None, data: list[str]
) -> list[list[str]]:
    head = [
        f"# What {visible(table)} may reveal about one person.  `opboost init` wrote the names and "
        "kinds",
        "# of the columns; no value, bound or category here was taken from the rows.",
        f"# Replace every {TODO} with what you know, then: opboost plan -c {visible(name)}",
    ]
    if label is not None:
        head.append(f"# Column {toml_text(label)} is the label: it has no section here.")
    budget = [
        "[budget]",
        _with_comment("record = 4.0", "the most revealed about one person, over all columns"),
        _with_comment("# rows = 20_000", "about how many people, if that is not secret"),
        _with_comment('# task = "classify"', 'or "regress", if you know what is predicted'),
    ]
    job = [
        "# For a job with other organisations, remove the first # of these lines.",
        "# [party]",
        f"# name = {toml_text(party)}",
        _with_comment('# job = "job.toml"', "the file that all parties agree on"),
        f"# table = {toml_text(table)}",
        _with_comment('# connect = "127.0.0.1:8815"', "where the label party listens"),
        *(["# [align]", '# id = "customer_id"'] if found.id is None else []),
        "# [tls]",
        _with_comment(f'# kit = "certs/{party}"', f"opboost certs new {party} --dir certs"),
        "# [ledger]",
        _with_comment('# folder = "ledger"', "what was released, to whom"),
        _with_comment('# key = "keys/ledger.key"', "made at first use"),
        _with_comment("# cap_person = 4.0", "no later job may add to it"),
    ]
    columns = [declaration(c) for c in found.declared]
    return [head, budget, data, _align(found), *columns, _table(found), job]


def _label_file(
    found: _Sorted, name: str, party: str, table: str, label: str | None, data: list[str]
) -> list[list[str]]:
    head = [
        f"# The label party's file about {visible(table)}.  Its columns stay with it, so it needs "
        "no [budget];",
        "# [job] record = 4.0 in job.toml limits what all feature parties together reveal about "
        "one person.",
        f"# Then: opboost doctor -c {visible(name)}",
    ]
    missing = toml_text(TODO) if label is None else toml_text(label)
    sections = [
        ["[label]", _with_comment(f"column = {missing}", "the column to predict")],
        [
            "[party]",
            f"name = {toml_text(party)}",
            _with_comment('job = "job.toml"', "the file that all parties agree on"),
            f"table = {toml_text(table)}",
            _with_comment('listen = "127.0.0.1:8815"', "where feature parties connect"),
        ],
        [
            "[tls]",
            _with_comment(f'kit = "certs/{party}"', f"opboost certs new {party} --dir certs"),
        ],
    ]
    align = _align(found) or [
        "[align]",
        _with_comment(f'id = "{TODO}"', "the column that identifies people"),
    ]
    own = ["# Own columns, used without noise:"]
    own += [
        f"#   {toml_text(c.name)}: {c.kind}{', with missing values' if c.missing else ''}"
        for c in found.declared
    ]
    booster = ["[booster]", "# params = { num_boost_round = 80, max_depth = 3, eta = 0.1 }"]
    job = [
        "# job.toml, the same for all parties, byte for byte:",
        "#   [job]",
        '#   name = "credit"',
        f"#   label_party = {toml_text(party)}",
        '#   feature_parties = ["shop"]',
        "#   [align]",
        _with_comment('#   rows = "common"', "the rows that all parties have"),
        _with_comment("#", 'or "mine": all rows of this table; each feature party then learns'),
        _with_comment(
            "#", "which of its people you have, not only which are in every party's table"
        ),
    ]
    return [head, sections[0], data, *sections[1:], align, own, _table(found), booster, job]


def _align(found: _Sorted) -> list[str]:
    if found.id is None:
        return []
    words = "identifies people, and stays here"
    return ["[align]", _with_comment(f"id = {toml_text(found.id)}", words)]


def _table(found: _Sorted) -> list[str]:
    if not found.dropped:
        return []
    names = ", ".join(toml_text(c.name) for c in found.dropped)
    words = "not sent: text with many distinct values, or empty"
    return ["[table]", _with_comment(f"drop = [{names}]", words)]


def _data(settings: dict[str, str]) -> list[str]:
    if not settings:
        return []
    lines = [f"{key} = {toml_text(value)}" for key, value in settings.items()]
    return [_with_comment("[data]", "how CSV files of this table are written"), *lines]


def _with_comment(setting: str, words: str) -> str:
    return f"{setting:<{_COMMENT_COLUMN - 1}} # {words}"
