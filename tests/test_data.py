"""Real data sets, where FASTDISC_DATA names their folder."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Rival

from fastdisc import LogisticRegression

pytestmark = pytest.mark.skipif(not os.environ.get("FASTDISC_DATA"), reason="FASTDISC_DATA is not set")


@pytest.fixture
def problems(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "bench"))
    import problems

    yield problems
    sys.modules.pop("problems", None)


@pytest.mark.parametrize("name", ["higgs", "a9a"])
def test_the_optimum_is_that_of_scikit_learn(problems, name):
    X, y = getattr(problems, name)()
    ours = LogisticRegression(tol=1e-10).fit(X, y)
    theirs = Rival(solver="newton-cholesky", tol=1e-12, max_iter=200).fit(X, y)
    assert ours.converged_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)


def test_accuracy_on_a9a(problems):
    from sklearn.datasets import load_svmlight_file

    X, y = problems.a9a()
    X_test, y_test = load_svmlight_file(str(problems.data_folder() / "a9a" / "a9a.t.gz"), n_features=123)
    assert LogisticRegression().fit(X, y).score(X_test, (y_test > 0).astype(int)) == pytest.approx(0.8495, abs=5e-4)
