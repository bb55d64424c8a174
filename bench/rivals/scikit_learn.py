"""scikit-learn's LogisticRegression, each solver that leaves the intercept free.

sag and saga are left out: to a gap of some 1e-9 on 100k x 28 they took 2.8 s and 1.7 s, lbfgs 0.23 s, newton-cholesky 0.17 s.
"""

from functools import partial

from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from . import listed

NAME = "scikit-learn"
SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")
# Rows times squared weights, beyond which newton-cholesky takes minutes and lbfgs much less (20k x 28, K=10: 0.81 s and 0.24 s).
MOST_WORK = 2e10
BIAS = 100.0  # liblinear penalises the intercept: see liblinear_.py


def fit(X, y, C, solver, tol, max_iter=2000):
    model = LogisticRegression(C=C, tol=tol, solver=solver, max_iter=max_iter).fit(X, y)
    return model.coef_, model.intercept_


def solvers(X, y, C):
    weights = X.shape[1] * (1 if y.max() < 2 else y.max() + 1)
    small = len(y) * weights**2 <= MOST_WORK
    return {solver: partial(fit, X, y, C, solver) for solver in SOLVERS if small or solver != "newton-cholesky"}


def paths(X, y, Cs):
    """saga starts from the last solution; liblinear cannot."""

    @listed
    def walk(solver, tol):
        model = LogisticRegression(l1_ratio=1, solver=solver, tol=tol, max_iter=1000, warm_start=True, random_state=0)
        model.set_params(intercept_scaling=BIAS)
        for C in Cs:
            model.set_params(C=C).fit(X, y)
            yield model.coef_.copy(), model.intercept_.copy()

    return {solver: partial(walk, solver) for solver in ("liblinear", "saga")}


def searches(X, y):
    new_style = {"l1_ratios": (0,), "scoring": "accuracy", "use_legacy_attributes": False}  # or it warns

    def search(solver, tol):
        model = LogisticRegressionCV(Cs=10, cv=5, n_jobs=2, solver=solver, tol=tol, max_iter=1000, **new_style).fit(X, y)
        return model.C_, model.coef_, model.intercept_

    return {solver: partial(search, solver) for solver in SOLVERS}
