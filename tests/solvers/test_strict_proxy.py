"""Every solver works on any objective that has the members of the protocol and no others."""

import importlib
import inspect
import pkgutil
import re
from functools import partial

import numpy as np
import pytest
from helpers.objectives import (
    NumpyObjective,
    NumpyShared,
    Strict,
    centred,
    huber,
    minimum,
    numpy_problem,
)
from scipy import optimize

from fastdisc import _solvers
from fastdisc._kernels import OnlineRule, OnlineState
from fastdisc._objectives.penalty import Penalty
from fastdisc._objectives.protocol import Capability
from fastdisc._solvers import (
    gd,
    lbfgs,
    newton,
    newton_cg,
    online,
    online_ranking,
    proximal,
    sample_schedule,
    separation,
    sgd,
    smoothed,
)
from fastdisc._solvers.registry import SOLVERS, choose_solver
from fastdisc._solvers.result import Trace

# Of each solver of an objective: what it needs, beyond what it declares, with these options.
SOLVES = {
    "newton": (newton.solve, {}, set()),
    "newton-cg": (newton_cg.solve, {}, set()),
    "lbfgs": (lbfgs.solve, {}, set()),
    "proximal": (partial(proximal.solve, l1=0.0, backend="numpy"), {}, set()),
    "gd": (gd.solve, {"max_iter": 20_000}, {Capability.CURVATURE_BOUND}),
    "smoothed newton": (smoothed.newton, {}, set()),
    "smoothed newton-cg": (smoothed.newton_cg, {}, set()),
}
PROBLEMS = {
    "two classes": {"K": 2},
    "softmax": {"K": 3},
    "reference class": {"K": 3, "reference": 1},
    "no intercept": {"K": 2, "intercept": False},
}


def needs(solve):
    return (solve.func if isinstance(solve, partial) else solve).requires


def assert_minimum(W, objective, atol=1e-7):
    """W is where SciPy finds the minimum, up to what may be added to all intercepts."""
    np.testing.assert_allclose(*centred(objective, W, minimum(objective)), atol=atol)


def run(solve, objective, W=None, **options):
    W = np.zeros(objective.shape) if W is None else W
    limits = {"tol": 1e-9, "max_iter": 1000, "trace": Trace()} | options
    return solve(Strict(objective), W, **limits)


def solver_functions():
    """Functions of `_solvers` whose first argument is something to minimise."""
    for info in pkgutil.iter_modules(_solvers.__path__):
        module = importlib.import_module(f"fastdisc._solvers.{info.name}")
        for name, function in vars(module).items():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and (name.startswith("solve") or hasattr(function, "requires")):
                first = next(iter(inspect.signature(function).parameters))
                if first in ("objective", "problems", "objectives", "epochs"):
                    yield function


def test_this_file_has_every_solver():
    tested = {getattr(solve, "func", solve) for solve, _, _ in SOLVES.values()}
    tested |= {sgd.solve, newton.solve_shared, smoothed.solve, separation.is_separated}
    tested |= {online.solve, online_ranking.solve}
    assert tested == set(solver_functions())
    assert {solver.solve for solver in SOLVERS.values()} <= tested


@pytest.mark.parametrize("declared", ["all", "required"])
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("name", SOLVES)
def test_solver_finds_the_optimum(rng, name, kind, declared):
    solve, options, more = SOLVES[name]
    some = frozenset(Capability) if declared == "all" else needs(solve) | more
    objective = numpy_problem(rng, 300, 4, **PROBLEMS[kind], capabilities=some)
    result = run(solve, objective, **options)
    assert result.converged
    assert result.gradient_norm <= 1e-9
    assert_minimum(result.W, objective)


@pytest.mark.parametrize("K", [2, 3])
def test_newton_on_growing_samples_finds_the_optimum(rng, monkeypatch, K):
    monkeypatch.setattr(sample_schedule, "CALL_CELLS", 0)
    monkeypatch.setattr(newton, "sample_sizes", sample_schedule.sample_sizes.__wrapped__)
    objective = numpy_problem(rng, 20_000, 4, K)
    sizes = newton.sample_sizes(20_000, objective.shape[0] * 5, 5)
    assert len(sizes) > 1 and sizes[-1] < 10_000
    result = run(newton.solve, objective)
    assert result.converged
    assert_minimum(result.W, objective)


def test_newton_from_kronecker_factors_finds_the_optimum(rng, monkeypatch):
    monkeypatch.setattr(newton, "MIN_KRONECKER_COST", 5)
    objective = numpy_problem(rng, 400, 20, 3, l2=5.0)
    assert sample_schedule.hessian_cost(3 * 21) > newton.MIN_KRONECKER_COST
    result = run(newton.solve, objective)
    assert result.converged
    assert_minimum(result.W, objective)


def test_newton_continues_a_path_of_penalties(rng):
    objective, state = numpy_problem(rng, 300, 4, 3), newton.NewtonState()
    W = np.zeros(objective.shape)
    for l2 in (10.0, 3.0, 1.0):
        next_one = objective.like(penalty=objective.penalty.with_l2(l2))
        result = run(newton.solve, next_one, W, state=state)
        W = result.start
        assert_minimum(result.W, next_one)


@pytest.mark.parametrize("eta", ["auto", 0.3])
def test_sgd_comes_near_the_optimum(rng, eta):
    some = {Capability.BATCHES} | ({Capability.CURVATURE_DIAGONAL} if eta == "auto" else set())
    objective = numpy_problem(rng, 3000, 4, 3, capabilities=some)
    result = run(sgd.solve, objective, max_iter=100, eta=eta, tol=1e-3)
    W, best = centred(objective, result.W, minimum(objective))
    assert np.linalg.norm(W - best) <= 0.05 * np.linalg.norm(best)


def test_sgd_stream_comes_near_the_optimum(rng):
    objective = numpy_problem(rng, 3000, 4, 3)
    stream = sgd.Stream(np.zeros(objective.shape), 3)
    for _ in range(30):
        stream.take(Strict(objective), 0.0, "auto")
    assert stream.seen == pytest.approx(30 * objective.total_weight)
    W, best = centred(objective, stream.average, minimum(objective))
    assert np.linalg.norm(W - best) <= 0.1 * np.linalg.norm(best)


def test_gd_with_a_step_needs_no_capability(rng):
    objective = numpy_problem(rng, 300, 4, 2, capabilities=())
    result = run(gd.solve, objective, eta=0.01, max_iter=20_000)
    assert_minimum(result.W, objective)


@pytest.mark.parametrize("K", [2, 3])
def test_solve_shared_finds_all_optima(rng, K):
    objectives = [numpy_problem(rng, 300, 4, K, l2=2.0) for _ in range(3)]
    some = {Capability.HESSIAN, Capability.SAMPLE}
    shared = Strict(NumpyShared([o.like(capabilities=some) for o in objectives]))
    start = [np.zeros(objectives[0].shape)] * 3
    limits = {"tol": 1e-9, "max_iter": 100, "trace": Trace()}
    results = newton.solve_shared(shared, start, **limits)
    for objective, result in zip(objectives, results, strict=True):
        assert result.converged
        assert_minimum(result.W, objective)


# --- L1 penalties ---------------------------------------------------------------------------------


def l1_minimum(objective, l1):
    """The weights at the minimum with an L1 penalty, by SciPy: w = p - m, where p, m >= 0."""
    shape, penalty = objective.shape, np.zeros(objective.shape)
    penalty[:, 1:] = l1
    penalty, size = penalty.ravel(), penalty.size

    def value_and_gradient(parts):
        found = objective.value_and_gradient((parts[:size] - parts[size:]).reshape(shape))
        g, l1s = found.gradient.ravel(), np.tile(penalty, 2)
        return found.value + l1s @ parts, np.concatenate([g, -g]) + l1s

    options = {"maxiter": 100_000, "maxfun": 100_000, "ftol": 0, "gtol": 1e-9, "maxcor": 50}
    found = optimize.minimize(
        value_and_gradient,
        np.zeros(2 * size),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * size),
        options=options,
    )
    return (found.x[:size] - found.x[size:]).reshape(shape)


@pytest.mark.parametrize("unrestricted", [proximal.MAX_UNRESTRICTED_WEIGHTS, 0])
@pytest.mark.parametrize("K", [2, 3])
def test_proximal_finds_the_optimum_with_an_l1_penalty(rng, monkeypatch, K, unrestricted):
    monkeypatch.setattr(proximal, "MAX_UNRESTRICTED_WEIGHTS", unrestricted)
    objective = numpy_problem(rng, 200, 8, K, l2=0.5, capabilities=proximal.solve.requires)
    result = run(proximal.solve, objective, l1=15.0, backend="numpy")
    expected = l1_minimum(objective, 15.0)
    assert result.converged
    np.testing.assert_allclose(*centred(objective, result.W, expected), atol=1e-5)
    assert np.array_equal(result.W[:, 1:] != 0, np.abs(expected[:, 1:]) > 1e-6)
    assert 0 < np.count_nonzero(result.W[:, 1:]) < expected[:, 1:].size


# --- the hinge of pairs ---------------------------------------------------------------------------


def pair_objective(rng, n, d):
    """A function from the width of the corner to an objective, the exact value, and the minimum."""
    D = rng.standard_normal((n, d))
    D *= np.sign(D @ rng.standard_normal(d) + rng.standard_normal(n))[:, None]
    A, r, s = np.column_stack([np.zeros(n), D]), np.zeros(n, int), np.ones(n)
    penalty = Penalty((1, d + 1), 2.0, intercept=False)

    def make(width, some=frozenset(Capability)):
        return NumpyObjective(A, r, s, huber(width), penalty, some)

    def dual(a):
        w = D.T @ a / 2.0
        return w @ w - a.sum(), D @ w - 1

    options = {"ftol": 0, "gtol": 1e-9, "maxiter": 100_000, "maxfun": 100_000}
    bounds = [(0, 1)] * n
    a = optimize.minimize(
        dual, np.zeros(n), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
    return make, lambda W: np.maximum(1 - A @ W[0], 0).sum() + W[0] @ W[0], D.T @ a / 2.0


INNER = {
    "newton": (smoothed.newton, smoothed.newton.requires),
    "newton-cg": (smoothed.newton_cg, smoothed.newton_cg.requires),
    "lbfgs": (lbfgs.solve, lbfgs.solve.requires),
    "proximal": (partial(proximal.solve, l1=0.0, backend="numpy"), proximal.solve.requires),
}


@pytest.mark.parametrize("name", INNER)
def test_smoothed_finds_the_minimum_of_the_hinge(rng, name):
    make, exact, best = pair_objective(rng, 200, 4)
    inner, some = INNER[name]
    some = some | lbfgs.solve.requires
    result = smoothed.solve(
        lambda width: Strict(make(width, some)),
        exact,
        np.zeros((1, 5)),
        inner=inner,
        fallback=lbfgs.solve,
        tol=1e-7,
        max_iter=3000,
        trace=Trace(),
    )
    least = exact(np.concatenate([[0], best])[None])
    assert result.converged
    assert least * (1 - 1e-8) <= exact(result.W) <= least * (1 + 1e-7)
    np.testing.assert_allclose(result.W[0, 1:], best, atol=1e-3)


# --- other functions of objectives ----------------------------------------------------------------


def test_is_separated_tells_a_direction_of_separation(rng):
    some = separation.is_separated.requires
    objective = numpy_problem(rng, 200, 3, 2, l2=0.0, capabilities=some)
    answer, H = separation.is_separated(Strict(objective), minimum(objective), 10.0)
    assert not answer
    np.testing.assert_allclose(H, objective.hessian(minimum(objective)).hessian)
    A = objective.A.copy()
    A[:, 3] = 0
    A[:5, 3], r = 1, objective.r.copy()
    r[:5] = 1
    partly, W = objective.like(A=A, r=r), np.zeros((1, 4))
    W = newton.solve(partly.like(capabilities=frozenset(Capability)), W, **LIMITS).W
    assert separation.is_separated(Strict(partly), W, 10.0)[0]
    assert separation.is_separated(Strict(partly), W, 0.0) == (True, None)


LIMITS = {"tol": 1e-6, "max_iter": 30, "trace": Trace()}


def test_choose_solver_reads_facts_alone(rng):
    objective = Strict(numpy_problem(rng, 50, 3, 2, capabilities=()))
    assert choose_solver(objective, 0.0) == "newton"
    assert choose_solver(objective, 1.0) == "proximal"


class NumpyEpochs:
    """The perceptron over separable rows."""

    def __init__(self, rng):
        self.A = np.column_stack([np.ones(100), rng.standard_normal((100, 3))])
        z = self.A @ [0.5, 1, -1, 2]
        self.A, self.y = self.A[np.abs(z) > 0.5], np.sign(z[np.abs(z) > 0.5])
        self.total_weight = float(len(self.y))

    def run(self, state, rule):
        loss, updates = 0.0, 0
        for a, y in zip(self.A, self.y, strict=True):
            margin = y * (a @ state.W[0])
            if margin <= 0:
                loss, updates = loss - margin, updates + 1
                state.W[0] += rule.eta * y * a
            state.clock[0] += 1
        return loss, updates


def test_online_solver_separates_separable_rows(rng):
    epochs, W = NumpyEpochs(rng), np.zeros((1, 4))
    state = OnlineState(W, W[:0], W[:0], np.zeros(2))
    stopping = online.Stopping(tol=None, without_updates=True)
    result = online.solve(
        Strict(epochs, online.Epochs), state, OnlineRule(0), max_iter=500, stopping=stopping
    )
    assert result.converged and result.history["updates"][-1] == 0
    assert (epochs.y * (epochs.A @ result.W[0]) > 0).all()


class NumpyPairEpochs:
    """Pairs in the order of their first column."""

    updates_end = True

    def __init__(self, rng):
        X = rng.standard_normal((30, 3))
        self.D = np.array([a - b for a in X for b in X if a[0] - b[0] > 0.3])

    def run(self, w, share=1.0):
        updates = 0
        for difference in self.D:
            if difference @ w <= 0:
                w += share * difference
                updates += 1
        return updates

    def is_ordered(self, w, updates):
        return updates == 0


def test_online_ranking_orders_all_pairs(rng):
    epochs = NumpyPairEpochs(rng)
    strict = Strict(epochs, online_ranking.Epochs)
    w, history, converged = online_ranking.solve(strict, np.zeros(3), max_iter=500)
    assert converged and history["updates"][-1] == 0
    assert (epochs.D @ w > 0).all()


# --- mismatches -----------------------------------------------------------------------------------

REQUIREMENTS = [
    pytest.param(function, capability, id=f"{function.__module__}-{capability.name}")
    for function in solver_functions()
    for capability in sorted(getattr(function, "requires", ()), key=lambda c: c.name)
]


@pytest.mark.parametrize(("solve", "capability"), REQUIREMENTS)
def test_lack_of_a_capability_is_an_error_that_names_both(rng, solve, capability):
    objective = numpy_problem(rng, 20, 2, 2, capabilities=frozenset(Capability) - {capability})
    name = f"{solve.__module__}.{solve.__qualname__}"
    message = f"{name} needs {capability.value}, which NumpyObjective does not provide"
    with pytest.raises(TypeError, match=re.escape(message)):
        solve(objective, np.zeros((1, 3)), 1.0)


@pytest.mark.parametrize(
    ("solve", "some", "lacking"),
    [
        (gd.solve, (), Capability.CURVATURE_BOUND),
        (sgd.solve, {Capability.BATCHES}, Capability.CURVATURE_DIAGONAL),
    ],
)
def test_step_size_of_its_own_is_a_need_of_its_own(rng, solve, some, lacking):
    objective = numpy_problem(rng, 20, 2, 2, capabilities=some)
    with pytest.raises(TypeError, match=f"eta='auto' needs {lacking.value}, which NumpyObj"):
        solve(objective, np.zeros((1, 3)), **LIMITS)


def test_all_missing_capabilities_are_named(rng):
    objective = numpy_problem(rng, 20, 2, 2, capabilities=())
    with pytest.raises(TypeError, match="needs sample, curvature_diagonal, which"):
        lbfgs.solve(objective, np.zeros((1, 3)), **LIMITS)


def test_proxy_hides_what_the_protocol_does_not_have(rng):
    objective = Strict(numpy_problem(rng, 20, 2, 2, capabilities={Capability.SAMPLE}))
    for name in ("A", "like", "hessian", "columns"):
        with pytest.raises(AttributeError):
            getattr(objective, name)
    with pytest.raises(TypeError):
        objective.value_and_gradient(np.zeros((1, 3)), 2)
    with pytest.raises(AttributeError):
        objective.sample(5, 0, by_norm=True)
    with pytest.raises(AttributeError):
        objective.shape = 3, 4
    assert isinstance(objective.sample(5, 0), Strict)
    assert objective.sample(20, 0) is objective
