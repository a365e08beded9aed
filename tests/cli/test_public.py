from __future__ import annotations

import ast
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import opboost as op


def test_all_is_what_can_be_imported():
    helpers = {"Any", "TYPE_CHECKING", "import_module"}
    public = {
        name
        for name in dir(op)
        if not name.startswith("_")
        and (name == "theory" or not isinstance(getattr(op, name), types.ModuleType))
    }
    assert set(op.__all__) == public - helpers
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = op.Nothing


def test_modules_that_a_docstring_names_exist():
    source = Path(op.__file__).parent
    for file in source.rglob("*.py"):
        named = re.findall(
            r"[(`]([\w/]+\.py)[)`]", ast.get_docstring(ast.parse(file.read_text())) or ""
        )
        lost = [n for n in named if not [*file.parent.rglob(n)] and not (source / n).exists()]
        assert not lost, f"{file.relative_to(source)} names {lost}"


def test_every_public_name_is_documented():
    for name in op.__all__:
        assert (getattr(op, name).__doc__ or "").strip(), name


@pytest.mark.parametrize("memo", [True, False])
def test_order_preserving_encryption_keeps_all_order_and_promises_nothing(memo):
    cipher = op.OrderPreservingEncryption(op.Domain(1, 50), key=b"k" * 32, memo=memo)
    x = np.random.default_rng(0).integers(1, 51, 60)
    y = cipher.sample(x)
    assert (np.sign(np.subtract.outer(x, x)) == np.sign(np.subtract.outer(y, y))).all()
    assert str(cipher.guarantee()).startswith("none: order-preserving encryption")


def test_importing_takes_nothing_heavy_along():
    script = (
        "import sys, opboost as op; op.ClampMap(op.Domain(1, 10), 0.5).sample([1]);"
        "heavy = {'sklearn', 'scipy.stats', 'matplotlib', 'pandas', 'pyarrow'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_importing_is_free_of_side_effects_on_numpys_generator():
    script = (
        "import numpy as np; np.random.seed(1); a = np.random.get_state()[1].copy();"
        "import opboost as op; op.ClampMap(op.Domain(1, 10), 0.5).sample([1, 2]);"
        "assert (np.random.get_state()[1] == a).all()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
