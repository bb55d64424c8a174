"""Whole fits that any revision can run: problems from `problems.py`, and only public names of
fastdisc. `compare.py` runs one process for each revision, and alternates between them.

    python bench/whole_fits.py --list             the names of the problems
    python bench/whole_fits.py NAME [--rounds 5]  the best time of some fits

With --serve, the process fits once for each line that it reads from its standard input, and answers
with a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from problems import correlated, dense, newsgroups, rankings

import fastdisc
from fastdisc import LogisticRegression, PairwiseRanker, Perceptron

Fit = Callable[[], Any]
RANKING = (9_000, 46, 470, (0.6, 0.3, 0.1))


def classifier(make: Callable[[], Any], load: Callable[[], Any]) -> Fit:
    """A fit of some rows loads and compiles everything before times are taken."""
    X, y = load()
    n = X.shape[0]
    some = np.arange(0, n, max(1, n // 2000))
    make().fit(X[some], y[some])
    return lambda: make().fit(X, y)


def logistic(load: Callable[[], Any]) -> Fit:
    return classifier(LogisticRegression, load)


def perceptron() -> Fit:
    """Ten epochs."""
    return classifier(partial(Perceptron, max_iter=10, tol=None), partial(dense, 1_000_000, 28))


def ranker() -> Fit:
    X, y, query = rankings(*RANKING)
    some = query < 40
    PairwiseRanker().fit(X[some], y[some], group=query[some])
    return lambda: PairwiseRanker().fit(X, y, group=query)


# The names are those of time_to_accuracy.py.
PROBLEMS: dict[str, Callable[[], Fit]] = {
    "10k x 20 dense": partial(logistic, partial(correlated, 10_000, 20)),
    "1M x 28 dense correlated": partial(logistic, partial(correlated, 1_000_000, 28)),
    "1M x 28, K=10": partial(logistic, partial(correlated, 1_000_000, 28, 10)),
    "20newsgroups tf-idf": partial(logistic, newsgroups),
    "ranking, 9k x 46, 470 queries, logistic": ranker,
    "Perceptron 1M x 28, 10 epochs": perceptron,
}


def measure(fit: Fit) -> dict[str, Any]:
    """The time of a fit, and what shows whether two fits did the same work."""
    begin = perf_counter()
    model = fit()
    seconds = perf_counter() - begin
    norm = float(np.linalg.norm(model.coef_))
    return {"seconds": seconds, "n_iter": int(np.max(model.n_iter_)), "norm": norm}


def serve(fit: Fit) -> None:
    """A fit for each line of the standard input. The first answer says which package is used."""
    print(json.dumps({"package": fastdisc.__file__}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(measure(fit)), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=PROBLEMS)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.list or options.name is None:
        print("\n".join(PROBLEMS))
        return
    warnings.simplefilter("ignore")
    fit = PROBLEMS[options.name]()
    if options.serve:
        serve(fit)
    else:
        runs = [measure(fit) for _ in range(options.rounds)]
        best = min(runs, key=lambda run: run["seconds"])
        print(f"{options.name}: {best['seconds']:.4f} s, {best['n_iter']} iterations")


if __name__ == "__main__":
    main()
