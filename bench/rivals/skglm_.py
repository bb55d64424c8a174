"""skglm: proximal Newton with working sets; two classes, L2 through the elastic net's limit. It reads X by columns: they are
given to it as it likes them, before the clock starts."""

import numpy as np
from skglm import GeneralizedLinearEstimator
from skglm.datafits import Logistic
from skglm.penalties import L1, L1_plus_L2
from skglm.solvers import ProxNewton

from . import listed

NAME = "skglm"


def by_columns(X):
    return X.tocsc() if hasattr(X, "tocsc") else np.asfortranarray(X, dtype=float)


def solvers(X, y, C):
    if y.max() > 1:
        return {}
    X = by_columns(X)

    def fit(tol):
        penalty = L1_plus_L2(alpha=1 / (C * len(y)), l1_ratio=0.0)
        model = GeneralizedLinearEstimator(Logistic(), penalty, ProxNewton(tol=tol, max_iter=100, fit_intercept=True))
        model.fit(X, 2 * y - 1)
        return model.coef_.reshape(1, -1), [float(model.intercept_)]

    return {"ProxNewton": fit}


def paths(X, y, Cs):
    X = by_columns(X)

    @listed
    def walk(tol):
        penalty, solver = L1(1.0), ProxNewton(tol=tol, max_iter=100, fit_intercept=True, warm_start=True)
        model = GeneralizedLinearEstimator(Logistic(), penalty, solver)
        for C in Cs:
            penalty.alpha = 1 / (C * len(y))
            model.fit(X, 2 * y - 1)
            yield model.coef_.reshape(1, -1).copy(), [float(model.intercept_)]

    return {"ProxNewton": walk}
