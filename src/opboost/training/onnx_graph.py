"""A trained model as an ONNX graph: raw columns in, predictions out.

Every column of the table is an input of shape [n, 1].  Numbers are doubles, NaN for a gap; dates
are days since 1970-01-01 in UTC; categories are text, "" for a gap, or whole numbers.  Categories
go through a table that OpBoost's own code fills in, so that the graph maps them as ``predict``
does.  Trees keep their thresholds in raw units: 32-bit floats if the booster's library compares
them, otherwise 64-bit floats.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from opboost.boosting.booster import Additive, Exportable, Matrix, StockFeature
from opboost.columns.dataframes import Encoded
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError, ParameterError
from opboost.grid import NumericMapping
from opboost.scores.clean_features import feature_block
from opboost.scores.flat_trees import LEAF, AdditiveModel, FlatTrees, Tree
from opboost.training.column_origins import Origins
from opboost.training.feature_matrix import Layout, OwnColumn
from opboost.training.stock_features import stock_features

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Versions old enough for runtimes of recent years, and new enough for 64-bit thresholds."""

GAP = ""
"""The text of a missing category: ONNX has no missing text."""

PREDICTION, PROBABILITY = "prediction", "probability"
_CHECKED_ROWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class CategoryTable:
    """The features of each category of a column.

    Attributes:
        keys: The categories, all text or all whole numbers, with the gap if it may occur.
        features: A row of features for each key.
        strict: Whether any other category is refused; otherwise all its features are zero.
    """

    keys: tuple[Any, ...]
    features: Matrix
    strict: bool

    @property
    def is_text(self) -> bool:
        """Whether categories are text."""
        return isinstance(self.keys[0], str)

    @classmethod
    def of_private(cls, column: PrivateColumn) -> CategoryTable:
        """Build the table of a private column, with gaps as its declaration treats them."""
        keys = _checked(column.name, [c for c in column.categories if c is not None])
        features = feature_block(column, column.prepare_values(_rows(keys)))
        if isinstance(keys[0], str) and column.takes_gaps and GAP not in keys:
            gap = feature_block(column, column.prepare_values(Encoded(np.array([-1]), [])))
            return cls((*keys, GAP), np.vstack([features, gap]), True)
        return cls(keys, features, True)

    @classmethod
    def of_own(cls, column: OwnColumn) -> CategoryTable:
        """Build the table of a column of the label party."""
        assert column.categories is not None
        keys = _checked(column.name, column.categories)
        return cls(keys, column.block_of(_rows(keys)), False)


def _rows(keys: Sequence[Any]) -> Encoded:
    return Encoded(np.arange(len(keys)), list(keys))


def _checked(name: Hashable, categories: Sequence[Any]) -> tuple[Any, ...]:
    """Refuse categories that do not fit into one ONNX tensor."""
    if not categories or not (
        all(isinstance(c, str) for c in categories) or all(isinstance(c, int) for c in categories)
    ):
        raise ColumnError(
            name,
            "has categories that are neither all text nor all whole numbers, as ONNX needs them",
            hint="Write its categories as text before training.",
        )
    return tuple(categories)


def category_table(column: PrivateColumn | OwnColumn) -> CategoryTable | None:
    """Return the table of a column of categories; None for numbers and dates."""
    if isinstance(column, OwnColumn):
        return None if column.categories is None else CategoryTable.of_own(column)
    if isinstance(column.mapping, NumericMapping):
        return None
    return CategoryTable.of_private(column)


def table_columns(layout: Layout, order: Sequence[Hashable]) -> list[PrivateColumn | OwnColumn]:
    """Return the columns of a table in its order."""
    by_name: dict[Hashable, PrivateColumn | OwnColumn] = {c.name: c for c in layout.own}
    by_name |= {c.name: c for c in layout.private}
    return [by_name[name] for name in order]


@dataclass(slots=True)
class _Graph:
    """The nodes and constants of an unfinished graph; ``floats`` is the type that trees compare."""

    floats: Any
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    inputs: list[ValueInfoProto] = field(default_factory=list)

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        made = helper.make_node(kind, list(inputs), [name], domain=domain, **attributes)
        self.nodes.append(made)
        return name

    def constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def column(self, column: PrivateColumn | OwnColumn) -> str:
        """Add a column's input, and return the name of its features."""
        name, table = str(column.name), category_table(column)
        if table is None:
            kind, about = TensorProto.DOUBLE, "a number, NaN for a gap; a date as days since 1970"
        else:
            kind = TensorProto.STRING if table.is_text else TensorProto.INT64
            about = "a category" + (', "" for a gap' if table.is_text else "")
        self.inputs.append(helper.make_tensor_value_info(name, kind, [None, 1], about))
        if table is None:
            return (
                name if self.floats is np.float64 else self.add("Cast", name, to=TensorProto.FLOAT)
            )
        return self._looked_up(name, table)

    def _looked_up(self, name: str, table: CategoryTable) -> str:
        """Map categories to rows of features; a runtime refuses an index beyond the table."""
        features = table.features.astype(self.floats)
        if not table.strict:
            features = np.vstack([features, np.zeros_like(features[:1])])
        keys = {"keys_strings": list(table.keys)} if table.is_text else {"keys_int64s": table.keys}
        place = self.add(
            "LabelEncoder",
            name,
            domain="ai.onnx.ml",
            values_int64s=list(range(len(table.keys))),
            default_int64=len(table.keys),
            **keys,
        )
        found = self.add("Gather", self.constant(features), place, axis=0)
        return self.add("Squeeze", found, self.constant(np.array([1], dtype=np.int64)))

    def trees(self, features: str, model: AdditiveModel) -> str:
        """Return the sums of leaves, one for each group."""
        return self.add(
            "TreeEnsembleRegressor",
            features,
            domain="ai.onnx.ml",
            n_targets=model.trees.groups,
            aggregate_function="SUM",
            post_transform="NONE",
            **_tree_attributes(model, self.floats),
        )


def onnx_model(
    trained: Any,
    layout: Layout,
    order: Sequence[Hashable],
    classes: np.ndarray[Any, Any] | None,
    about: dict[str, str],
) -> ModelProto:
    """Return the graph of a trained model over a table with these columns."""
    model, floats = _raw_model(trained, layout, order)
    graph = _Graph(floats)
    blocks = [graph.column(column) for column in table_columns(layout, order)]
    margins = graph.trees(graph.add("Concat", *blocks, axis=1), model)
    outputs = list(_outputs(graph, margins, model.link, classes))
    made = helper.make_model(
        helper.make_graph(graph.nodes, "opboost", graph.inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        producer_name="opboost",
        producer_version=version("opboost"),
        ir_version=IR_VERSION,
    )
    helper.set_model_props(made, about)
    checker.check_model(made)
    return made


def _raw_model(
    trained: Any, layout: Layout, order: Sequence[Hashable]
) -> tuple[AdditiveModel, Any]:
    """Return the trees in raw units and the type that they compare; refuse other models."""
    if not (isinstance(trained, Exportable) and isinstance(trained, Additive)):
        raise ParameterError(
            f"A model of your own booster ({type(trained).__name__}) has no ONNX form. Train with "
            "booster='xgboost', 'lightgbm', 'gbdt' or 'hist-gbdt'."
        )
    found = stock_features(trained, layout, order, Origins(), "raw")
    features = [f for f in found if f.place is not None]
    exported = trained.exported(features, named=False)
    assert isinstance(exported, Additive)
    model = exported.additive()
    _check_same(exported, model, features, trained.floats)
    return model, trained.floats


def _check_same(
    exported: Any, model: AdditiveModel, features: Sequence[StockFeature], floats: Any
) -> None:
    """Refuse trees whose sum is not what the library predicts, as in averaged forests."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(_CHECKED_ROWS, len(features)))
    for place, cuts in exported.cuts().items():
        usable = np.array([c for c in cuts if abs(c) < 1e30])
        if usable.size:
            rows[:, place] = rng.choice(usable, _CHECKED_ROWS) + rng.normal(size=_CHECKED_ROWS)
    rows = rows.astype(floats)
    if not np.allclose(model.predict(rows), exported.predict(rows), rtol=1e-3, atol=1e-4):
        raise ParameterError(
            "The booster's parameters give a model that is not a sum over its trees and so has no "
            "ONNX form here. Use gradient boosting, for example."
        )


def _tree_attributes(model: AdditiveModel, floats: Any) -> dict[str, Any]:
    """Return all nodes of all trees, in the lists that the operator expects."""
    trees = model.trees.trees() or [Tree(0, [0], [0.0], [LEAF], [LEAF], [False], [0.0])]
    sizes = [len(tree.left) for tree in trees]
    flat = FlatTrees.of(trees, model.trees.groups)
    number = np.repeat(np.arange(len(trees)), sizes)
    node = np.concatenate([np.arange(size) for size in sizes])
    start = np.repeat(flat.roots, sizes)
    leaf = flat.left == LEAF
    inner = ~leaf
    return {
        "nodes_treeids": number.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": np.where(inner, flat.feature, 0).tolist(),
        "nodes_modes": ["BRANCH_LT" if one else "LEAF" for one in inner],
        "nodes_truenodeids": np.where(inner, flat.left - start, 0).tolist(),
        "nodes_falsenodeids": np.where(inner, flat.right - start, 0).tolist(),
        "nodes_missing_value_tracks_true": (flat.gap_left & inner).astype(int).tolist(),
        **_numbers("nodes_values", np.where(inner, _upward(flat.cut, floats), 0.0), floats),
        "target_treeids": number[leaf].tolist(),
        "target_nodeids": node[leaf].tolist(),
        "target_ids": np.repeat(flat.group, sizes)[leaf].tolist(),
        **_numbers("target_weights", flat.value[leaf], floats),
        **_numbers("base_values", model.base, floats),
    }


def _numbers(name: str, values: Any, floats: Any) -> dict[str, Any]:
    """Return an attribute of numbers: a list of 32-bit floats, or a tensor of 64-bit ones."""
    if floats is np.float32:
        return {name: np.asarray(values, dtype=np.float32).tolist()}
    tensor = numpy_helper.from_array(np.asarray(values, dtype=np.float64), name)
    return {f"{name}_as_tensor": tensor}


def _upward(cuts: Any, floats: Any) -> Any:
    """Return the smallest floats at or above the cuts; they split floats as the cuts do."""
    with np.errstate(over="ignore"):
        near = np.asarray(cuts).astype(floats)
        return np.where(near < cuts, np.nextafter(near, floats(np.inf)), near)


def _outputs(
    graph: _Graph, margins: str, link: str, classes: np.ndarray[Any, Any] | None
) -> Iterator[ValueInfoProto]:
    """Yield the last nodes, under the names of the outputs."""
    if classes is None:
        found = graph.add("Exp", margins) if link == "exp" else margins
        yield _named(graph, PREDICTION, found, TensorProto.FLOAT, [None, 1])
        return
    if link == "logistic":
        chance = graph.add("Sigmoid", margins)
        one = graph.constant(np.ones((1, 1), dtype=np.float32))
        chances = graph.add("Concat", graph.add("Sub", one, chance), chance, axis=1)
    else:
        chances = graph.add("Softmax", margins, axis=1)
    best = graph.add("ArgMax", chances, axis=1, keepdims=0)
    label = graph.add("Gather", graph.constant(_class_tensor(classes)), best, axis=0)
    kind = helper.np_dtype_to_tensor_dtype(_class_tensor(classes).dtype)
    yield _named(graph, PREDICTION, label, kind, [None])
    yield _named(graph, PROBABILITY, chances, TensorProto.FLOAT, [None, len(classes)])


def _named(graph: _Graph, name: str, value: str, kind: int, shape: list[Any]) -> ValueInfoProto:
    graph.nodes.append(helper.make_node("Identity", [value], [name]))
    return helper.make_tensor_value_info(name, kind, shape)


def _class_tensor(classes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return classes as ONNX holds them: text, whole numbers, floats or booleans."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    return classes if classes.dtype.kind in "fb" else classes.astype(str).astype(object)
