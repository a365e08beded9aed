"""Modules are loaded without garbage collection, and without packages that are not needed."""

from __future__ import annotations

import subprocess
import textwrap

from opboost.runtime.child_processes import python_command


def run(code: str) -> None:
    """Run code in a separate process, which freezes its objects."""
    done = subprocess.run(
        python_command("-c", textwrap.dedent(code)), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_garbage_is_collected_again_after_the_last_block():
    run(
        """
        import gc
        from opboost.runtime.loading import loading
        with loading:
            with loading:
                assert not gc.isenabled()
            assert not gc.isenabled()
            kept = [[] for _ in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() > 1000
        """
    )


def test_an_import_that_fails_leaves_collection_on():
    run(
        """
        import gc
        from opboost.runtime.loading import loading
        try:
            with loading:
                import no_such_package
        except ModuleNotFoundError:
            assert gc.isenabled()
        """
    )


def test_collection_that_was_off_stays_off():
    run(
        """
        import gc
        from opboost.runtime.loading import loading
        gc.disable()
        with loading:
            pass
        assert not gc.isenabled()
        """
    )


def test_optional_packages_are_left_out_until_somebody_imports_them():
    run(
        """
        import sys
        from opboost.runtime.optional_packages import load_without_optional_packages
        load_without_optional_packages()
        from opboost.protocol.entropy_coding import warm_up
        warm_up()
        assert not {"pandas", "scipy.linalg", "cffi", "coverage"} & set(sys.modules)
        import cffi, pandas, scipy.linalg
        import pyarrow as pa
        assert pa.table({"a": [1, 2]}).to_pandas()["a"].tolist() == [1, 2]
        assert pa.array(pandas.Series([1.0, None])).null_count == 1
        """
    )


def test_packages_that_are_loaded_already_stay():
    run(
        """
        import sys, pandas, pyarrow as pa
        from opboost.runtime.optional_packages import load_without_optional_packages
        load_without_optional_packages()
        assert sys.modules["pandas"] is pandas
        assert pa.array(pandas.Series([1.0, None])).null_count == 1
        """
    )


def test_xgboost_alone_trains_the_same_model_as_beside_scikit_learn():
    train = """
        import hashlib, numpy as np, xgboost as xgb
        rng = np.random.default_rng(0)
        X, y = rng.random((500, 4)).astype(np.float32), rng.integers(0, 2, 500)
        trained = xgb.train({"objective": "binary:logistic"}, xgb.QuantileDMatrix(X, y), 5)
        digest = hashlib.sha256(trained.save_raw("json")).hexdigest()
        """
    code = textwrap.dedent(train)
    found = {}
    exec(code, found)
    run(
        "import sys\n"
        "from opboost.runtime.optional_packages import load_xgboost_alone\n"
        "load_xgboost_alone()\n"
        + code
        + "assert 'sklearn' not in sys.modules\n"
        + f"assert digest == {found['digest']!r}\n"
        + "from sklearn.base import BaseEstimator\n"
    )
