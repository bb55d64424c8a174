"""A user's own function as a basis: compiled into the sweep, or called by it."""

from __future__ import annotations

import ctypes
import inspect
import warnings
from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._base import choice, number
from .._kernels.maps import Map, Part
from ._base import Basis

SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, *4 * [ctypes.c_ssize_t], ctypes.c_ssize_t)  # addresses as the numbers that they are


def plain(function):
    """A function as it was before its user compiled it: compiled, it would not check its indices."""
    return getattr(function, "py_func", function)


class Call(NamedTuple):
    """How a function is called: with one row or many, returning features or writing them to a second argument; and sizes."""

    function: object
    many: bool
    writes: bool
    d: int
    width: int  # 0 where it is to be found

    def __call__(self, X):
        """The features of rows X (n, d), by Python. The function may change X."""
        function = plain(self.function)
        if self.writes:
            F = np.full((len(X), self.width), np.nan)  # what is not written shows
            for x, out in [(X, F)] if self.many else zip(X, F, strict=True):
                function(x, out)
            return F
        if self.many:
            return self._of_rows(function(X), len(X))
        return np.stack([self._of_row(x) for x in X])

    def _of_rows(self, F, n):
        F = np.asarray(F, dtype=np.float64)
        F = F[:, None] if F.ndim == 1 else F
        if F.ndim != 2 or len(F) != n:
            raise ValueError(f"the function must return a row of features for each of {n} rows, it returned shape {F.shape}")
        if F.shape[1] != (self.width or F.shape[1]):
            raise ValueError(f"the function returned {F.shape[1]} features for {n} rows, and {self.width} for the first row")
        return F

    def _of_row(self, x):
        given = x.tolist()[:20]
        f = np.asarray(plain(self.function)(x), dtype=np.float64).reshape(-1)
        if len(f) != (self.width or len(f)):
            raise ValueError(f"the function returned {len(f)} features for the row {given}, and {self.width} for the first row")
        return f


class Block:
    """A function of a block of rows at an address, where kernels call it, and in Python."""

    def __init__(self, call):
        self.call, self.raised = call, None
        try:
            from .._kernels._numba.custom import compile_block

            self.compiled = compile_block(*call)
            self.address = self.compiled.address
        except Exception as reason:  # whatever stands in the way of the compiler: the function itself may be fine
            self.compiled = SIGNATURE(self._by_python)  # takes Python's lock for each block
            self.address = ctypes.cast(self.compiled, ctypes.c_void_p).value
            name, text = getattr(call.function, "__name__", repr(call.function)), " ".join(str(reason).split())
            warnings.warn(
                f"Custom: Numba cannot compile {name}, so that Python runs it for each block of rows, on one thread at a time. "
                f"The reason: {type(reason).__name__}: {text[:500]}",
                UserWarning,
                stacklevel=2,
            )

    def __call__(self, X):
        return self.call(X)

    def _by_python(self, x, m, d, out, ld):
        try:
            X = np.ctypeslib.as_array((ctypes.c_double * (m * d)).from_address(x)).reshape(m, d)
            F = np.lib.stride_tricks.as_strided(
                np.ctypeslib.as_array((ctypes.c_double * ((m - 1) * ld + self.call.width)).from_address(out)),
                (m, self.call.width),
                (8 * ld, 8),
            )
            F[:] = self.call(X.copy())
        except BaseException as problem:  # no way to raise it from here: the features become NaN, and `check_finite` raises it
            self.raised = problem.with_traceback(problem.__traceback__.tb_next)  # X and F will be gone
            return 0
        return 1

    def failure(self):
        """What the function raised when a kernel called it, once."""
        raised, self.raised = self.raised, None
        return raised


@lru_cache(maxsize=64)
def block_of(call):
    """The same function is compiled once."""
    return Block(call)


class Custom(Basis):
    """Any function as a basis: plain Python, compiled by Numba into the sweep (10.3).

    Parameters
    ----------
    function : callable
        One of

        - f(x): a row (d,) to a number, a tuple or an array of features,
        - f(x, out): the same, writing the features to `out`, which spares an array a row,
        - with `vectorized`, f(X) or f(X, out) of some rows at a time, (n, d) to (n, D).

        It gets a copy of its row or rows, and what it leaves unwritten in `out` is NaN. An index beyond x or `out` is an
        IndexError, also when compiled, but not in other compiled functions that it calls: give those `boundscheck=True`. Numba
        takes globals for constants. What it cannot compile is run by Python, a block of rows at a time, by one thread at a time,
        and a warning gives the reason.
    n_features : int, optional
        The number of features D; told from the first row where f returns them.
    vectorized : bool, default=False

    Attributes
    ----------
    n_features_out_ : int
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import math
    >>> from fastdisc.basis import Custom
    >>> def polar(x):
    ...     return math.hypot(x[0], x[1]), math.atan2(x[1], x[0])
    >>> Custom(polar).fit_transform([[3.0, 4.0], [0.0, 2.0]]).round(3)
    array([[5.   , 0.927],
           [2.   , 1.571]])
    """

    def __init__(self, function, *, n_features=None, vectorized=False):
        self.function = function
        self.n_features = n_features
        self.vectorized = vectorized

    def _learn(self, X, y):
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {self.function!r}")
        choice(self.vectorized, "vectorized", (True, False))
        if self.n_features is not None:
            number(self.n_features, "n_features", low=1, whole=True)
        writes, d = self._writes(), X.shape[1]
        if writes and self.n_features is None:
            raise ValueError("n_features must be given for a function that writes to its second argument")
        width = int(self.n_features) if writes else 0
        F = Call(self.function, bool(self.vectorized), writes, d, width)(X[:1].astype(np.float64))
        if self.n_features is not None and F.shape[1] != self.n_features:
            raise ValueError(f"the function returned {F.shape[1]} features for the first row, n_features is {self.n_features}")
        self.n_features_out_ = F.shape[1]
        self._call = Call(self.function, bool(self.vectorized), writes, d, self.n_features_out_)

    def _writes(self):
        try:
            parameters = inspect.signature(plain(self.function)).parameters.values()
        except (TypeError, ValueError):  # built in
            return False
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return len([p for p in parameters if p.kind in kinds and p.default is p.empty]) == 2

    def _parts(self):
        block = block_of(self._call) if isinstance(self._call.function, Hashable) else Block(self._call)
        return [Part(Map.CUSTOM, self.n_features_out_, function=block, address=block.address)]

    def _names(self, names):
        name = getattr(self._call.function, "__name__", "custom")
        name = "custom" if name == "<lambda>" else name
        return [name] if self.n_features_out_ == 1 else [f"{name}{k}" for k in range(self.n_features_out_)]
