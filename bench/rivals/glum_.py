"""glum: IRLS with a ridge penalty; two classes. Its loss is a mean, so alpha = 1 / (C N)."""

from time import perf_counter

from glum import GeneralizedLinearRegressor

from . import timed

NAME = "glum"


def fit(X, y, C, tol):
    if y.max() > 1:
        return

    def run():
        model = GeneralizedLinearRegressor(
            family="binomial", alpha=1 / (C * len(y)), l1_ratio=0, gradient_tol=tol, max_iter=200, solver="irls-ls"
        )
        model.fit(X, y.astype(float))
        return model.coef_[None, :], [model.intercept_]

    yield timed("irls-ls", perf_counter, run)
