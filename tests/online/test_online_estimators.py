"""What online estimators share: scikit-learn's conventions, streams, and bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

from fastdisc import Adaline, OnlineClassifier, Perceptron, SigmoidRegression

# A row of weight 2 takes one step of twice the length, not two steps, and the check compares rows
# in two orders. An online rule passes only if all orders converge to the same weights, as in
# `test_integer_weights_are_repeated_rows_if_steps_converge`. scikit-learn expects its own online
# models to fail these checks too.
EXPECTED_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "one step for a row, whatever its weight"
    for kind in ("dense", "sparse")
}


def expected_failures(model):
    in_batch = isinstance(model, SigmoidRegression) or getattr(model, "solver", "") == "batch"
    return {} if in_batch else EXPECTED_FAILURES


@parametrize_with_checks(
    [Perceptron(), OnlineClassifier(), Adaline(), Adaline(solver="batch"), SigmoidRegression()],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:sklearn")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data],
)
def test_integer_weights_are_repeated_rows_if_steps_converge(check):
    """With more columns than rows, least-mean-squares steps from zero weights converge to the exact
    fit of smallest norm."""
    check("Adaline", Adaline(average=False, tol=None, max_iter=20_000, shuffle=False))


X = np.random.default_rng(0).standard_normal((60, 3))
Y = np.arange(60) % 2
MODELS = {
    model.__name__: model for model in (Perceptron, OnlineClassifier, Adaline, SigmoidRegression)
}


def with_value(value, row=7, column=1):
    bad = X.copy()
    bad[row, column] = value
    return bad


# Input that every estimator rejects.
BAD = {
    "NaN in X": ({"X": with_value(np.nan)}, r"NaN, first in row 7, column 1"),
    "infinity in X": ({"X": with_value(np.inf)}, r"infinity, first in row 7, column 1"),
    "NaN in CSR": ({"X": sparse.csr_array(with_value(np.nan))}, r"NaN, first in row 7, column 1"),
    "NaN in a row of weight 0": (
        {"X": with_value(np.nan), "sample_weight": np.arange(60) != 7},
        r"NaN, first in row 7",
    ),
    "no rows": ({"X": X[:0], "y": Y[:0]}, "0 sample"),
    "short y": ({"y": Y[:20]}, "X has 60 rows, y has 20"),
    "one class": ({"y": np.zeros(60, int)}, "only one class: .*0"),
    "continuous y": ({"y": X[:, 0]}, r"Unknown label type: continuous.*row 0"),
    "negative weight": ({"sample_weight": np.where(np.arange(60) == 9, -1.0, 1)}, "row 9 it is -1"),
    "weights all zero": ({"sample_weight": np.zeros(60)}, "zero in every row"),
    "class_weight of no class": ({"class_weight": {5: 1.0}}, r"\[5\]"),
    "max_iter a fraction": ({"max_iter": 1.5}, "max_iter must be a whole number >= 1"),
    "tol negative": ({"tol": -1}, "tol must be a number >= 0"),
    "fit_intercept a word": (
        {"fit_intercept": "no"},
        "fit_intercept must be one of True, False, got 'no'",
    ),
    "standardize a word": (
        {"standardize": "yes"},
        "standardize must be one of True, False, got 'yes'",
    ),
    "verbose negative": ({"verbose": -1}, "verbose must be a whole number >= 0"),
    "backend unknown": ({"backend": "fortran"}, "backend must be"),
    "threads zero": ({"n_threads": 0}, "n_threads must be"),
}
BAD_FOR_ONE = {
    "shuffle a word": (
        "Perceptron",
        {"shuffle": "all"},
        "shuffle must be one of True, False, 'rows', got 'all'",
    ),
    "eta0 zero": ("Perceptron", {"eta0": 0}, "eta0 must be a number > 0"),
    "penalty unknown": (
        "Perceptron",
        {"penalty": "l3"},
        "penalty must be one of 'l2', 'l1', 'elasticnet', None, got 'l3'",
    ),
    "l1_ratio too large": (
        "Perceptron",
        {"l1_ratio": 1.1},
        "l1_ratio must be a number from 0 to 1",
    ),
    "multi_class unknown": (
        "Perceptron",
        {"multi_class": "all"},
        "multi_class must be one of 'winner', 'ovr'",
    ),
    "pocket a word": ("Perceptron", {"pocket": "yes"}, "pocket must be one of"),
    "average negative": ("Perceptron", {"average": -1}, "average must be a whole number >= 0"),
    "validation_fraction one": (
        "Perceptron",
        {"validation_fraction": 1.0},
        "validation_fraction must be a number between 0 and 1",
    ),
    "too few rows held out": (
        "Perceptron",
        {"early_stopping": True, "validation_fraction": 0.001},
        "early_stopping",
    ),
    "patience zero": (
        "Perceptron",
        {"n_iter_no_change": 0},
        "n_iter_no_change must be a whole number >= 1",
    ),
    "coef_init of another shape": (
        "Perceptron",
        {"coef_init": np.zeros((1, 2))},
        r"coef_init must have shape \(1, 3\)",
    ),
    "intercept_init of another shape": (
        "Perceptron",
        {"intercept_init": np.zeros(2)},
        r"intercept_init must have shape \(1,\)",
    ),
    "loss unknown": (
        "OnlineClassifier",
        {"loss": "huber"},
        "loss must be one of 'hinge', 'log_loss'",
    ),
    "rate unknown": (
        "OnlineClassifier",
        {"learning_rate": "fast"},
        "learning_rate must be one of 'optimal', 'constant'",
    ),
    "optimal without alpha": (
        "OnlineClassifier",
        {"alpha": 0},
        "alpha must be > 0 since learning_rate is 'optimal'",
    ),
    "alpha negative": ("OnlineClassifier", {"alpha": -1.0}, "alpha must be a number >= 0"),
    "steps that diverge": (
        "OnlineClassifier",
        {"X": 1e200 * X, "loss": "squared_error", "learning_rate": "constant"},
        "the weights diverged with steps of 0.01",
    ),
    "steps too long": (
        "Adaline",
        {"eta0": 10.0},
        r"largest eigenvalue .* is \d.*steps must be below 2 /",
    ),
    "adaline's solver unknown": (
        "Adaline",
        {"solver": "exact"},
        "solver must be one of 'online', 'batch'",
    ),
    "batch that holds out": (
        "Adaline",
        {"solver": "batch", "early_stopping": True},
        "solver 'batch' does not support early_stopping",
    ),
    "C zero": ("SigmoidRegression", {"C": 0}, "C must be a number > 0"),
    "eta negative": (
        "SigmoidRegression",
        {"solver": "gd", "eta": -0.1},
        "eta must be a number > 0",
    ),
    "solver unknown": (
        "SigmoidRegression",
        {"solver": "magic"},
        "solver must be one of 'auto', 'newton'",
    ),
    "a two in the indicator": (
        "SigmoidRegression",
        {"y": np.eye(60, 4, dtype=int) * 2},
        "row 0, column 0 of y it is 2",
    ),
    "NaN in the indicator": (
        "SigmoidRegression",
        {"y": np.full((60, 2), np.nan)},
        "row 0, column 0 of y it is nan",
    ),
    "a short indicator": ("SigmoidRegression", {"y": np.eye(20, 4)}, "X has 60 rows, y has 20"),
    "weights of overlapping classes": (
        "SigmoidRegression",
        {"y": np.eye(60, 4), "class_weight": "balanced"},
        "overlap",
    ),
}
TABLE = [(name, *entry) for name in MODELS for entry in BAD.values()] + list(BAD_FOR_ONE.values())
DATA = ("X", "y", "sample_weight", "coef_init", "intercept_init")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    TABLE,
    ids=[*(f"{m}, {b}" for m in MODELS for b in BAD), *BAD_FOR_ONE],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bad_input_raises_and_leaves_the_model_unchanged(name, given, message):
    given = dict(given)
    data = {"X": X, "y": Y} | {key: given.pop(key) for key in DATA if key in given}
    model = MODELS[name]().fit(X, Y)
    before = model.coef_.copy()
    model.set_params(**given)
    with pytest.raises(ValueError, match=message):
        model.fit(**data)
    assert np.array_equal(model.coef_, before), "a failed fit changed the model"


@pytest.mark.parametrize("name", ["Perceptron", "OnlineClassifier", "Adaline"])
@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({}, {"y": np.full(60, 3)}, "y has a label that is not among the classes: .*3.* in row 0"),
        ({}, {"X": with_value(np.nan)}, "NaN, first in row 7, column 1"),
        ({"standardize": True}, {}, "partial_fit does not support standardize"),
        ({"early_stopping": True}, {}, "partial_fit does not support early_stopping"),
        ({"class_weight": "balanced"}, {}, "needs all rows at once"),
    ],
    ids=["unknown label", "NaN", "standardize", "early_stopping", "balanced"],
)
def test_bad_input_to_partial_fit_raises_and_leaves_the_model_unchanged(
    name, parameters, data, message
):
    model = MODELS[name]().partial_fit(X, Y, classes=[0, 1])
    before = model.coef_.copy()
    model.set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(**({"X": X, "y": Y} | data))
    assert np.array_equal(model.coef_, before)
    model.set_params(standardize=False, early_stopping=False, class_weight=None).partial_fit(X, Y)


@pytest.mark.parametrize("name", ["Perceptron", "OnlineClassifier", "Adaline"])
def test_first_partial_fit_requires_the_classes(name):
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        MODELS[name]().partial_fit(X, Y)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pipeline_grid_search_pickle_and_clone(name):
    A, y = load_wine(return_X_y=True)
    frame = pd.DataFrame(A).add_prefix("column ")
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), MODELS[name]())
    search = GridSearchCV(pipeline, {f"{name.lower()}__fit_intercept": [True, False]}, cv=3).fit(
        frame, y
    )
    assert search.best_score_ > 0.9
    model = search.best_estimator_[-1]
    assert list(model.feature_names_in_[:2]) == ["column 0", "column 1"]
    assert np.array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_standardize_gives_weights_of_the_raw_features(name):
    A = X * [1e-3, 1.0, 1e3] + [5.0, 0.0, 1.0]
    y = (X @ [1.0, -1.0, 0.5] > 0.2).astype(int)
    if name == "SigmoidRegression":
        plain = MODELS[name](C=1.0, tol=1e-10).fit(StandardScaler().fit_transform(A), y)
        model = MODELS[name](C=1.0, tol=1e-10, standardize=True).fit(A, y)
    else:
        plain = MODELS[name](random_state=0).fit(StandardScaler().fit_transform(A), y)
        model = MODELS[name](random_state=0, standardize=True).fit(A, y)
    np.testing.assert_allclose(model.mean_, A.mean(axis=0))
    np.testing.assert_allclose(model.scale_, A.std(axis=0))
    np.testing.assert_allclose(model.coef_ * model.scale_, plain.coef_, rtol=1e-5)
    np.testing.assert_allclose(
        model.decision_function(A),
        plain.decision_function(StandardScaler().fit_transform(A)),
        atol=1e-5,
    )


def test_batch_adaline_finds_the_largest_eigenvalue_of_collinear_columns():
    a = np.repeat(np.arange(1, 101.0) / 5, 2) * np.tile([1, -1], 100)
    model = Adaline(solver="batch").fit(np.column_stack([a, -a]), a > 0)
    assert model.converged_
    np.testing.assert_allclose(1 / model.eta_, 2 * (a**2).mean(), rtol=1e-2)


def test_step_limit_of_adaline_without_intercept_ignores_the_intercept():
    S = np.random.default_rng(0).standard_normal((200, 4)) * 1e-3
    model = Adaline(solver="batch", fit_intercept=False).fit(S, S[:, 0] > 0)
    assert model.converged_ and model.eta_ > 1e4
    Adaline(solver="batch", fit_intercept=False, eta0=10.0, max_iter=5, tol=None).fit(
        S, S[:, 0] > 0
    )


def test_penalty_may_change_between_partial_fits():
    model = OnlineClassifier(learning_rate="constant", eta0=0.1).partial_fit(X, Y, classes=[0, 1])
    model.set_params(penalty="l1", alpha=10.0)
    assert not model.partial_fit(X, Y).coef_.any()


def test_adaline_keeps_its_step_between_partial_fits():
    stream = Adaline().partial_fit(X[:30], Y[:30], classes=[0, 1])
    step = stream.eta_
    assert stream.partial_fit(100 * X[30:], Y[30:]).eta_ == step
    with pytest.raises(AttributeError, match="partial_fit"):
        Adaline(solver="batch").partial_fit(X, Y, classes=[0, 1])
