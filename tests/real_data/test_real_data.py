"""Fits of real data sets; skipped unless FASTDISC_DATA names the folder that has them."""

import os

import numpy as np
import problems
import pytest
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression

from fastdisc import LogisticRegression

pytestmark = pytest.mark.skipif(
    not os.environ.get("FASTDISC_DATA"), reason="FASTDISC_DATA is not set"
)


@pytest.mark.parametrize("name", ["higgs", "a9a"])
def test_optimum_is_that_of_scikit_learn(name):
    X, y = getattr(problems, name)()
    ours = LogisticRegression(tol=1e-10).fit(X, y)
    theirs = SklearnLogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=200).fit(X, y)
    assert ours.converged_
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)


def test_held_out_accuracy_of_a9a_is_that_of_scikit_learn():
    from sklearn.datasets import load_svmlight_file

    X, y = problems.a9a()
    file = problems.data_folder() / "a9a" / "a9a.t.gz"
    X_test, y_test = load_svmlight_file(str(file), n_features=123)
    accuracy = LogisticRegression().fit(X, y).score(X_test, (y_test > 0).astype(int))
    assert accuracy == pytest.approx(0.8495, abs=5e-4)
