"""fastdisc.special against mpmath: within 4 ulp on a wide grid, no overflow up to 1e308."""

import warnings

import mpmath as mp
import numpy as np
import pytest

from fastdisc import special

mp.mp.dps = 50
TINY = mp.mpf(2) ** -1022
Z = np.unique(
    np.concatenate(
        [
            [0.0],
            *(sign * np.logspace(-300, 308, 77) for sign in (1, -1)),
            np.linspace(-760, 760, 305),
            np.linspace(-65, 65, 521),
        ]
    )
)
Y = np.concatenate(
    [np.logspace(-300, -0.31, 80), 1 - np.logspace(-15, -0.31, 80), np.linspace(0.4, 0.6, 41)]
)


def assert_ulps(actual, exact, bound=4):
    for a, e in zip(np.ravel(actual), exact, strict=True):
        if abs(e) < TINY:  # subnormal results may lose digits
            assert abs(mp.mpf(float(a)) - e) <= TINY * mp.mpf(2) ** -50
        else:
            assert abs(mp.mpf(float(a)) - e) <= bound * mp.mpf(float(np.spacing(abs(float(e)))))


def clipped(f, limit=5000):
    """f of exact numbers; beyond the limit it is constant in floating point."""
    return lambda z: f(max(-limit, min(limit, mp.mpf(float(z)))))


LAMBDA = mp.sqrt(mp.pi / 8)
EXACT = {
    "sigmoid": clipped(lambda z: 1 / (1 + mp.exp(-z))),
    "sigmoid_derivative": clipped(lambda z: 1 / ((1 + mp.exp(-z)) * (1 + mp.exp(z)))),
    "scaled_probit": clipped(lambda z: mp.erfc(-LAMBDA * z / mp.sqrt(2)) / 2),
    "scaled_probit_derivative": clipped(lambda z: mp.exp(-mp.pi * z * z / 16) / 4),
    "log1pexp": lambda z: (
        mp.mpf(float(z)) if z > 5000 else mp.log1p(mp.exp(max(-5000, mp.mpf(float(z)))))
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_functions_of_a_score_are_within_4_ulp(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actual = getattr(special, name)(Z)
    assert np.isfinite(actual).all()
    assert_ulps(actual, [EXACT[name](z) for z in Z])


@pytest.mark.parametrize(
    ("name", "exact"),
    [("logit", lambda y: mp.log(y / (1 - y))), ("logit_derivative", lambda y: 1 / (y * (1 - y)))],
)
def test_functions_of_an_output_are_within_4_ulp(name, exact):
    assert_ulps(getattr(special, name)(Y), [exact(mp.mpf(float(y))) for y in Y])


def test_limits_are_exact():
    assert special.logit(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert special.logit_derivative(np.array([0.0, 1.0])).tolist() == [np.inf, np.inf]
    assert special.sigmoid(np.array([-np.inf, np.inf])).tolist() == [0, 1]
    assert np.isnan(special.sigmoid(np.nan))


@pytest.mark.parametrize("size", [1.0, 30.0, 700.0, 1e300])
def test_softmax_functions_are_within_4_ulp(size):
    rows = np.random.default_rng(3).standard_normal((40, 5)) * size
    if size == 1e300:
        rows[0] = [1e308, -1e308, 1e308, 0, -1e308]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        P, L, J = special.softmax(rows), special.log_softmax(rows), special.softmax_derivative(rows)
    for row, p, log_p, jacobian in zip(rows, P, L, J, strict=True):
        z = [mp.mpf(float(a)) - mp.mpf(float(row.max())) for a in row]
        u = [mp.exp(max(-5000, a)) for a in z]
        top = max(range(5), key=lambda k: z[k])
        others = sum(a for k, a in enumerate(u) if k != top)
        total = sum(u)
        y = [a / total for a in u]
        assert_ulps(p, y)
        if size < 1e300:
            assert_ulps(log_p, [a - mp.log1p(others) for a in z])
        rest = [sum(a for k, a in enumerate(u) if k != i) / total for i in range(5)]
        exact = [y[i] * rest[i] if i == j else -y[i] * y[j] for i in range(5) for j in range(5)]
        assert_ulps(jacobian, exact)


def test_float32_stays_float32():
    z = np.linspace(-20, 20, 9, dtype=np.float32)
    for name in ("sigmoid", "log1pexp", "softmax", "scaled_probit"):
        result = getattr(special, name)(z)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, getattr(special, name)(z.astype(float)), rtol=1e-7)


def test_functions_satisfy_identities():
    z = np.linspace(-30, 30, 101)
    np.testing.assert_allclose(
        special.logit(special.sigmoid(z[30:71])), z[30:71], rtol=1e-9, atol=1e-12
    )
    two = np.column_stack([z, np.zeros_like(z)])
    np.testing.assert_allclose(
        special.softmax(two)[:, 0], special.sigmoid(z), rtol=1e-15
    )  # exercise 4
    np.testing.assert_allclose(
        special.scaled_probit_derivative(0.0), special.sigmoid_derivative(0.0)
    )  # figure 4.9
