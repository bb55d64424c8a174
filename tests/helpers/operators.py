"""Checks of Hessian operators in float32."""

import numpy as np

from fastdisc._objectives.protocol import Precision


def check_float32_operator(objective, exact, W, g, unit):
    """An operator of few digits beside the exact Hessian: products, preconditioner, encoding."""
    free = ~exact.penalty.fixed
    W, g = W * free, g * free
    operator, norm = objective.hessian_operator(W), float(np.linalg.norm(g))
    assert operator.precision is Precision.FLOAT32
    V = operator.encode(g, norm)
    assert V.dtype == np.float32
    np.testing.assert_allclose(operator.decode(V, norm), g / unit, rtol=1e-6)
    H, (K, D) = exact.hessian(W).hessian, W.shape
    expected = (H @ g.ravel()).reshape(W.shape) / unit**2
    actual = operator.decode(operator.product(V), norm)
    np.testing.assert_allclose(actual, expected, atol=1e-5 * np.abs(expected).max())
    blocks = np.stack([H[k * D : k * D + D, k * D : k * D + D] for k in range(K)])
    if not getattr(operator, "blocks", False):
        blocks = np.stack([np.diag(block.diagonal()) for block in blocks])
    expected = np.matmul(np.linalg.inv(blocks), g[:, :, None])[:, :, 0]
    expected = np.where(free, expected, 0)
    actual = np.where(free, operator.decode(operator.preconditioner(V), norm), 0)
    np.testing.assert_allclose(actual, expected, atol=1e-3 * np.abs(expected).max())
    precise = objective.hessian_operator(W, Precision.FLOAT64)
    assert precise.precision is Precision.FLOAT64 and precise.preconditioner is None
