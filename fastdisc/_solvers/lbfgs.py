"""Quasi-Newton: a metric, and what the last steps tell beyond it (limited-memory BFGS)."""

from __future__ import annotations

import numpy as np

from . import metric, norm, result, start_norm

MEMORY = 1_000_000  # numbers: pairs of 10 to 100 steps, as many as cost little beside a sweep
NOISE = 64 * np.finfo(float).eps  # of a loss, relative
WIDEST = 2500  # columns up to which a Gram matrix is worth its factor


def solve(objective, W, *, tol, max_iter, trace):
    """Minimise by steps -(metric corrected by the last steps) g.

    For data that are not wide the metric comes from a sample at the start. Two things were tried and made it slower on 60,000
    images of 784 pixels: to descend on the sample first (with fewer rows than weights its optimum is far off), and to take the
    metric anew later on.
    """
    if objective.sparse or W.shape[1] > WIDEST:
        base = metric.diagonal(objective, W.shape, objective.sweep.fractions())
    else:
        base = metric.kronecker(objective, W, objective.sample(max(8 * W.shape[1], 2000), seed=0))
    return finish(objective, W, base, tol=tol, max_iter=max_iter, trace=trace, name="lbfgs")


def finish(objective, W, base, *, tol, max_iter, trace, start=None, sums=None, refresh=None, name):
    """Descend on all rows, as a Result."""
    if start is None:
        start = start_norm(objective, W) if W.any() else None
    note = lambda sums, W: trace.add(name, sums, W)  # noqa: E731
    W, seen, size, start, n_iter = descend(
        objective, W, base, tol=tol, max_iter=max_iter, start=start, sums=sums, note=note, refresh=refresh
    )
    return result(W, size, start, tol, n_iter, trace, seen)


def descend(objective, W, base, *, tol, max_iter, start=None, sums=None, note=None, refresh=None):
    """Quasi-Newton steps from W until the gradient's norm has fallen to tol * start.

    1. the direction, by the two-loop recursion over the last pairs of steps and changes of the gradient
    2. a step along it: 1 unless that overshoots
    3. remember the pair
    4. where the gradient falls too slowly, a better metric may be worth its cost: refresh(W, sweeps), given the number of
       sweeps that are left at the present rate, returns one or None
    5. where the last step was that good, one more that nobody looks at: it costs no sweep

    `sums` are those at W, if known. Returns W, where it was before step 5, the gradient's norm there and at the start, and the
    number of steps.
    """
    sums, pairs, n_iter = objective(W) if sums is None else sums, [], 0
    size = norm(sums.g)
    memory = int(np.clip(MEMORY // W.size, 10, 100))
    start, sizes, still, stuck = size if start is None else start, [size], 0, False
    stop = bool(note and note(sums, W))
    while size > tol * start and not stop and n_iter < max_iter:
        p = -two_loops(sums.g, pairs, base)  # 1
        slope = float(np.vdot(sums.g, p))
        found = search(objective, W, p, sums, slope) if slope < 0 else None  # 2
        if found is None:
            if stuck and objective.sharpen():
                sums, stuck = objective(W), False
                continue
            if stuck:
                break  # no step lowers the loss: this is as far as rounding lets anybody go
            base, pairs, stuck = (refresh(W, np.inf) if refresh else None) or base, [], True
            continue
        t, trial = found
        if np.vdot(p, trial.g - sums.g) > 0:  # 3; an error that is not convex may bend the other way
            pairs = [*pairs[1 - memory :], (t * p, trial.g - sums.g)]
        still = still + 1 if sums.loss - trial.loss <= NOISE * abs(sums.loss) else 0
        W, sums, n_iter, stuck = W + t * p, trial, n_iter + 1, False
        sizes = [*sizes[-3:], size := norm(sums.g)]
        stop = bool(note and note(sums, W))
        if still >= 4 and size > 0.5 * sizes[0]:
            if not objective.sharpen():
                break
            sums, pairs, still = objective(W), [], 0
            size = norm(sums.g)
        if refresh and size > tol * start:  # 4
            rate = min(0.95, (size / sizes[0]) ** (1 / (len(sizes) - 1)))
            better = refresh(W, np.log(size / (tol * start)) / -np.log(rate)) if tol else None
            if better is not None:
                base, pairs, sizes = better, [], [size]
    if size <= tol * start and not stop and sure(sizes, pairs, p := -two_loops(sums.g, pairs, base)):  # 5
        return W + p, W, size, start, n_iter
    return W, W, size, start, n_iter


def sure(sizes, pairs, p):
    """Whether the next step p need not be looked at: the last one made the gradient four times smaller, and p is half as long.

    The gradient alone would not do: a class of 9 rows among 60,000 has next to no part in it, and steps of its own.
    """
    if len(sizes) < 2 or not pairs or sizes[-1] > sizes[-2] / 4:
        return False
    return bool(np.abs(p).max() <= np.abs(pairs[-1][0]).max() / 2)


def two_loops(g, pairs, base):
    """The corrected metric times g."""
    q, shares = g.copy(), []
    for s, y in reversed(pairs):
        shares.append(np.vdot(s, q) / np.vdot(s, y))
        q -= shares[-1] * y
    q = base(q)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q += s * (share - np.vdot(y, q) / np.vdot(s, y))
    return q


def search(objective, W, p, sums, slope, smallest=1e-8):
    """A step t <= 1 along p that lowers the loss by a share of what the slope promises, and the sums there; None if none does.

    Where the promise is below what rounding leaves of the loss, the slope at the far end decides: it must not rise as steeply.
    """
    t = 1.0
    while t > smallest:
        trial = objective(W + t * p)
        shorter = judge(sums, slope, p, t, trial)
        if shorter is None:
            return t, trial
        t = shorter
    return None


def judge(sums, slope, p, t, trial):
    """None where the step t along p will do, else a shorter one; `sums` and the slope are those where it starts."""
    if not np.isfinite(trial.loss):
        return 0.1 * t
    if trial.loss <= sums.loss + 1e-4 * t * slope:
        return None
    size, far = abs(sums.loss), float(np.vdot(trial.g, p))
    blurred = abs(slope) < 1e-8 * size
    if trial.loss <= sums.loss + (1e-9 if blurred else NOISE) * size and far <= -0.8 * slope:
        return None
    bend = trial.loss - sums.loss - t * slope
    return t * (float(np.clip(-slope * t / (2 * bend), 0.1, 0.5)) if bend > 0 else 0.5)
