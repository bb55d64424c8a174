"""Custom: functions that are compiled or called in Python; bounds checks, and their errors."""

import builtins
import warnings

import numba
import numpy as np
import pytest
from helpers.problems import make_ball

from fastdisc import LogisticRegression, config_context
from fastdisc._kernels import BACKENDS
from fastdisc.basis import Custom, Polynomial, concat
from fastdisc.basis.custom import compiled_once


def waves(x):
    return np.sin(x[0]), np.cos(x[1]), x[0] * x[2]


def with_strings(x):
    return [f"{v}" and v**2 for v in dict(enumerate(x)).values()]


def with_strings_rows(X):
    return np.array([with_strings(x) for x in X])


def raises_above(x):
    if x[0] > 2.5:
        raise KeyError("no such wave")
    return x[0]


def test_function_is_compiled_by_numba():
    X, y = make_ball()
    model = LogisticRegression(basis=Custom(waves), tol=1e-12).fit(X, y)
    F = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 2]])
    np.testing.assert_allclose(
        model.coef_, LogisticRegression(tol=1e-12).fit(F, y).coef_, rtol=1e-9
    )
    assert hasattr(model.basis_.program().parts[0].function.compiled, "native_name")
    assert list(model.basis_.get_feature_names_out()) == ["waves0", "waves1", "waves2"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "basis", [Custom(with_strings), Custom(with_strings_rows, vectorized=True)], ids=["row", "rows"]
)
def test_function_that_numba_cannot_compile_is_called_in_python(basis, backend):
    X, y = make_ball()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled_once.cache_clear()
        model = LogisticRegression(basis=basis, backend=backend, n_threads=2, tol=1e-12).fit(X, y)
    assert any(
        "Numba cannot compile with_strings" in str(w.message) and "The reason: " in str(w.message)
        for w in caught
    )
    np.testing.assert_allclose(
        model.coef_, LogisticRegression(tol=1e-12).fit(X**2, y).coef_, rtol=1e-9
    )


@pytest.mark.filterwarnings("ignore:Custom. Numba cannot compile")
@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_exception_of_the_function_is_raised(backend):
    X, y = make_ball()
    X[77, 0] = 3.0
    for function in (
        raises_above,
        lambda x: raises_above(x) if type(x) is not None else 0,
    ):  # compiled, and called
        with pytest.raises(KeyError, match="no such wave"):
            LogisticRegression(basis=Custom(function), backend=backend).fit(X, y)


def test_function_is_called_in_python_without_numba(monkeypatch):
    find = builtins.__import__

    def missing(name, *more):
        if "numba" in name:
            raise ImportError("No module named 'numba'")
        return find(name, *more)

    compiled_once.cache_clear()
    X, _ = make_ball()
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.warns(UserWarning, match="No module named 'numba'"):
        model = Custom(waves).fit(X)
    monkeypatch.undo()
    np.testing.assert_allclose(model.transform(X)[:, 1], np.cos(X[:, 1]), rtol=1e-14)
    compiled_once.cache_clear()


def writes_out_of_bounds(x, out):
    for j in range(3000 if x[0] > 1.5 else 3):
        out[j] = j


writes_out_of_bounds_compiled = numba.njit(fastmath=True)(writes_out_of_bounds)


def reads_out_of_bounds(x, out):
    out[0] = x[10 if x[0] > 1.5 else 0]


def writes_some(x, out):
    if x[0] < 1.5:
        out[0] = x[0]


@pytest.mark.parametrize(
    ("function", "width", "error", "message"),
    [
        (writes_out_of_bounds, 3, IndexError, "index 3 is out of bounds"),
        (writes_out_of_bounds_compiled, 3, IndexError, "index 3 is out of bounds"),
        (reads_out_of_bounds, 1, IndexError, "index 10 is out of bounds"),
        (writes_some, 1, ValueError, "'writes_some' is nan first in row 77"),
    ],
)
def test_access_out_of_bounds_and_missing_features_raise(function, width, error, message):
    X, y = make_ball()
    X[:, 0] = np.minimum(X[:, 0], 1.5 - 1e-9)
    X[77, 0] = 2.0
    with pytest.raises(error, match=message):
        LogisticRegression(basis=Custom(function, n_features=width)).fit(X, y)
    X[0, 0] = 2.0
    with pytest.raises(error, match=message.replace("77", "0")):
        Custom(function, n_features=width).fit(X).transform(X)


def changes_its_row(x):
    x[0] = 0.0
    return x[1], x[2]


@pytest.mark.parametrize("backend", ["numpy", "cython"])
def test_function_receives_a_copy_of_its_row(backend):
    X, y = make_ball()
    before = X.copy()
    with config_context(backend=backend):
        F = concat(Custom(changes_its_row), Polynomial(1)).fit(X).transform(X)
        np.testing.assert_array_equal(X, before)
        np.testing.assert_array_equal(F, before[:, [1, 2, 0, 1, 2]])
        X[5, 0] = np.nan
        with pytest.raises(ValueError, match="row 5, column 0"):
            LogisticRegression(basis=Custom(changes_its_row)).fit(X, y)


def uneven(x):
    return x[: 2 if x[0] < 1.5 else 3]


@pytest.mark.filterwarnings("ignore:Custom. Numba cannot compile")
@pytest.mark.parametrize(
    "function", [uneven, lambda x: [*map(str, uneven(x))]], ids=["compiled", "called"]
)
def test_other_number_of_features_raises(function):
    X, y = make_ball()
    X[:, 0] = np.minimum(X[:, 0], 1.0)
    X[77] = 2.0, 0.5, 0.25
    with pytest.raises(
        ValueError, match=r"3 features for the row \[2.0, 0.5, 0.25\], and 2 for the first row"
    ):
        LogisticRegression(basis=Custom(function)).fit(X, y)


@pytest.mark.filterwarnings("ignore:Custom. Numba cannot compile")
def test_keyboard_interrupt_in_the_function_is_raised():
    X, y = make_ball()
    calls = []

    def interrupted(x):
        calls.append(type(x))
        if len(calls) == 50:
            raise KeyboardInterrupt
        return x[0]

    with pytest.raises(KeyboardInterrupt):
        LogisticRegression(basis=Custom(interrupted)).fit(X, y)
    assert LogisticRegression(basis=Custom(interrupted)).fit(X, y).coef_.shape == (3, 1)


@pytest.mark.filterwarnings("ignore:Custom. Numba cannot compile")
def test_one_feature_is_not_broadcast_to_many():
    X, _ = make_ball()
    model = Custom(lambda X: X[:, :2] if len(X) == 1 else list(X[:, :1]), vectorized=True)
    with pytest.raises(
        ValueError, match=r"returned 1 features for \d+ rows, and 2 for the first row"
    ):
        model.fit(X).transform(X)
