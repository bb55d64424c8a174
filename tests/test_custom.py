"""Functions of a user as a basis: compiled or called by Python, kept within their arrays; their errors come out."""

import warnings

import numba
import numpy as np
import pytest
from conftest import make_ball

import fastdisc
from fastdisc import LogisticRegression, config_context
from fastdisc._kernels import BACKENDS
from fastdisc.basis import Custom, Polynomial, concat


def waves(x):
    return np.sin(x[0]), np.cos(x[1]), x[0] * x[2]


def listed(x):
    return [f"{v}" and v**2 for v in dict(enumerate(x)).values()]


def listed_rows(X):
    return np.array([listed(x) for x in X])


def moody(x):
    if x[0] > 2.5:
        raise KeyError("no such wave")
    return x[0]


def test_custom_in_a_model_is_compiled():
    X, y = make_ball()
    model = LogisticRegression(basis=Custom(waves), tol=1e-12).fit(X, y)
    F = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 2]])
    np.testing.assert_allclose(model.coef_, LogisticRegression(tol=1e-12).fit(F, y).coef_, rtol=1e-9)
    assert hasattr(model.basis_.program().parts[0].function.compiled, "native_name")  # a function of Numba's
    assert list(model.basis_.get_feature_names_out()) == ["waves0", "waves1", "waves2"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("basis", [Custom(listed), Custom(listed_rows, vectorized=True)], ids=["row", "rows"])
def test_what_numba_cannot_compile_is_run_by_python(basis, backend):
    X, y = make_ball()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fastdisc.basis._custom.block_of.cache_clear()
        model = LogisticRegression(basis=basis, backend=backend, n_threads=2, tol=1e-12).fit(X, y)
    assert any("Numba cannot compile listed" in str(w.message) and "The reason: " in str(w.message) for w in caught)
    np.testing.assert_allclose(model.coef_, LogisticRegression(tol=1e-12).fit(X**2, y).coef_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Custom. Numba cannot compile")
@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_an_error_of_the_function_comes_out(backend):
    X, y = make_ball()
    X[77, 0] = 3.0
    for function in (moody, lambda x: moody(x) if type(x) is not None else 0):  # compiled, and not
        with pytest.raises(KeyError, match="no such wave"):
            LogisticRegression(basis=Custom(function), backend=backend).fit(X, y)


def test_without_numba_python_runs_the_function(monkeypatch):
    import builtins

    find = builtins.__import__

    def missing(name, *more):
        if "numba" in name:
            raise ImportError("No module named 'numba'")
        return find(name, *more)

    fastdisc.basis._custom.block_of.cache_clear()
    X, _ = make_ball()
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.warns(UserWarning, match="No module named 'numba'"):
        model = Custom(waves).fit(X)
    monkeypatch.undo()
    np.testing.assert_allclose(model.transform(X)[:, 1], np.cos(X[:, 1]), rtol=1e-14)
    fastdisc.basis._custom.block_of.cache_clear()


def beyond(x, out):
    for j in range(3000 if x[0] > 1.5 else 3):
        out[j] = j


beyond_compiled = numba.njit(fastmath=True)(beyond)


def reads_beyond(x, out):
    out[0] = x[10 if x[0] > 1.5 else 0]


def forgetful(x, out):
    if x[0] < 1.5:
        out[0] = x[0]


@pytest.mark.parametrize(
    ("function", "width", "error", "message"),
    [
        (beyond, 3, IndexError, "index 3 is out of bounds"),
        (beyond_compiled, 3, IndexError, "index 3 is out of bounds"),
        (reads_beyond, 1, IndexError, "index 10 is out of bounds"),
        (forgetful, 1, ValueError, "'forgetful' is nan first in row 77"),
    ],
)
def test_a_function_stays_within_its_arrays(function, width, error, message):
    X, y = make_ball()
    X[:, 0] = np.minimum(X[:, 0], 1.5 - 1e-9)
    X[77, 0] = 2.0
    with pytest.raises(error, match=message):
        LogisticRegression(basis=Custom(function, n_features=width)).fit(X, y)
    X[0, 0] = 2.0
    with pytest.raises(error, match=message.replace("77", "0")):
        Custom(function, n_features=width).fit(X).transform(X)


def spoils(x):
    x[0] = 0.0
    return x[1], x[2]


@pytest.mark.parametrize("backend", ["numpy", "cython"])
def test_a_function_that_changes_its_row_changes_nothing_else(backend):
    X, y = make_ball()
    before = X.copy()
    with config_context(backend=backend):
        F = concat(Custom(spoils), Polynomial(1)).fit(X).transform(X)
        np.testing.assert_array_equal(X, before)
        np.testing.assert_array_equal(F, before[:, [1, 2, 0, 1, 2]])
        X[5, 0] = np.nan
        with pytest.raises(ValueError, match="row 5, column 0"):
            LogisticRegression(basis=Custom(spoils)).fit(X, y)


def uneven(x):
    return x[: 2 if x[0] < 1.5 else 3]


@pytest.mark.filterwarnings("ignore:Custom. Numba cannot compile")
@pytest.mark.parametrize("function", [uneven, lambda x: [*map(str, uneven(x))]], ids=["compiled", "called"])
def test_another_number_of_features_is_told(function):
    X, y = make_ball()
    X[:, 0] = np.minimum(X[:, 0], 1.0)
    X[77] = 2.0, 0.5, 0.25
    with pytest.raises(ValueError, match=r"3 features for the row \[2.0, 0.5, 0.25\], and 2 for the first row"):
        LogisticRegression(basis=Custom(function)).fit(X, y)


@pytest.mark.filterwarnings("ignore:Custom. Numba cannot compile")
def test_what_a_called_function_raises_once_comes_out():
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
def test_one_number_is_not_spread_over_many_features():
    X, _ = make_ball()
    model = Custom(lambda X: X[:, :2] if len(X) == 1 else list(X[:, :1]), vectorized=True)
    with pytest.raises(ValueError, match=r"returned 1 features for \d+ rows, and 2 for the first row"):
        model.fit(X).transform(X)
