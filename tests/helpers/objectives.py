"""Objectives in plain NumPy, by their definitions, and a proxy that shows the members of a protocol
and nothing else. Solvers are tested on both."""

import inspect

import numpy as np
from scipy import optimize
from scipy.special import expit, logsumexp

from fastdisc._objectives.penalty import Penalty
from fastdisc._objectives.protocol import (
    Capability,
    Costs,
    Evaluation,
    HessianOperator,
    Objective,
    Precision,
    SharedObjective,
)

# --- losses: of scores Z (N, K) and targets r: values, derivatives (N, K), second derivatives
# (N, K, K), and which rows are misclassified -----------------------------------------------------


def logistic(Z, r):
    z, y = Z[:, 0], expit(Z)
    return np.logaddexp(0, z) - r * z, y - r[:, None], (y * (1 - y))[:, :, None], (z > 0) != r


def softmax(Z, r):
    total = logsumexp(Z, axis=1)
    Y, rows = np.exp(Z - total[:, None]), np.arange(len(r))
    R = np.eye(Z.shape[1])
    return total - Z[rows, r], Y - R[r], Y[:, :, None] * (R - Y[:, None]), Z.argmax(axis=1) != r


def huber(width):
    """The hinge [1 - z]_+ with a smoothed corner; rows are differences of pairs."""

    def loss(Z, r):
        a = 1 - Z
        slope, curved = np.clip(a / width, 0, 1), (a > 0) & (a < width)
        values = np.where(a > width, a - width / 2, np.maximum(a, 0) ** 2 / (2 * width))
        return values[:, 0], -slope, (curved / width)[:, :, None], a[:, 0] > 0

    return loss


# --- objectives -----------------------------------------------------------------------------------


class NumpyObjective:
    """The weighted sum of a loss over rows A (N, d+1), and a penalty, by their definitions."""

    convex, loss_curvature_bound = True, 0.5

    def __init__(self, A, r, s, loss, penalty, capabilities=frozenset(Capability)):
        self.A, self.r, self.s, self.loss, self.penalty = A, r, s, loss, penalty
        self.shape, self.n_rows, self.total_weight = penalty.shape, len(A), float(s.sum())
        self.capabilities, self.costs = frozenset(capabilities), Costs(A.shape[1] - 1, False, False)

    def like(self, **changes):
        names = ("A", "r", "s", "loss", "penalty", "capabilities")
        return NumpyObjective(**({name: getattr(self, name) for name in names} | changes))

    def value_and_gradient(self, W):
        values, E, _, wrong = self.loss(self.A @ W.T, self.r)
        diagonal, fixed = self.penalty.diagonal, self.penalty.fixed
        G = np.where(fixed, 0, (self.s[:, None] * E).T @ self.A + diagonal * W)
        return Evaluation(self.s @ values + (diagonal * W**2).sum() / 2, self.s @ wrong, G)

    def hessian(self, W):
        C = self.s[:, None, None] * self.loss(self.A @ W.T, self.r)[2]
        H = np.einsum("tkj,ta,tb->kajb", C, self.A, self.A, optimize=True)
        H = H.reshape(W.size, W.size) + np.diag(np.tile(self.penalty.diagonal, len(W)))
        fixed = self.penalty.fixed.ravel()
        H[fixed], H[:, fixed], H[fixed, fixed] = 0, 0, 1
        return self.value_and_gradient(W)._replace(hessian=H)

    def hessian_operator(self, W, precision=Precision.FLOAT32, previous=None):
        return NumpyOperator(self.hessian(W).hessian)

    def use_float64(self):
        return self

    def sample(self, m, seed, by_norm=False):
        if m >= self.n_rows:
            return self
        rows = np.sort(np.random.default_rng(seed).permutation(self.n_rows)[:m])
        return self.like(A=self.A[rows], r=self.r[rows], s=self.s[rows] * (self.n_rows / m))

    def columns(self, chosen):
        places = np.concatenate([[0], np.asarray(chosen) + 1])
        return self.like(A=self.A[:, places], penalty=self.penalty.columns(chosen))

    def batch(self, rows):
        part = self.like(A=self.A[rows], r=self.r[rows], s=self.s[rows])
        share = part.total_weight / self.total_weight
        return part.like(penalty=self.penalty.with_l2(self.penalty.l2 * share))

    def curvature_factors(self, W):
        C = self.s[:, None, None] * self.loss(self.A @ W.T, self.r)[2]
        size = np.trace(C, axis1=1, axis2=2)
        if not size.any():  # no row has curvature here
            return np.eye(len(W)), np.eye(W.shape[1])
        return C.sum(axis=0), self.A.T @ (size[:, None] * self.A) / size.sum()

    def curvature_diagonal(self):
        C = self.loss(np.zeros((self.n_rows, self.shape[0])), self.r)[2].mean(axis=0)
        return C, self.s @ self.A**2

    def curvature_bound(self):
        gram = self.A.T @ (self.s[:, None] * self.A)
        return 0.5 * np.linalg.eigvalsh(gram)[-1] + self.penalty.diagonal.max()

    def max_abs_score(self, V):
        return float(np.abs(self.A @ V.T).max())


class NumpyOperator:
    """A Hessian matrix; directions are encoded by scaling them."""

    precision, min_residual, preconditioner = Precision.FLOAT64, 0.0, None

    def __init__(self, H):
        self.H = H

    def encode(self, gradient, norm):
        return gradient / norm

    def decode(self, direction, norm):
        return direction * norm

    def product(self, direction):
        return (self.H @ direction.ravel()).reshape(direction.shape)


class NumpyShared:
    """Several objectives with the same penalty as a SharedObjective."""

    convex = True

    def __init__(self, objectives):
        self.objectives, first = objectives, objectives[0]
        self.n_problems, self.shape, self.penalty = len(objectives), first.shape, first.penalty
        self.n_rows = min(objective.n_rows for objective in objectives)
        self.capabilities = first.capabilities

    def evaluate(self, W, problems, order):
        some = [self.objectives[k] for k in problems]
        pairs = zip(some, W, strict=True)
        return [o.hessian(w) if order == 2 else o.value_and_gradient(w) for o, w in pairs]

    def sample(self, m, seed, by_norm=False):
        if m >= self.n_rows:
            return self
        return NumpyShared([o.sample(m * o.n_rows // self.n_rows, seed) for o in self.objectives])

    def use_float64(self):
        return self

    def curvature_factors(self, W):
        return self.objectives[0].curvature_factors(W)


def numpy_problem(rng, n, d, K, l2=1.0, capabilities=frozenset(Capability), **fixed):
    """A two-class (K = 2) or softmax problem, its rows drawn from the model itself."""
    X = rng.standard_normal((n, d))
    r = (X @ rng.standard_normal((d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    A, s = np.column_stack([np.ones(n), X]), rng.random(n) + 0.5
    penalty = Penalty((1 if K == 2 else K, d + 1), l2, **fixed)
    return NumpyObjective(A, r, s, logistic if K == 2 else softmax, penalty, capabilities)


def minimum(objective):
    """The weights at the minimum, by SciPy."""

    def value_and_gradient(w):
        found = objective.value_and_gradient(w.reshape(objective.shape))
        return found.value, found.gradient.ravel()

    def hessian(w):
        return objective.hessian(w.reshape(objective.shape)).hessian

    start = np.zeros(objective.shape[0] * objective.shape[1])
    options = {"jac": True, "hess": hessian, "options": {"gtol": 1e-10, "maxiter": 1000}}
    found = optimize.minimize(value_and_gradient, start, method="trust-exact", **options)
    assert np.linalg.norm(found.jac) <= 1e-8 * np.linalg.norm(value_and_gradient(start)[1])
    return found.x.reshape(objective.shape)


def centred(objective, *weights):
    """Weights with intercepts that add up to 0, if the same may be added to all of them."""
    if not objective.penalty.shift_invariant or not objective.penalty.intercept:
        return weights
    first = np.arange(objective.shape[1]) == 0
    return tuple(W - first * W[:, 0].mean() for W in weights)


# --- the strict proxy -----------------------------------------------------------------------------

CAPABILITY_OF = {
    "hessian": Capability.HESSIAN,
    "hessian_operator": Capability.HESSIAN_OPERATOR,
    "sample": Capability.SAMPLE,
    "columns": Capability.COLUMNS,
    "batch": Capability.BATCHES,
    "curvature_factors": Capability.CURVATURE_FACTORS,
    "curvature_diagonal": Capability.CURVATURE_DIAGONAL,
    "curvature_bound": Capability.CURVATURE_BOUND,
    "max_abs_score": Capability.MAX_ABS_SCORE,
}
PROTOCOL_OF = {
    NumpyObjective: Objective,
    NumpyShared: SharedObjective,
    NumpyOperator: HessianOperator,
    Penalty: Penalty,
}


def members(protocol):
    """The public members of a protocol or class."""
    return {name for name in dir(protocol) if not name.startswith("_")}


class Strict:
    """An object of which only the members of a protocol can be used, with the arguments stated
    there, and of the capabilities only those that are declared."""

    __slots__ = ("_protocol", "_target")

    def __init__(self, target, protocol=None):
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_protocol", protocol or PROTOCOL_OF[type(target)])

    def __setattr__(self, name, value):
        raise AttributeError(f"{name!r} of a {self._protocol.__name__} was set")

    def __getattr__(self, name):
        target, protocol = self._target, self._protocol
        known = members(protocol)
        if protocol is Penalty:  # instance attributes are documented in its docstring
            known = known | {"shape", "l2"}
        if name not in known:
            raise AttributeError(f"{name!r} is no member of {protocol.__name__}")
        if "capabilities" in known:
            needed = CAPABILITY_OF.get(name)
            if needed is not None and needed not in target.capabilities:
                raise AttributeError(f"{name!r} is not among the declared capabilities")
        value = getattr(target, name)
        stated = inspect.getattr_static(protocol, name, None)
        if not inspect.isfunction(stated):
            return self._wrap(value)

        def call(*arguments, **options):
            inspect.signature(stated).bind(self, *arguments, **options)
            if options.get("by_norm") and Capability.SAMPLE_BY_NORM not in target.capabilities:
                raise AttributeError("sample(by_norm=True) is not among the declared capabilities")
            return self._wrap(value(*map(unwrap, arguments), **valmap(unwrap, options)))

        return call

    def _wrap(self, value):
        if value is self._target:
            return self
        return Strict(value) if type(value) in PROTOCOL_OF else value


def unwrap(value):
    return value._target if isinstance(value, Strict) else value


def valmap(function, values):
    return {name: function(value) for name, value in values.items()}
