"""scikit-learn's LogisticRegression, each solver that takes an unpenalised intercept and many classes."""

import warnings
from time import perf_counter

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from . import timed

NAME = "scikit-learn"
SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")


def fit(X, y, C, tol):
    for solver in SOLVERS:

        def run(solver=solver):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = LogisticRegression(C=C, tol=tol, solver=solver, max_iter=2000).fit(X, y)
            return model.coef_, model.intercept_

        yield timed(solver, perf_counter, run)
