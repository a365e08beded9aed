import json

import pytest

import opboost as op
from opboost.config.column_sections import MechanismSection
from opboost.mechanisms import registry

GRID = op.Domain(1, 10)

STORED = [
    (op.GlobalMap(GRID, 0.64), {"kind": "GlobalMap", "grid": [1, 10], "epsilon": 0.64}),
    (op.ClampMap(GRID, 0.64), {"kind": "ClampMap", "grid": [1, 10], "epsilon": 0.64}),
    (
        op.AdjMap(GRID, 0.64, theta=5, alpha=2),
        {"kind": "AdjMap", "grid": [1, 10], "epsilon": 0.64, "alpha": 2.0, "theta": 5},
    ),
    (
        op.AdjMap(GRID, eps_prt=1.0, eps_ner=0.5, theta=(3, 7)),
        {"kind": "AdjMap", "grid": [1, 10], "eps_prt": 1.0, "eps_ner": 0.5, "theta": [3, 7]},
    ),
    (
        op.LocalMap(GRID, epsilon=0.64, theta=(3, 7)),
        {"kind": "LocalMap", "grid": [1, 10], "epsilon": 0.64, "theta": [3, 7]},
    ),
    (
        op.RandomizedResponse(GRID, 1.0),
        {"kind": "RandomizedResponse", "grid": [1, 10], "epsilon": 1.0},
    ),
    (
        op.Piecewise(GRID, 1.0, clipped=False),
        {"kind": "Piecewise", "grid": [1, 10], "epsilon": 1.0, "clipped": False},
    ),
    (
        op.UnaryEncoding(["a", "b"], 1.0, "sue"),
        {"kind": "UnaryEncoding", "categories": ["a", "b"], "epsilon": 1.0, "encoding": "sue"},
    ),
    (
        op.SubsetSelection(["a", "b", "c"], 1.0, 2),
        {"kind": "SubsetSelection", "categories": ["a", "b", "c"], "epsilon": 1.0, "size": 2},
    ),
    (
        op.WindowMap(GRID, 4.0, near=0.5, width=1, clipped=False),
        {
            "kind": "WindowMap",
            "grid": [1, 10],
            "total": 4.0,
            "near": 0.5,
            "width": 1,
            "clipped": False,
        },
    ),
]


@pytest.mark.parametrize(("mechanism", "spec"), STORED, ids=lambda x: str(x)[:30])
def test_stored_form_is_the_same_byte_for_byte_and_comes_back(mechanism, spec):
    assert json.dumps(registry.to_dict(mechanism)) == json.dumps(spec)
    assert registry.from_dict(json.loads(json.dumps(spec))) == mechanism


def test_every_entry_is_stored():
    assert {type(m) for m, _ in STORED} == {entry.built_by for entry in registry.ENTRIES}


@pytest.mark.parametrize("entry", registry.on_grids(), ids=lambda e: e.kind)
def test_the_example_of_every_kind_can_be_configured_and_built(entry):
    example = {p.name: p.example for p in entry.toml_parameters() if p.example is not None}
    made = MechanismSection(kind=entry.kind, **example).on(GRID)
    assert type(made) is entry.built_by
    assert made == registry.build(entry.kind, GRID, **example)


def test_a_parameter_that_is_needed_is_named():
    with pytest.raises(op.ParameterError, match=r"local-map needs theta\. Add theta = 2"):
        registry.build("local-map", GRID, epsilon=0.64)
    with pytest.raises(op.ParameterError, match="kind must be one of global-map"):
        registry.build("unary-encoding", GRID, epsilon=0.64)


def test_a_file_must_hold_every_parameter_that_is_always_written():
    with pytest.raises(KeyError, match="clipped"):
        registry.from_dict({"kind": "Piecewise", "grid": [1, 10], "epsilon": 1.0})
    with pytest.raises(op.DataError, match="No mechanism is called 'Unheard'"):
        registry.from_dict({"kind": "Unheard"})


def test_a_mechanism_without_an_entry_is_not_stored():
    class Own(op.ClampMap):
        pass

    with pytest.raises(op.DataError, match="Own cannot be saved"):
        registry.to_dict(Own(GRID, 0.64))
    assert registry.is_by_distance(Own(GRID, 0.64))
    assert not registry.is_by_distance(op.RandomizedResponse(GRID, 0.64))
