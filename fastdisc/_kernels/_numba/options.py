"""JIT options, in one place."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import is_jitted, overload

from . import cache

# Sums may be reordered, which vectorises them, and multiply-adds fused; NaN and infinity keep their
# meaning.
REORDER = {"reassoc", "contract", "nsz"}
# Without reordering, which would undo the rounding in exp. A call that is not inlined stops the
# vectorisation of the loop around it.
EXACT_INLINE = {"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True}

Function = Callable[..., Any]


def _options(parallel: bool, reorder: bool) -> dict[str, Any]:
    fastmath = REORDER if reorder else {"contract"}
    return {"nogil": True, "error_model": "numpy", "parallel": parallel, "fastmath": fastmath}


def jit(parallel: bool = False, reorder: bool = True) -> Callable[[Function], Any]:
    """Decorator: compile, and cache on disk. `reorder`: whether sums may be reordered."""

    def decorate(function: Function) -> Any:
        compiled = njit(**_options(parallel, reorder))(function)
        if is_jitted(compiled):  # not so with NUMBA_DISABLE_JIT
            cache.enable(compiled, function)
        return compiled

    return decorate


def jit_uncached(function: Function) -> Any:
    """Compile a function that is not of this package, unless it is compiled."""
    return function if is_jitted(function) else njit(**_options(False, True))(function)


def callback(signature: Any, function: Function) -> CFunc:
    """Compile a function that is called by its address, and cache it on disk."""
    options = {"error_model": "numpy", "fastmath": REORDER}
    compiled = CFunc(function, normalize_signature(signature), locals={}, options=options)
    cache.enable(compiled, function)
    compiled.compile()
    return compiled


def implements(
    verb: Function, layout: type, reorder: bool = False
) -> Callable[[Function], Function]:
    """Decorator: the implementation of a verb of layouts.py for a layout, given as the type of its
    arguments: np.ndarray, or a NamedTuple."""

    def choose(x: types.Type, *_: types.Type) -> Function | None:
        return chosen if is_type(x, layout) else None

    def decorate(function: Function) -> Function:
        nonlocal chosen
        chosen = function
        # Not strict: the names of the arguments are those of the verb, the annotations differ.
        overload(verb, jit_options={"fastmath": REORDER} if reorder else {}, strict=False)(choose)
        return function

    chosen: Function | None = None
    return decorate


def is_type(x: types.Type, layout: type) -> bool:
    """Whether jitted code is given an argument of a Python type: np.ndarray, or a NamedTuple."""
    if layout is np.ndarray:
        return isinstance(x, types.Array)
    return isinstance(x, types.BaseNamedTuple) and x.instance_class is layout


class Driver(NamedTuple):
    """The loop over chunks, compiled twice.

    The serial version is for forked children, which must not use their parent's thread pool.
    """

    serial: Any
    parallel: Any


def driver(function: Function) -> Driver:
    """Decorator: a driver. The versions get names of their own, by which their caches differ."""

    def compiled(parallel: bool) -> Any:
        name = function.__name__ + "_parallel" * parallel
        code: Any = function
        version = FunctionType(code.__code__, code.__globals__, name)
        version.__qualname__ = name
        return jit(parallel)(version)

    return Driver(compiled(False), compiled(True))
