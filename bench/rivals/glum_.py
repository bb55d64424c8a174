"""glum: iteratively reweighted least squares; two classes. Its loss is a mean, so alpha = 1 / (C N)."""

import numpy as np
from glum import GeneralizedLinearRegressor

NAME = "glum"


def solvers(X, y, C):
    if y.max() > 1:
        return {}

    def fit(tol):
        model = GeneralizedLinearRegressor(
            family="binomial", alpha=1 / (C * len(y)), l1_ratio=0, gradient_tol=tol, max_iter=200, solver="irls-ls"
        ).fit(X, y.astype(float))
        return model.coef_[None, :], [model.intercept_]

    return {"irls-ls": fit}


def paths(X, y, Cs):
    def walk(tol):
        alphas = 1 / (np.asarray(Cs) * len(y))
        model = GeneralizedLinearRegressor(
            family="binomial", alpha=alphas, alpha_search=True, l1_ratio=1, gradient_tol=tol, max_iter=200, solver="irls-cd"
        ).fit(X, y.astype(float))
        return [(coef[None, :], [b]) for coef, b in zip(model.coef_path_, model.intercept_path_, strict=True)]

    return {"irls-cd": walk}
