"""scikit-learn-intelex: scikit-learn's class on oneDAL, for dense rows.

Of a9a, which is sparse, it had scikit-learn's result to the last digit, in the same time.
"""

from sklearnex.linear_model import LogisticRegression

NAME = "scikit-learn-intelex"


def solvers(X, y, C):
    if hasattr(X, "indptr"):
        return {}

    def fit(tol):
        model = LogisticRegression(C=C, tol=tol, solver="lbfgs", max_iter=2000).fit(X, y)
        return model.coef_, model.intercept_

    return {"lbfgs": fit}
