"""A first look: accuracy, time and speed-up over scikit-learn on data that comes with scikit-learn; a picture of the regions."""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import fastdisc

SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")


def seconds(fit, rounds=5):
    best = np.inf
    for _ in range(rounds):
        begin = perf_counter()
        fit()
        best = min(best, perf_counter() - begin)
    return best


def row(name, load, copies=1):
    """Fit ours and the fastest of scikit-learn's solvers that reaches as good an objective.

    The training rows may be taken many times over, each copy with some noise of its own; the test rows are what they are.
    """
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    if copies > 1:
        noise = np.random.default_rng(0).standard_normal((copies, *X_train.shape)) * X_train.std(axis=0) / 2
        X_train, y_train = (X_train + noise).reshape(-1, X.shape[1]), np.tile(y_train, copies)
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    ours = fastdisc.LogisticRegression().fit(X_train, y_train)
    time = seconds(lambda: fastdisc.LogisticRegression().fit(X_train, y_train))

    def objective(model):
        log_p = model.predict_log_proba(X_train)[np.arange(len(y_train)), np.searchsorted(model.classes_, y_train)]
        return -log_p.sum() + np.vdot(model.coef_, model.coef_) / 2

    best, goal = None, objective(ours) * (1 + 1e-6)
    for solver in SOLVERS:
        for tol in (1e-4, 1e-6, 1e-8):
            rival = Rival(solver=solver, tol=tol, max_iter=5000)
            if objective(rival.fit(X_train, y_train)) <= goal:
                found = seconds(lambda rival=rival: rival.fit(X_train, y_train), 3), solver
                best = min(best, found) if best else found
                break
    size = f"{len(y_train):,} x {X.shape[1]}"
    print(
        f"{name:<26} {size:>13}, {len(ours.classes_):>2} classes   accuracy {ours.score(X_test, y_test):.3f}"
        f"   {1e3 * time:>7.1f} ms"
        f"   scikit-learn {best[1]:<15} {1e3 * best[0]:>7.1f} ms   {best[0] / time:>5.1f}x"
    )


def picture(path):
    """The three regions that softmax cuts the iris plane into."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    data = load_iris()
    X, y = data.data[:, 2:], data.target
    model = fastdisc.LogisticRegression(C=10).fit(X, y)
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    a, b = np.meshgrid(np.linspace(low[0], high[0], 400), np.linspace(low[1], high[1], 400))
    P = model.predict_proba(np.column_stack([a.ravel(), b.ravel()]))
    colors = np.array([[0.12, 0.47, 0.71], [1.0, 0.5, 0.05], [0.17, 0.63, 0.17]])
    figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
    shade = (0.35 * P @ colors + 0.65).reshape(*a.shape, 3)
    axes.imshow(shade, origin="lower", extent=(low[0], high[0], low[1], high[1]), aspect="auto")
    axes.contour(a, b, P.argmax(axis=1).reshape(a.shape), levels=[0.5, 1.5], colors="black", linewidths=1)
    for k, name in enumerate(data.target_names):
        axes.scatter(*X[y == k].T, color=colors[k], edgecolor="white", s=30, label=name)
    axes.set(xlabel=data.feature_names[2], ylabel=data.feature_names[3], title="Logistic discrimination of three irises")
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=150)
    print(f"\nwrote {path}: decision regions and posterior probabilities of the iris data")


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    fastdisc.show_config()
    print("\nLogisticRegression(C=1) and the fastest scikit-learn solver at the same objective (gap 1e-6), best of several:\n")
    row("breast cancer", load_breast_cancer)
    row("breast cancer, 200 copies", load_breast_cancer, 200)
    row("digits", load_digits)
    row("digits, 20 copies", load_digits, 20)
    picture("demo.png")


if __name__ == "__main__":
    main()
