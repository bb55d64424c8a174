"""Few dense rows: products with the Hessian on a copy in float32, and fits that take them."""

import numpy as np
import pytest
from conftest import make_features
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression as Peer
from test_turned import check_bent

from fastdisc import LogisticRegression, _kept
from fastdisc._kernels import NO_OFFSET, Link
from fastdisc._solvers import choose
from fastdisc._sweep import Penalized, Standardized, Sweep

N, D = 200, 12


@pytest.mark.parametrize("narrow", [_kept.NARROW, 0])
@pytest.mark.parametrize("held", [{}, {"intercept": False}, {"reference": 1}])
@pytest.mark.parametrize(("K", "dtype", "layout"), [(2, "float64", "F"), (3, "uint8", "C"), (4, "float32", "strided")])
def test_products_in_float32(rng, monkeypatch, K, dtype, layout, held, narrow):
    monkeypatch.setattr(_kept, "NARROW", narrow)
    rows = 1 if K == 2 else K
    if rows == 1:
        held = {name: value for name, value in held.items() if name != "reference"}
    X, r = make_features(rng, N, D, dtype, layout), rng.integers(0, K, N).astype(np.int32)
    s, offset = (np.ones(1), NO_OFFSET) if K == 3 else (rng.random(N) + 0.1, rng.standard_normal((N, rows)))
    link, l2 = Link.LOGISTIC if K == 2 else Link.SOFTMAX, rng.random(D) + 0.1
    mean, scale = np.full(D, 0.5), np.linspace(1, 3, D)
    quick, exact = (
        Penalized(Standardized(Sweep(A, r, 2 * s, link, offset=offset), mean, scale), l2, **held) for A in (X, X.astype(float))
    )
    quick.sweep.sweep.single = False
    W, g = rng.standard_normal((2, rows, D + 1)) * 0.3
    if not held:
        first = quick.bent(W)
        assert quick.bent(2 * W).inverse is first.inverse  # after few products what was there serves
        first = quick.bent(W)
        first.kept.products = N
        assert quick.bent(W).inverse is not first.inverse
    check_bent(quick, exact, W, g)


def test_singular_blocks_leave_their_diagonal():
    H = np.float32([[1, -9, 0, 0], [-9, 2, 0, 0], [0, 0, 4, 0], [0, 0, 0, 8]])
    found = _kept._inverse(H, H.diagonal(), np.arange(4) == 3)
    np.testing.assert_allclose(found, np.diag([1, 0.5, 0.25, 0]), rtol=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_digits(C):
    X, y = load_digits(return_X_y=True)
    models = [LogisticRegression(C=C, tol=1e-9, solver=solver).fit(X, y) for solver in ("auto", "newton")]
    assert models[0].solver_ == "newton-cg"
    np.testing.assert_allclose(*(model.coef_ for model in models), atol=1e-5)


def test_a_peer():
    X, y = load_digits(return_X_y=True)
    peer = Peer(solver="newton-cg", tol=1e-9, max_iter=1000).fit(X / 16, y)
    np.testing.assert_allclose(LogisticRegression(tol=1e-8).fit(X / 16, y).coef_, peer.coef_, atol=1e-4)


def test_badly_scaled_columns(rng):
    X, y = rng.standard_normal((400, 60)) * np.logspace(-6, 6, 60), rng.integers(0, 3, 400)
    X[:, 7], X[:, 9] = 3.0, X[:, 8] * 2
    models = [LogisticRegression(solver=solver, tol=1e-8).fit(X, y) for solver in ("auto", "newton")]
    assert models[0].solver_ == "newton-cg"
    np.testing.assert_allclose(*(model.predict_proba(X) for model in models), atol=1e-6)


def test_which_data_are_few(rng):
    few = rng.standard_normal((100, 20))
    assert _kept.suits(few, Link.LOGISTIC, 1)
    assert not _kept.suits(few[:50], Link.LOGISTIC, 1)
    assert not _kept.suits(few, Link.SIGMOID, 1)
    assert not _kept.suits(make_features(rng, 100, 20, "float64", "csr32"), Link.SOFTMAX, 3)
    assert not _kept.suits(np.broadcast_to(few[:1], (60_000, 20)), Link.SOFTMAX, 10)
    assert _kept.suits(np.broadcast_to(few[0, 0], (1000, 3000)), Link.SOFTMAX, 10)


def test_the_choice():
    assert choose((10, 65), False, 0, 1797) == "newton-cg"
    assert choose((10, 65), False, 0) == "newton"
    assert choose((4, 31), False, 0, 30_000) == "newton"
    assert choose((3, 5), False, 0, 150) == "newton"
