"""scikit-learn-intelex: scikit-learn's class on oneDAL, for dense rows; sparse ones it hands to scikit-learn."""

from sklearnex.linear_model import LogisticRegression

NAME = "scikit-learn-intelex"


def solvers(X, y, C):
    if hasattr(X, "indptr"):
        return {}

    def fit(tol):
        model = LogisticRegression(C=C, tol=tol, solver="lbfgs", max_iter=2000).fit(X, y)
        return model.coef_, model.intercept_

    return {"lbfgs": fit}
