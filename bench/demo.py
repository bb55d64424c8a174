"""A first look at fastdisc: accuracy and time on data sets of scikit-learn, compared with
scikit-learn's fastest solver at the same objective, and a picture of the decision regions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Rival
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import fastdisc

RIVAL_SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")
RIVAL_TOLERANCES = (1e-4, 1e-6, 1e-8)
GAP = 1e-6
BLUE, ORANGE, GREEN = (0.12, 0.47, 0.71), (1.0, 0.5, 0.05), (0.17, 0.63, 0.17)

Data = tuple[np.ndarray, np.ndarray]
Load = Callable[..., Data]


def best_time(fit: Callable[[], Any], rounds: int = 5) -> float:
    """The seconds of the fastest of several calls."""
    best = np.inf
    for _ in range(rounds):
        begin = perf_counter()
        fit()
        best = min(best, perf_counter() - begin)
    return best


def split(load: Load, copies: int) -> tuple[Data, Data]:
    """Standardised training and test rows. There may be several copies of the training rows, each
    with noise of its own."""
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=0, stratify=y
    )
    if copies > 1:
        noise = np.random.default_rng(0).standard_normal((copies, *X_train.shape))
        X_train = (X_train + noise * X_train.std(axis=0) / 2).reshape(-1, X.shape[1])
        y_train = np.tile(y_train, copies)
    scaler = StandardScaler().fit(X_train)
    return (scaler.transform(X_train), y_train), (scaler.transform(X_test), y_test)


def objective(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The cross-entropy plus half the squared norm of the weights."""
    own = np.arange(len(y)), np.searchsorted(model.classes_, y)
    return -model.predict_log_proba(X)[own].sum() + np.vdot(model.coef_, model.coef_) / 2


def fastest_rival(X: np.ndarray, y: np.ndarray, goal: float) -> tuple[float, str]:
    """The time and the name of the fastest solver of scikit-learn, each at the loosest tolerance
    that reaches the goal."""
    found = []
    for solver in RIVAL_SOLVERS:
        for tol in RIVAL_TOLERANCES:
            rival = Rival(solver=solver, tol=tol, max_iter=5000)
            if objective(rival.fit(X, y), X, y) <= goal:
                found.append((best_time(partial(rival.fit, X, y), 3), solver))
                break
    return min(found)


def compare(name: str, load: Load, copies: int = 1) -> None:
    """Print a row of the table."""
    (X, y), test = split(load, copies)
    ours = fastdisc.LogisticRegression().fit(X, y)
    time = best_time(lambda: fastdisc.LogisticRegression().fit(X, y))
    rival_time, solver = fastest_rival(X, y, objective(ours, X, y) * (1 + GAP))
    cells = [
        f"{name:<25}",
        f"{f'{len(y):,} x {X.shape[1]}':>13}",
        f"{len(ours.classes_):>7}",
        f"{ours.score(*test):>8.3f}",
        f"{1e3 * time:>8.1f} ms",
        f"{1e3 * rival_time:>8.1f} ms ({solver})".ljust(29),
        f"{rival_time / time:>5.1f}x",
    ]
    print("  ".join(cells))


def draw_regions(path: str) -> None:
    """The decision regions of three species of iris in the plane of the petals."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    data = load_iris()
    X, y = data.data[:, 2:], data.target
    model = fastdisc.LogisticRegression(C=10).fit(X, y)
    (x0, y0), (x1, y1) = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    a, b = np.meshgrid(np.linspace(x0, x1, 400), np.linspace(y0, y1, 400))
    P = model.predict_proba(np.column_stack([a.ravel(), b.ravel()]))
    colors = np.array([BLUE, ORANGE, GREEN])
    shades = (0.35 * P @ colors + 0.65).reshape(*a.shape, 3)
    figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
    axes.imshow(shades, origin="lower", extent=(x0, x1, y0, y1), aspect="auto")
    regions = P.argmax(axis=1).reshape(a.shape)
    axes.contour(a, b, regions, levels=[0.5, 1.5], colors="black", linewidths=1)
    for k, name in enumerate(data.target_names):
        axes.scatter(
            X[y == k, 0], X[y == k, 1], color=colors[k], edgecolor="white", s=30, label=name
        )
    axes.set(xlabel=data.feature_names[2], ylabel=data.feature_names[3])
    axes.set_title("Logistic discrimination of three species of iris")
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=150)
    print(f"\nwrote {path}: decision regions and posterior probabilities of the iris data")


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    fastdisc.show_config()
    print(
        "\nLogisticRegression(C=1), and the fastest solver of scikit-learn at the same objective\n"
        f"(relative difference {GAP:g}); best of several fits\n"
    )
    header = f"{'data':<25}  {'training rows':>13}  classes  accuracy  {'fastdisc':>11}"
    print(f"{header}  {'   scikit-learn (solver)':<29}  speed-up")
    compare("breast cancer", load_breast_cancer)
    compare("breast cancer, 200 copies", load_breast_cancer, 200)
    compare("digits", load_digits)
    compare("digits, 20 copies", load_digits, 20)
    draw_regions("demo.png")


if __name__ == "__main__":
    main()
