"""Time to accuracy: whole fits of all libraries, each at the loosest tolerance that brings the gap
within the goal.

    python bench/time_to_accuracy.py [--gap 1e-8] [--problem NAME] [--slow] [--json FILE]

The gap is that of the objective, C times the cross-entropy plus the penalty, relative to the best
value that any library finds; for online models, which run for the same number of epochs as their
rivals, it is the share of training rows that are misclassified. Times are the best of several fits,
which alternate in one process. --json adds to the results in the file, so that problems can be run
one at a time; `bench/table.py` makes README's table of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from basis import PROBLEMS as BASIS
from closed_form import PROBLEMS as CLOSED_FORM
from combine import PROBLEMS as COMBINED
from fits import covtype_newton, covtype_raw, covtype_standardised, fashion, fit, l1_path, search
from online import log_loss, perceptron, sigmoid_regression, threads
from problems import (
    a9a,
    correlated,
    dense,
    digits,
    fashion_mnist,
    higgs,
    newsgroups,
    sparse,
)
from ranking import PROBLEMS as RANKING
from sizes import growth, predictions
from table import fits, quantity

LOGISTIC_AND_ONLINE: dict[str, Callable[..., dict[str, Any]]] = {
    "10k x 20 dense": partial(fit, partial(correlated, 10_000, 20)),
    "200k x 200 dense": partial(fit, partial(correlated, 200_000, 200)),
    "1M x 28 dense correlated": partial(fit, partial(correlated, 1_000_000, 28)),
    "1M x 28, K=10": partial(fit, partial(correlated, 1_000_000, 28, 10)),
    "higgs 7k x 28": partial(fit, higgs),
    "a9a": partial(fit, a9a),
    "20newsgroups tf-idf": partial(fit, newsgroups),
    "3k x 20k sparse": partial(fit, partial(sparse, 3000, 20_000, 200)),
    "digits": partial(fit, digits),
    "covtype standardised": covtype_standardised,
    "covtype standardised, to the objective of newton-cholesky": covtype_newton,
    "covtype raw": covtype_raw,
    "Fashion-MNIST uint8": fashion,
    "L1 path, a9a": partial(l1_path, a9a),
    "L1 path, 200k x 200": partial(l1_path, partial(correlated, 200_000, 200)),
    "5-fold CV, 200k x 50": partial(search, partial(correlated, 200_000, 50)),
    "predict_proba": predictions,
    "growth": growth,
    "Perceptron 1M x 28, 10 epochs": perceptron(partial(dense, 1_000_000, 28), 10),
    "Perceptron 1M x 28, K=10, 1 epoch": perceptron(partial(dense, 1_000_000, 28, 10), 1),
    "Perceptron Fashion-MNIST uint8, 5 epochs": perceptron(fashion_mnist, 5),
    "Perceptron 20newsgroups, 5 epochs": perceptron(newsgroups, 5),
    "Perceptron epoch 1M x 28, two threads": threads,
    "OnlineClassifier log loss 1M x 28, 5 epochs": log_loss(partial(dense, 1_000_000, 28), 5),
    "SigmoidRegression 1M x 28": partial(sigmoid_regression, partial(correlated, 1_000_000, 28)),
}
PROBLEMS = LOGISTIC_AND_ONLINE | CLOSED_FORM | COMBINED | BASIS | RANKING
SLOW = {"covtype standardised, to the objective of newton-cholesky"}  # their rival takes minutes


def show(name: str, found: dict[str, Any]) -> None:
    """Print the rows, every run, and what is missing."""
    print(f"\n{fits({name: found})}\n")
    for run in sorted(found["runs"], key=lambda run: run["seconds"]):
        name = f"{run['library']:<22} {run['label']:<20} {quantity(run['seconds']):>10}"
        accuracy = f"gap {run['gap']:.1e}, accuracy {run['accuracy']:.4f}, tol {run['tol']:g}"
        print(f"  {name}   {accuracy}")
    for rival, reason in found["missing"].items():
        print(f"  {rival}: not measured ({reason})")


def save(file: Path, name: str, found: dict[str, Any]) -> None:
    """Add the results of a problem to those in the file, in the order of PROBLEMS."""
    saved = json.loads(file.read_text()) if file.exists() else {}
    saved[name] = found
    in_order = {name: saved[name] for name in PROBLEMS if name in saved}
    file.write_text(json.dumps(in_order, indent=1))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gap", type=float, default=1e-8)
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    parser.add_argument("--slow", action="store_true", help="also problems that take minutes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    default = [name for name in PROBLEMS if options.slow or name not in SLOW]
    for name in options.problem or default:
        try:
            found = PROBLEMS[name](name, goal=options.gap)
        except FileNotFoundError as reason:
            print(f"\n{name}: skipped, {reason}")
            continue
        show(name, found)
        if options.json:
            save(options.json, name, found)


if __name__ == "__main__":
    main()
