"""fastdisc itself."""

from functools import partial
from time import perf_counter

import fastdisc

NAME = "fastdisc"
TIGHT = 1e-10  # as near to the optimum as rounding lets anybody go, or nearly


def fit(X, y, C, tol, callback=None):
    model = fastdisc.LogisticRegression(C=C, tol=tol, callback=callback).fit(X, y)
    return model.coef_, model.intercept_


def until(X, y, C, goal, tol=TIGHT):
    """Fit until the objective is down to the goal."""
    return fit(X, y, C, tol, lambda _, values: C * values["loss"] <= goal)


def best(X, y, C, seconds=45.0):
    """As near to the optimum as it gets in that time."""
    end = perf_counter() + seconds
    return fit(X, y, C, TIGHT, lambda *_: perf_counter() > end)


def solvers(X, y, C):
    return {"auto": partial(fit, X, y, C)}


def paths(X, y, Cs):
    def walk(tol):
        path = fastdisc.LogisticRegression(l1_ratio=1, tol=tol).fit_path(X, y, Cs)
        return list(zip(path.coefs, path.intercepts, strict=True))

    return {"fit_path": walk}


def searches(X, y):
    def search(tol):
        model = fastdisc.LogisticRegressionCV(Cs=10, cv=5, tol=tol).fit(X, y)
        return model.C_, model.coef_, model.intercept_

    return {"auto": search}
