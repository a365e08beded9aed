from __future__ import annotations

import pyarrow as pa
import pytest

import opboost as op
from opboost.config import load, parse

WHOLE = """
[grid]
lower = 1
upper = 8

[mechanism]
kind = "clamp-map"
epsilon = 0.5

[columns.age]
bounds = [17, 90]

[columns.income]
bounds = [1, 10000]
scale = "log"
outside = "raise"
missing = "flag"
eps_missing = 1.0
missing_constant = 100
grid = { lower = 1, upper = 20 }
mechanism = { kind = "adj-map", eps_prt = 1.0, eps_ner = 0.1, theta = [4, 9] }

[columns.size]
categories = ["S", "M", "L"]
ordered = true
missing = "M"

[columns.city]
categories = ["north", "south"]
mechanism = { kind = "unary-encoding", epsilon = 1.0, encoding = "sue" }

[columns.region]
categories = [1, 2, 3]

[table]
public = ["note"]
drop = ["id"]
"""


def test_a_whole_file_says_what_it_means():
    plan = parse(WHOLE, "b.toml")
    age, income, size, city, region = plan.private
    assert age.mechanism == op.ClampMap(op.Domain(1, 8), 0.5)
    assert income.mechanism == op.AdjMap(op.Domain(1, 20), eps_prt=1.0, eps_ner=0.1, theta=(4, 9))
    assert income.missing == op.Flag(1.0, 100)
    assert income.outside == "raise"
    assert size.mechanism == op.ClampMap(op.Domain(1, 3), 0.5)
    assert city.mechanism == op.UnaryEncoding(["north", "south"], 1.0, "sue")
    assert region.mechanism == op.UnaryEncoding([1, 2, 3], 0.5)
    assert plan.public == ("note",)
    assert plan.drop == ("id",)
    assert plan.guarantee().caveats == ("columns released without noise (note)",)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ('kind = "global-map"\nepsilon = 1', op.GlobalMap(op.Domain(1, 10), 1)),
        (
            'kind = "local-map"\nepsilon = 1\ntheta = 2',
            op.LocalMap(op.Domain(1, 10), epsilon=1, theta=2),
        ),
        (
            'kind = "adj-map"\nepsilon = 1\ntheta = 2\nalpha = 3',
            op.AdjMap(op.Domain(1, 10), 1, theta=2, alpha=3),
        ),
        ('kind = "piecewise"\nepsilon = 1', op.Piecewise(op.Domain(1, 10), 1)),
        ('kind = "randomized-response"\nepsilon = 1', op.RandomizedResponse(op.Domain(1, 10), 1)),
    ],
)
def test_every_kind_of_mechanism(kind, expected):
    plan = parse(f"[mechanism]\n{kind}\n[columns.age]\nbounds = [0, 1]", "b.toml")
    assert plan.private[0].mechanism == expected


def test_budgets_split_the_level():
    text = (
        "[mechanism]\nepsilon = 1.0\n[columns.a]\nbounds = [0, 1]\n[columns.b]\nbounds = [0, 1]\n"
    )
    even = parse(text + '[budget]\nsplit = "even"', "b.toml")
    assert [c.mechanism.epsilon for c in even.private] == [0.5, 0.5]
    weighted = parse(text + '[budget]\nsplit = "weighted"\nweights = { a = 3, b = 1 }', "b.toml")
    assert [c.mechanism.epsilon for c in weighted.private] == [0.75, 0.25]
    sampled = parse(text + '[budget]\nsplit = "sampled"\ncolumns_per_row = 1', "b.toml")
    assert sampled.guarantee().columns_per_row == 1


AGE = "[mechanism]\nepsilon = 1.0\n[columns.age]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[columns", "b.toml is not TOML"),
        ("", "declares no column. Add [columns.age]"),
        ("[colums.age]\nbounds = [1, 2]", "colums is not a setting. Did you mean 'columns'?"),
        (AGE + "bonds = [1, 2]", "columns.age.bonds is not a setting. Did you mean 'bounds'?"),
        ('[align]\nrows = "mine"', "align.rows is not a setting. Write it into the job file"),
        ('[booster]\nengine = "ray"', "booster.engine: Input should be 'local', 'dask' or 'spark'"),
        ("[booster]\ndenoise = 3", "booster.denoise: Input should be 'auto' or a valid boolean"),
        ("[train]\nearly_stopping = true", "train.early_stopping: Input should be a valid integer"),
        (AGE + "bounds = [5, 5]", "[columns.age]: Bounds need lower < upper; got (5.0, 5.0)"),
        (AGE + 'bounds = ["a", 2]', "columns.age.bounds"),
        (AGE + "scale = 'log'", "give either bounds = [lower, upper] or categories"),
        (AGE + "bounds = [1, 2]\ncategories = ['a', 'b']", "give either bounds"),
        (AGE + "bounds = [-1, 2]\nscale = 'log'", "needs bounds above zero"),
        (AGE + "bounds = [1, 2]\nmissing = 'flag'", "needs eps_missing = 1.0"),
        (AGE + "bounds = [1, 2]\nmissing = 7", "public constant within its bounds"),
        ("[columns.age]\nbounds = [1, 2]", "clamp-map needs epsilon. Add epsilon = 0.64"),
        ("[mechanism]\nkind = 'adj-map'\nepsilon = 1\n[columns.a]\nbounds=[1,2]", "needs theta"),
        ("[mechanism]\nkind = 'laplace'\nepsilon = 1\n[columns.a]\nbounds=[1,2]", "mechanism.kind"),
        ("[mechanism]\nepsilon = -1\n[columns.a]\nbounds=[1,2]", "epsilon must lie between"),
        ("[grid]\nlower = 3\nupper = 3\n" + AGE + "bounds = [1, 2]", "Domain needs L < R"),
        (AGE + "bounds=[1,2]\nmechanism={kind='unary-encoding',epsilon=1}", "needs categories"),
        (AGE + "bounds = [1, 2]\n[table]\ndrop = ['age']", "names column 'age' twice"),
        (AGE + "bounds = [1, 2]\n[budget]\nsplit = 'sampled'", "needs columns_per_row"),
        (AGE + "bounds = [1, 2]\n[budget]\nsplit = 'weighted'", "needs [budget.weights]"),
        (AGE + "bounds = [9, 2]", "Did you mean (2.0, 9.0)?"),
        (
            "[mechanism]\nepsilon=1\ntheta=2\n[columns.a]\nbounds=[1,2]",
            "theta has no meaning for clamp-map",
        ),
        (AGE + "bounds = [1, 2]\nordered = true", "ordered has no meaning"),
        (AGE + "categories = ['a', 'b']\nscale = 'log'", "scale has no meaning"),
        (AGE + "bounds = [1, 2]\neps_missing = 1.0", 'go with missing = "flag"'),
        (
            AGE + "bounds = [1, 2]\nmechanism = { kid = 'x' }",
            "mechanism.kid is not a setting. Did you mean 'kind'?",
        ),
        (
            AGE + "categories=['a','b']\nordered=true\nmechanism={kind='unary-encoding',epsilon=1}",
            "ignores the order",
        ),
        (
            AGE + "categories=['a','b']\nmechanism={kind='clamp-map',epsilon=1}",
            "protects by distance",
        ),
        (
            "[mechanism]\nkind='adj-map'\neps_prt=1\neps_ner=1\ntheta=2\n[columns.a]\ncategories=['x','y']",
            "have no order",
        ),
        (AGE + "bounds = [1, 2]\n[budget]\nsplit='even'\ncolumns_per_row=1", "goes with split"),
        (
            AGE + "bounds = [1, 2]\n[budget]\nsplit='weighted'\nweights={agee=1, age=1}",
            "'agee' has a weight",
        ),
        (
            AGE + "categories=['x','y']\n[columns.'age=x']\nbounds=[0,1]",
            "would be released as 'age=x'",
        ),
    ],
)
def test_a_bad_file_is_refused_with_place_and_next_step(text, words):
    with pytest.raises(op.ConfigError) as error:
        parse(text, "b.toml")
    assert words in str(error.value)
    assert "b.toml" in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(op.ConfigError, match="cannot be read"):
        load(tmp_path / "none.toml")


def test_undeclared_and_absent_columns_are_refused():
    plan = parse(AGE + "bounds = [1, 2]", "b.toml")
    with pytest.raises(op.ColumnError, match=r"Add \[columns.pay\] bounds = .* to b.toml"):
        plan.check_names(["age", "pay"])
    with pytest.raises(op.ColumnError, match=r"Add \[columns.\"net pay\"\]"):
        plan.check_names(["age", "net pay"])
    with pytest.raises(op.ColumnError, match=r"'age' of b.toml is not in the table.*mean 'Age'"):
        plan.check_names(["Age"])


@pytest.mark.parametrize("missing", ["flag", "symbol"])
@pytest.mark.parametrize("head", ["[budget]\nrecord = 1.0", "[mechanism]\nepsilon = 1.0"])
def test_a_gap_of_categories_without_an_order_is_one_more_category(missing, head):
    text = f"{head}\n[columns.city]\ncategories = ['north', 'south']\nmissing = '{missing}'\n"
    (city,) = parse(text, "b.toml").private
    assert city.feature_names() == ["city=north", "city=south", "city=None"]
    assert city.guarantee().total == pytest.approx(1.0)
    prepared = city.prepare(pa.table({"city": ["south", None, "north"]}))
    assert (prepared.cells - prepared.cells.min()).tolist() == [1, 2, 0]
    with pytest.raises(op.ConfigError, match=r"columns.city"):
        parse(
            text.replace("'symbol'", "'flag'") + "eps_missing = 1.0\nmissing_constant = 'north'",
            "b",
        )


def test_a_flag_serves_all_columns_of_a_table():
    table = pa.table({"age": [20.0, None], "city": ["north", None]})
    d = op.Desensitizer(
        op.ClampMap(op.Domain(1, 10), 1.0),
        bounds={"age": (0, 90)},
        categories={"city": ["north", "south"]},
        missing={"age": op.Flag(1.0, 40), "city": op.Flag(1.0, "north")},
    )
    assert d.fit_transform(table).column_names[1:] == ["city=north", "city=south", "city=None"]
