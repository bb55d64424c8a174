"""A user's function as a basis: compiled by Numba for the kernels, or called by them in Python."""

from __future__ import annotations

import ctypes
import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._data.rows import Rows
from .._kernels.basis_program import Part
from .._kernels.contract import Array
from .._kernels.enums import BasisKind
from .._validation.parameters import check_choice, check_number
from .base import Basis

# int64 f(x, m, d, out, ld), with addresses as integers: rows (m, d) to features (m, width), of
# which each row has ld doubles. Returns 0 if the function raised.
BLOCK_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, *5 * [ctypes.c_ssize_t])


def python_function(function: Any) -> Callable[..., Any]:
    """The Python function that a Numba function was compiled from, which checks its indices."""
    return getattr(function, "py_func", function)


class UserFunction(NamedTuple):
    """A function and how it is called."""

    function: Callable[..., Any]
    vectorized: bool  # called with many rows rather than one
    writes: bool  # writes features to its second argument rather than returns them
    d: int
    width: int  # number of features; 0 if not yet known

    def __call__(self, X: Array) -> Array:
        """The features of rows X (n, d), in Python. The function may change X."""
        function = python_function(self.function)
        if self.writes:
            F = np.full((len(X), self.width), np.nan)  # features that are not written remain NaN
            for x, out in [(X, F)] if self.vectorized else zip(X, F, strict=True):
                function(x, out)
            return F
        if self.vectorized:
            return self._check_features(function(X), len(X))
        return np.stack([self._row_features(function, x) for x in X])

    def _check_features(self, F: Any, n: int) -> Array:
        F = np.asarray(F, dtype=np.float64)
        F = F[:, None] if F.ndim == 1 else F
        if F.ndim != 2 or len(F) != n:
            raise ValueError(
                f"the function must return a row of features for each of {n} rows, it returned "
                f"shape {F.shape}"
            )
        if F.shape[1] != (self.width or F.shape[1]):
            raise ValueError(
                f"the function returned {F.shape[1]} features for {n} rows, and {self.width} for "
                "the first row"
            )
        return F

    def _row_features(self, function: Callable[..., Any], x: Array) -> Array:
        before = x.tolist()[:20]
        f = np.asarray(function(x), dtype=np.float64).reshape(-1)
        if len(f) != (self.width or len(f)):
            raise ValueError(
                f"the function returned {len(f)} features for the row {before}, and {self.width} "
                "for the first row"
            )
        return f


class BlockFunction:
    """A user's function with an address at which kernels call it, for a block of rows at a time.

    If Numba cannot compile it, kernels call Python, and a warning gives the reason.
    """

    def __init__(self, function: UserFunction):
        self.function = function
        self.compiled: Any = None
        self._raised: BaseException | None = None
        try:
            from .._kernels._numba.custom import compile_block

            self.compiled = compile_block(*function)
            self.address = self.compiled.address
        except Exception as reason:  # of any kind: the function itself may be correct
            self._callback = BLOCK_SIGNATURE(self._call_python)  # takes the GIL for each block
            self.address = ctypes.cast(self._callback, ctypes.c_void_p).value
            self._warn(reason)

    def _warn(self, reason: Exception) -> None:
        function = self.function.function
        name, text = getattr(function, "__name__", repr(function)), " ".join(str(reason).split())
        warnings.warn(
            f"Custom: Numba cannot compile {name}, so that Python runs it for each block of rows, "
            f"on one thread at a time. The reason: {type(reason).__name__}: {text[:500]}",
            UserWarning,
            stacklevel=3,
        )

    def __call__(self, X: Array) -> Array:
        return self.function(X)

    def _call_python(self, x: int, m: int, d: int, out: int, ld: int) -> int:
        try:
            width = self.function.width
            X = np.ctypeslib.as_array((ctypes.c_double * (m * d)).from_address(x)).reshape(m, d)
            F = np.lib.stride_tricks.as_strided(
                np.ctypeslib.as_array((ctypes.c_double * ((m - 1) * ld + width)).from_address(out)),
                (m, width),
                (8 * ld, 8),
            )
            F[:] = self.function(X.copy())
        except BaseException as problem:
            # It cannot be raised through a kernel. The features become NaN, and `check_finite`
            # raises it. This frame is dropped, since the memory of X and F will be freed.
            here = problem.__traceback__
            self._raised = problem.with_traceback(None if here is None else here.tb_next)
            return 0
        return 1

    def failure(self) -> BaseException | None:
        """The exception that the function raised when a kernel called it, once; else None."""
        raised, self._raised = self._raised, None
        return raised


@lru_cache(maxsize=64)
def compiled_once(function: UserFunction) -> BlockFunction:
    """The block function; the same function is compiled once."""
    return BlockFunction(function)


class Custom(Basis):
    """Any Python function as a basis, compiled by Numba (10.3).

    Parameters
    ----------
    function : callable
        One of

        - f(x): from a row (d,) to a number, a tuple or an array of features,
        - f(x, out): the same, but the features are written to `out`, which saves an allocation per
          row,
        - with `vectorized`, f(X) or f(X, out) of some rows at a time, from (n, d) to (n, D).

        It receives a copy of its row or rows; features that it does not write to `out` are NaN. An
        index out of bounds of x or `out` is an IndexError, also in compiled code, but not in other
        compiled functions that it calls: give those `boundscheck=True`. Numba treats global
        variables as constants. A function that it cannot compile is run by Python, for a block of
        rows at a time, on one thread at a time, and a warning gives the reason.
    n_features : int, optional
        The number of features D. It can be omitted if the function returns them; then it is that of
        the first row.
    vectorized : bool, default=False

    Attributes
    ----------
    n_features_out_ : int
        The number of features D.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (d,)
        The names of the columns, if X had names.

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

    n_features_out_: int

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        n_features: int | None = None,
        vectorized: bool = False,
    ):
        self.function = function
        self.n_features = n_features
        self.vectorized = vectorized

    def _fit(self, X: Rows, y: Any) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {self.function!r}")
        check_choice(self.vectorized, "vectorized", (True, False))
        if self.n_features is not None:
            check_number(self.n_features, "n_features", low=1, whole=True)
        writes = self._takes_out()
        if writes and self.n_features is None:
            raise ValueError(
                "n_features must be given for a function that writes to its second argument"
            )
        width = int(self.n_features) if writes and self.n_features is not None else 0
        call = UserFunction(self.function, bool(self.vectorized), writes, X.shape[1], width)
        F = call(X.take(slice(0, 1)).dense().copy())
        if self.n_features is not None and F.shape[1] != self.n_features:
            raise ValueError(
                f"the function returned {F.shape[1]} features for the first row, n_features is "
                f"{self.n_features}"
            )
        self.n_features_out_ = F.shape[1]
        self._call = call._replace(width=self.n_features_out_)

    def _takes_out(self) -> bool:
        """Whether the function has a second positional argument without a default."""
        try:
            signature = inspect.signature(python_function(self.function))
        except (TypeError, ValueError):  # a built-in function
            return False
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = signature.parameters.values()
        return len([p for p in parameters if p.kind in kinds and p.default is p.empty]) == 2

    def _parts(self) -> list[Part]:
        hashable = isinstance(self._call.function, Hashable)
        block = compiled_once(self._call) if hashable else BlockFunction(self._call)
        address = block.address
        return [Part(BasisKind.CUSTOM, self.n_features_out_, function=block, address=address)]

    def _names(self, names: Iterable[str]) -> list[str]:
        name = getattr(self._call.function, "__name__", "custom")
        name = "custom" if name == "<lambda>" else name
        n = self.n_features_out_
        return [name] if n == 1 else [f"{name}{k}" for k in range(n)]
