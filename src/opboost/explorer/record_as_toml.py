"""A record plan as TOML, which ``opboost plan`` and all other commands read."""

from __future__ import annotations

from opboost.budgets.budget import RecordBudget
from opboost.config.toml_text import toml_key, toml_text
from opboost.explorer.record_form import PlannedRecord


def record_as_toml(planned: PlannedRecord) -> str:
    """Return the lines to copy: ``[budget]``, and example columns if no file declares any.

    >>> from opboost.explorer.record_form import RecordForm, planned_record
    >>> fields = {"radius": "0.1", "columns": "2", "nominal": "1", "categories": "3"}
    >>> found, _ = planned_record(RecordForm.of(fields))
    >>> print(record_as_toml(found))
    [budget]
    record = 4.0
    radius = 0.1
    <BLANKLINE>
    # Put your own columns here. Bounds are
    # public, never taken from the data.
    [columns.number_1]
    bounds = [0.0, 100.0]
    <BLANKLINE>
    [columns.category_1]
    categories = ["c1", "c2", "c3"]
    <BLANKLINE>
    """
    parts = [budget_lines(planned.budget)]
    columns = [
        f"[columns.{toml_key(name)}]\nbounds = [{lower!r}, {upper!r}]\n"
        for name, (lower, upper) in planned.bounds.items()
    ]
    columns += [
        f"[columns.{toml_key(name)}]\ncategories = [{', '.join(map(toml_text, listed))}]\n"
        for name, listed in planned.categories.items()
    ]
    if columns:
        said = "# Put your own columns here. Bounds are\n# public, never taken from the data.\n"
        parts += [said + columns[0], *columns[1:]]
    return "\n".join(parts)


def budget_lines(budget: RecordBudget) -> str:
    """Return the section ``[budget]``.

    >>> from opboost.budgets.budget import Budget
    >>> print(budget_lines(Budget.record(2, rows=20_000, task="regress", weights={"a b": 2})))
    [budget]
    record = 2.0
    rows = 20000
    task = "regress"
    weights = { "a b" = 2 }
    <BLANKLINE>
    """
    lines = ["[budget]", f"record = {budget.total!r}"]
    numbers = {name: getattr(budget, name) for name in ("radius", "rows", "columns_per_row")}
    lines += [f"{name} = {value!r}" for name, value in numbers.items() if value is not None]
    if budget.task is not None:
        lines.append(f"task = {toml_text(budget.task)}")
    if budget.pilot:
        lines.append(f"pilot = {budget.pilot!r}")
    if budget.weights is not None:
        weights = ", ".join(f"{toml_key(n)} = {w!r}" for n, w in budget.weights.items())
        lines.append(f"weights = {{ {weights} }}")
    return "\n".join([*lines, ""])
