"""LIBLINEAR: trust-region Newton; two classes, as its K are one against the rest, another objective.

It penalises the intercept, so its optimum is another; a large bias term makes that small.
"""

import numpy as np
from liblinear.liblinearutil import train

NAME = "liblinear"
BIAS = 100.0


def solvers(X, y, C):
    if y.max() > 1:
        return {}

    def fit(tol):
        model = train(y.astype(float), X, f"-s 0 -c {C} -e {tol} -B {BIAS} -q")
        sign = 1 if model.get_labels()[0] == 1 else -1
        w = sign * np.array([model.w[j] for j in range(X.shape[1] + 1)])
        return w[None, :-1], [w[-1] * BIAS]

    return {"-s 0": fit}
