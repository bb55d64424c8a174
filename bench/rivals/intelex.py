"""scikit-learn-intelex: scikit-learn's class on oneDAL."""

from sklearnex.linear_model import LogisticRegression

NAME = "scikit-learn-intelex"


def solvers(X, y, C):
    def fit(tol):
        model = LogisticRegression(C=C, tol=tol, solver="lbfgs", max_iter=2000).fit(X, y)
        return model.coef_, model.intercept_

    return {"lbfgs": fit}
