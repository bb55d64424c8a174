"""scikit-learn-intelex: scikit-learn's class on oneDAL."""

import warnings
from time import perf_counter

from sklearn.exceptions import ConvergenceWarning
from sklearnex.linear_model import LogisticRegression

from . import timed

NAME = "scikit-learn-intelex"


def fit(X, y, C, tol):
    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=C, tol=tol, solver="lbfgs", max_iter=2000).fit(X, y)
        return model.coef_, model.intercept_

    yield timed("lbfgs", perf_counter, run)
