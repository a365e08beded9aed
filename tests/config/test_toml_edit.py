"""Changing keys of a TOML text keeps every other byte of it."""

from __future__ import annotations

import copy
import tomllib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opboost.config.toml_edit import changed, toml_value
from opboost.config.toml_text import toml_key
from opboost.errors import ConfigError

NAMES = st.sampled_from(["a", "b-1", "record", "größe", 'say "x"', "dot.ted", "[odd]", "#"])
WORDS = st.sampled_from(["", "#", "x = 1", '"', "'", "[t]", "\\", "é\t", '"""', "]", "{"])
SCALARS = st.one_of(
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.booleans(),
    WORDS,
)
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(NAMES, SCALARS, max_size=2)
)
COMMENTS = st.sampled_from(["", "  # kept", "\t# [budget]", " # record = 9"])
BETWEEN = st.sampled_from(["", "\n", "# a comment, with [t] and 'quotes\n", "   \n#\n"])


@st.composite
def written(draw, value):
    """Draw a value as somebody might write it: on several lines, or as another kind of string."""
    if isinstance(value, list) and value and draw(st.booleans()):
        inside = "".join(f"  {toml_value(v)},  # of [these\n" for v in value)
        return f"[\n{inside}]"
    if isinstance(value, str) and draw(st.booleans()):
        if "'" not in value and "\t" not in value:
            return f"'{value}'"
        return '"""\n' + value.replace("\\", "\\\\").replace('"', '\\"') + '"""'
    return toml_value(value)


@st.composite
def files(draw):
    """Draw a TOML text of many styles in pieces, each with the key that it sets or ()."""
    pieces = []

    def add(prefix, table, names):
        for name in names:
            pieces.append((draw(BETWEEN), ()))
            shown, indent = draw(written(draw(VALUES))), draw(st.sampled_from(["", "  "]))
            line = f"{indent}{prefix}{toml_key(name)} = {shown}{draw(COMMENTS)}\n"
            pieces.append((line, (*table, name)))

    some = st.lists(NAMES, unique=True, max_size=3)
    add("", (), draw(st.lists(st.sampled_from(["x", "y"]), unique=True)))
    tables = draw(st.lists(st.sampled_from(["budget", "t", "größe o"]), unique=True))
    dotted = draw(st.integers(0, len(tables)))
    for table in tables[:dotted]:
        add(f"{toml_key(table)} . ", (table,), draw(some))
    for table in tables[dotted:]:
        pieces.append((f"[ {toml_key(table)} ]{draw(COMMENTS)}\n", (table,)))
        add("", (table,), draw(some))
        if draw(st.booleans()):
            pieces.append((f"[{toml_key(table)}.inner]\n", (table, "inner")))
            add("", (table, "inner"), draw(some))
    pieces.append((draw(st.sampled_from(["", "# the end", "\n\n"])), ()))
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    return [(text.replace("\n", ends), path) for text, path in pieces]


CHANGES = st.dictionaries(
    st.one_of(
        st.tuples(st.just("budget"), NAMES),
        st.tuples(st.sampled_from(["t", "new"]), st.just("inner"), NAMES),
        st.tuples(st.just("t")),
    ),
    st.one_of(st.none(), SCALARS, st.lists(SCALARS, max_size=2)),
    max_size=3,
)


def kept(value):
    if not isinstance(value, dict):
        return value
    inside = {k: kept(v) for k, v in value.items()}
    return {k: v for k, v in inside.items() if v != {}}


@settings(max_examples=400, deadline=None)
@given(files(), CHANGES)
def test_whatever_is_not_changed_is_kept_byte_by_byte(pieces, changes):
    text = "".join(piece for piece, _ in pieces)
    plain = tomllib.loads(text)
    # Tables are only ever removed, and no key is set inside another key's plain value.
    changes = {path: None if len(path) == 1 else v for path, v in changes.items()}
    expected = copy.deepcopy(plain)
    for path, value in changes.items():
        into = expected
        for name in path[:-1]:
            into = into.setdefault(name, {})
            assume(isinstance(into, dict))
        assume(value is None or not isinstance(into.get(path[-1]), dict))
        if value is None:
            into.pop(path[-1], None)
        else:
            into[path[-1]] = value
    done = changed(text, changes)
    assert kept(tomllib.loads(done)) == kept(expected)
    place = 0
    for piece, path in pieces:
        if not path or not any(_meets(path, other) for other in changes):
            place = done.find(piece, place)
            assert place >= 0, piece
            place += len(piece)
    if not changes:
        assert done == text


def _meets(path, other):
    least = min(len(path), len(other))
    return path[:least] == other[:least]


PARTY = """\
# The shop's file. Lena keeps it.

[party]
name = "shop"      # as in the certificate
job = 'job.toml'

[budget]           # signed on 2 May
record = 4         # the most
weights = { age = 2, "a b" = 1 }

[columns."a b"]
bounds = [
    0,             # public
    1,
]
[columns.age]
bounds = [17, 90]
mechanism = { kind = "clamp-map", epsilon = 0.5 }
note = \"\"\"
[budget]
record = 99
\"\"\"

[mechanism]        # the old way
kind = "clamp-map"
"""


def test_a_party_keeps_its_comments_and_gets_what_changed():
    done = changed(
        PARTY,
        {
            ("budget", "record"): 2.5,
            ("budget", "task"): "classify",
            ("budget", "weights", "age"): 3,
            ("columns", "a b", "bounds"): [0.0, 2.0],
            ("columns", "age", "mechanism"): None,
            ("mechanism",): None,
        },
    )
    before, after = PARTY.splitlines(), done.splitlines()
    assert [line for line in before if line not in after] == [
        "record = 4         # the most",
        'weights = { age = 2, "a b" = 1 }',
        "bounds = [",
        "    0,             # public",
        "    1,",
        "]",
        'mechanism = { kind = "clamp-map", epsilon = 0.5 }',
        "[mechanism]        # the old way",
        'kind = "clamp-map"',
    ]
    assert [line for line in after if line not in before] == [
        "record = 2.5         # the most",
        'weights = { age = 3, "a b" = 1 }',
        'task = "classify"',
        "bounds = [0.0, 2.0]",
        '# mechanism = { kind = "clamp-map", epsilon = 0.5 }',
        "# [mechanism]        # the old way",
        '# kind = "clamp-map"',
    ]


def test_a_value_that_is_the_same_is_left_as_it_was_written():
    assert (
        changed(PARTY, {("budget", "record"): 4.0, ("columns", "age", "bounds"): [17.0, 90]})
        == PARTY
    )


def test_what_cannot_be_changed_alone_is_refused():
    with pytest.raises(ConfigError, match=r"b.toml is written so that t\.a cannot"):
        changed("t = 5\n", {("t", "a"): 1}, "b.toml")
    with pytest.raises(ConfigError, match="by hand"):
        changed("[[t]]\na = 1\n[[t]]\na = 2\n", {("t", "a"): 1})
