"""Every objective of the package keeps the protocol: its members, and what they mean."""

import mpmath
import numpy as np
import pytest
from helpers.fits import rows_of
from helpers.objective_cases import CASES, SMOOTH, N
from helpers.objectives import CAPABILITY_OF, Strict, members
from helpers.oracles import numerical_gradient

from fastdisc._data.source import MemorySource
from fastdisc._kernels import Batch, RowLoss
from fastdisc._objectives.penalty import Penalty
from fastdisc._objectives.protocol import Capability, Costs, HessianOperator, Objective, Precision
from fastdisc._objectives.row_sums import RowSums

ALL_CASES = pytest.mark.parametrize("name", CASES)
EXACT_PRODUCTS, FLOAT32_PRODUCTS = 1e-9, 2e-5


@pytest.fixture
def case(name, rng):
    return CASES[name](rng)


def free_weights(objective, rng, size=0.3):
    """Random weights, 0 where they are fixed."""
    W = size * rng.standard_normal(objective.shape)
    return np.where(objective.penalty.fixed, 0, W)


def provides(objective, capability):
    if capability not in objective.capabilities:
        pytest.skip(f"does not declare {capability.value}")


def matrix_times(H, V):
    return (H @ V.ravel()).reshape(V.shape)


def assert_near(actual, expected, tol):
    atol = tol * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=atol)


# --- members --------------------------------------------------------------------------------------


@ALL_CASES
def test_objective_has_the_members_of_the_protocol(case):
    objective = case.objective
    optional = {m for m, c in CAPABILITY_OF.items() if c not in objective.capabilities}
    missing = [m for m in members(Objective) - optional if not hasattr(objective, m)]
    assert missing == []
    assert objective.capabilities <= set(Capability)
    assert isinstance(objective.costs, Costs) and isinstance(objective.penalty, Penalty)
    assert objective.penalty.shape == objective.shape
    assert objective.n_rows > 0 and objective.total_weight > 0
    assert objective.convex in (True, False)
    assert objective.loss_curvature_bound > 0


def test_every_capability_is_one_member_of_the_protocol():
    by_norm = {Capability.SAMPLE_BY_NORM}
    assert set(CAPABILITY_OF.values()) == set(Capability) - by_norm
    assert set(CAPABILITY_OF) <= members(Objective)
    for name, capability in CAPABILITY_OF.items():
        assert capability.value == name


@ALL_CASES
def test_shapes(case, rng):
    objective, (K, D) = case.objective, case.objective.shape
    W = free_weights(objective, rng)
    found = objective.value_and_gradient(W)
    assert np.ndim(found.value) == 0 and found.gradient.shape == (K, D)
    assert found.hessian is None and 0 <= found.errors <= objective.total_weight
    if Capability.HESSIAN in objective.capabilities:
        assert objective.hessian(W).hessian.shape == (K * D, K * D)
    if Capability.CURVATURE_FACTORS in objective.capabilities:
        B, M = objective.curvature_factors(W)
        assert B.shape == (K, K) and M.shape == (D, D)
    if Capability.CURVATURE_DIAGONAL in objective.capabilities:
        B, squares = objective.curvature_diagonal()
        assert B.shape == (K, K) and squares.shape == (D,) and (squares >= 0).all()


# --- value, gradient, Hessian ---------------------------------------------------------------------


@ALL_CASES
def test_gradient_is_the_derivative_of_the_value(case, rng):
    objective = case.float64
    W = free_weights(objective, rng)
    numeric = numerical_gradient(lambda V: objective.value_and_gradient(V).value, W, 1e-5)
    numeric[objective.penalty.fixed] = 0
    assert_near(objective.value_and_gradient(W).gradient, numeric, 2e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_hessian_is_the_derivative_of_the_gradient(case, rng):
    objective = case.float64
    provides(objective, Capability.HESSIAN)
    W, fixed = free_weights(objective, rng), objective.penalty.fixed.ravel()
    numeric = np.zeros((W.size, W.size))
    for place, column in zip(np.ndindex(W.shape), numeric.T, strict=True):
        step = np.zeros_like(W)
        step[place] = 1e-5
        up, down = (objective.value_and_gradient(V).gradient for V in (W + step, W - step))
        column[:] = (up - down).ravel() / 2e-5
    numeric[fixed], numeric[:, fixed], numeric[fixed, fixed] = 0, 0, 1
    H = objective.hessian(W).hessian
    assert_near(H, numeric, 2e-6)
    np.testing.assert_allclose(H, H.T, rtol=1e-12, atol=1e-12 * np.abs(H).max())


@ALL_CASES
def test_hessian_comes_with_value_and_gradient(case, rng):
    objective = case.float64
    provides(objective, Capability.HESSIAN)
    W = free_weights(objective, rng)
    one, other = objective.hessian(W), objective.value_and_gradient(W)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.errors == pytest.approx(other.errors)
    assert_near(one.gradient, other.gradient, 1e-9)


@ALL_CASES
def test_convex_objectives_have_no_negative_curvature(case, rng):
    objective = case.float64
    provides(objective, Capability.HESSIAN)
    for size in (0.0, 0.3, 3.0):
        H = objective.hessian(free_weights(objective, rng, size)).hessian
        values = np.linalg.eigvalsh(H)
        assert values[0] >= -1e-10 * values[-1]


@ALL_CASES
@pytest.mark.parametrize("precision", Precision)
def test_operator_is_the_product_with_the_hessian(case, rng, precision):
    objective = case.objective
    provides(objective, Capability.HESSIAN_OPERATOR)
    W, V = free_weights(objective, rng), free_weights(objective, rng)
    norm = float(np.linalg.norm(V))
    operator = objective.hessian_operator(W, precision)
    assert all(hasattr(operator, member) for member in members(HessianOperator))
    direction = operator.encode(V, norm)
    # An encoded product has the scale of encoded gradients: H V / norm.
    product = norm * np.asarray(operator.product(direction))
    unscaled = operator.decode(product / norm, norm)
    identity = operator.decode(operator.encode(V, norm), norm)
    size = np.linalg.norm(identity) / norm  # 1, or 1 / unit: solutions are in other units
    expected = matrix_times(objective.use_float64().hessian(W).hessian, V)
    float32 = operator.precision is Precision.FLOAT32 or objective.use_float64() is not objective
    tol = FLOAT32_PRODUCTS if float32 else EXACT_PRODUCTS
    assert_near(unscaled / size**2, expected, tol)
    if precision is Precision.FLOAT64:
        assert operator.precision is Precision.FLOAT64
    assert 0 <= operator.min_residual < 1


@ALL_CASES
def test_operator_solves_for_directions(case, rng):
    """decode(H^-1 encode(g)) is the solution, whatever the operator's units are."""
    objective = case.float64
    provides(objective, Capability.HESSIAN_OPERATOR)
    W, p = free_weights(objective, rng), free_weights(objective, rng)
    g = matrix_times(objective.hessian(W).hessian, p)
    norm = float(np.linalg.norm(g))
    operator = objective.hessian_operator(W)
    b, x = operator.encode(g, norm), np.zeros(p.size)
    free = operator.encode((~objective.penalty.fixed).astype(float), 1.0).ravel() != 0
    units = np.eye(p.size, dtype=b.dtype)[free].reshape(-1, *b.shape)
    H = np.array([operator.product(e).ravel() for e in units], float)
    x[free] = np.linalg.lstsq(H.T, b.ravel().astype(float), rcond=1e-6)[0]
    found = operator.decode(x.reshape(b.shape).astype(b.dtype), norm)
    residual = matrix_times(objective.hessian(W).hessian, found) - g
    assert np.linalg.norm(residual) <= 1e-3 * norm


@ALL_CASES
def test_float64_is_reached_once(case, rng):
    objective, W = case.objective, free_weights(case.objective, rng)
    precise = objective.use_float64()
    assert precise.use_float64() is precise
    assert precise.shape == objective.shape and precise.n_rows == objective.n_rows
    one, other = objective.value_and_gradient(W), precise.value_and_gradient(W)
    assert one.value == pytest.approx(other.value, rel=1e-5)
    assert_near(one.gradient, other.gradient, FLOAT32_PRODUCTS)


@ALL_CASES
def test_repeated_evaluations_are_equal_and_independent(case, rng):
    """Caches never change a result, and their arrays are not those that callers get."""
    objective, W = case.objective, free_weights(case.objective, rng)
    first = objective.value_and_gradient(W)
    gradient = first.gradient.copy()
    first.gradient[:] = np.nan
    objective.value_and_gradient(2 * W)
    W_same = W.copy()
    again = objective.value_and_gradient(W_same)
    W_same[:] = 7.0
    third = objective.value_and_gradient(W)
    for found in (again, third):
        assert found.value == first.value
        np.testing.assert_array_equal(found.gradient, gradient)


# --- parts ----------------------------------------------------------------------------------------


@ALL_CASES
def test_sample_estimates_the_objective(case, rng):
    objective, W = case.objective, free_weights(case.objective, rng)
    provides(objective, Capability.SAMPLE)
    assert objective.sample(10**9, 0) is objective
    value = objective.value_and_gradient(W).value
    parts = [objective.sample(N // 4, seed) for seed in range(60)]
    assert np.mean([part.value_and_gradient(W).value for part in parts]) == pytest.approx(
        value, rel=0.06
    )
    for part in parts[:2]:
        assert part.shape == objective.shape and part.capabilities == objective.capabilities
    same, other = objective.sample(N // 4, 0), parts[1]
    assert same.value_and_gradient(W).value == parts[0].value_and_gradient(W).value
    assert same.value_and_gradient(W).value != other.value_and_gradient(W).value


@ALL_CASES
def test_sample_by_norm_estimates_the_objective(case, rng):
    objective, W = case.objective, free_weights(case.objective, rng)
    if isinstance(objective, type(CASES["numpy"](rng).objective)):
        pytest.skip("draws all rows with one probability")
    provides(objective, Capability.SAMPLE_BY_NORM)
    value = objective.value_and_gradient(W).value
    parts = [objective.sample(N // 4, seed, by_norm=True) for seed in range(60)]
    mean = np.mean([part.value_and_gradient(W).value for part in parts])
    assert mean == pytest.approx(value, rel=0.06)


@ALL_CASES
def test_columns_have_the_objective_with_other_weights_zero(case, rng):
    objective = case.float64
    provides(objective, Capability.COLUMNS)
    chosen = np.array([0, 2, 3])
    places = np.concatenate([[0], chosen + 1])
    part, W = objective.columns(chosen), free_weights(objective, rng)
    W[:, [2, 5]] = 0
    one, other = part.value_and_gradient(W[:, places].copy()), objective.value_and_gradient(W)
    assert part.shape == (objective.shape[0], 4)
    assert one.value == pytest.approx(other.value, rel=1e-10)
    assert_near(one.gradient, other.gradient[:, places], 1e-8)


@ALL_CASES
def test_batches_add_up_to_the_objective(case, rng):
    """So the penalty is divided among them, and counts once."""
    objective = case.float64
    provides(objective, Capability.BATCHES)
    W, order = free_weights(objective, rng), rng.permutation(objective.n_rows)
    parts = [objective.batch(np.sort(rows)) for rows in np.array_split(order, 4)]
    found = [part.value_and_gradient(W) for part in parts]
    expected = objective.value_and_gradient(W)
    assert sum(f.value for f in found) == pytest.approx(expected.value, rel=1e-10)
    assert_near(sum(f.gradient for f in found), expected.gradient, 1e-8)
    weights = sum(part.total_weight for part in parts)
    assert weights == pytest.approx(objective.total_weight)


# --- curvature ------------------------------------------------------------------------------------


@ALL_CASES
def test_curvature_bound_is_a_bound(case, rng):
    objective = case.float64
    provides(objective, Capability.CURVATURE_BOUND)
    bound = objective.curvature_bound()
    for size in (0.0, 0.01, 0.1, 1.0, 10.0):
        W = free_weights(objective, rng, size)
        assert np.linalg.eigvalsh(objective.hessian(W).hessian)[-1] <= bound * (1 + 1e-9)


@pytest.mark.parametrize("name", ["logistic", "softmax", "logistic int8", "softmax float32"])
def test_curvature_factors_are_exact_at_zero_weights(case):
    """There the class covariance is the same for all rows."""
    objective = case.float64
    provides(objective, Capability.CURVATURE_FACTORS)
    W = np.zeros(objective.shape)
    B, M = objective.curvature_factors(W)
    assert_near(np.kron(B, M), objective.hessian(W).hessian, 1e-9)


@pytest.mark.parametrize(
    "name", ["logistic", "logistic csr", "squared", "penalised", "no intercept", "standardised"]
)
def test_curvature_diagonal_is_exact_for_one_score_at_zero_weights(case):
    objective = case.float64
    B, squares = objective.curvature_diagonal()
    found = B[0, 0] * squares + objective.penalty.diagonal
    expected = objective.hessian(np.zeros(objective.shape)).hessian.diagonal()
    free = ~objective.penalty.fixed[0]
    np.testing.assert_allclose(found[free], expected[free], rtol=1e-9)


@ALL_CASES
def test_max_abs_score_is_the_largest_change_of_a_score(case, rng):
    objective = case.objective
    provides(objective, Capability.MAX_ABS_SCORE)
    V = free_weights(objective, rng)
    expected = objective.max_abs_score(V)
    assert objective.max_abs_score(-2 * V) == pytest.approx(2 * expected)
    assert objective.max_abs_score(0 * V) == 0


# --- the penalty ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in CASES if "penal" in n or "standard" in n])
def test_penalty_is_applied_exactly_once(case, rng):
    objective, l2 = case.float64, case.l2
    assert l2.any()
    free = type(objective)(objective.data, objective.penalty.with_l2(0.0))
    W, V = free_weights(objective, rng), free_weights(objective, rng)
    (value, _, g, H), (value_0, _, g_0, H_0) = (o.hessian(W) for o in (objective, free))
    K = len(W)
    assert value - value_0 == pytest.approx((l2 * W[:, 1:] ** 2).sum() / 2)
    np.testing.assert_allclose((g - g_0)[:, 1:], l2 * W[:, 1:], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(g[:, 0], g_0[:, 0], rtol=1e-12)
    diagonal = np.tile(np.concatenate([[0], l2]), K)
    np.testing.assert_allclose(H - H_0, np.diag(diagonal), atol=1e-6)
    products = [o.hessian_operator(W, Precision.FLOAT64).product(V) for o in (objective, free)]
    expected = np.concatenate([np.zeros((K, 1)), l2 * V[:, 1:]], axis=1)
    np.testing.assert_allclose(products[0] - products[1], expected, rtol=1e-6, atol=1e-6)
    for part in (objective.sample(N // 2, 0), objective.columns(np.arange(5))):
        np.testing.assert_array_equal(part.penalty.l2, l2)


@pytest.mark.parametrize("name", ["no intercept", "reference class", "numpy no intercept"])
def test_fixed_weights_have_no_gradient_and_unit_curvature(case, rng):
    objective, W = case.objective, free_weights(case.objective, rng)
    fixed = objective.penalty.fixed
    assert fixed.any()
    _, _, g, H = objective.hessian(W)
    assert (g[fixed] == 0).all()
    mask = fixed.ravel()
    np.testing.assert_array_equal(H[mask], np.eye(len(mask))[mask])
    np.testing.assert_array_equal(H[:, mask], np.eye(len(mask))[:, mask])
    product = objective.hessian_operator(W, Precision.FLOAT64).product(free_weights(objective, rng))
    assert (product[fixed] == 0).all()


# --- high precision -------------------------------------------------------------------------------


def mp_loss(loss, z, target):
    z = [mpmath.mpf(float(a)) for a in z]
    if loss == RowLoss.SOFTMAX:
        return mpmath.log(sum(mpmath.exp(a) for a in z)) - z[target]
    if loss == RowLoss.LOGISTIC:
        return mpmath.log(1 + mpmath.exp(-z[0] if target else z[0]))
    if loss == RowLoss.SQUARED:
        return (z[0] - (1 if target else -1)) ** 2 / 2
    return (target - 1 / (1 + mpmath.exp(-z[0]))) ** 2 / 2


@pytest.mark.parametrize("loss", RowLoss)
@pytest.mark.parametrize("backend", ["numpy", "cython"])
def test_values_have_the_digits_of_high_precision(rng, loss, backend):
    K = 3 if loss == RowLoss.SOFTMAX else 2
    # Features and weights with few bits: scores are exact.
    X, r = rng.integers(-40, 40, (30, 2)) / 8, rng.integers(0, K, 30).astype(np.int32)
    W = rng.integers(-40, 40, (K if K > 2 else 1, 3)) / 8
    data = RowSums(MemorySource(Batch(rows_of(X), r, np.ones(1)), backend=backend), loss)
    with mpmath.workdps(40):
        Z = X @ W[:, 1:].T + W[:, 0]
        expected = mpmath.fsum(mp_loss(loss, z, int(t)) for z, t in zip(Z, r, strict=True))
    assert data.value_and_gradient(W).value == pytest.approx(float(expected), rel=1e-13)


# --- layers below ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("numpy")])
def test_objective_passes_through_a_strict_proxy(case, rng):
    """The proxy checks the arguments' names."""
    objective = Strict(case.objective, Objective)
    W = free_weights(case.objective, rng)
    assert objective.value_and_gradient(W=W).value > 0
    assert objective.hessian(W=W).hessian is not None
    assert objective.hessian_operator(W=W, precision=Precision.FLOAT64, previous=None)
    assert objective.sample(m=N // 2, seed=0)
    assert objective.columns(chosen=np.array([1, 2])).shape[1] == 3
