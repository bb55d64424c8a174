"""The settings of the package: which backend runs, on how many threads, and what is installed."""

from __future__ import annotations

import os
import platform
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Integral
from typing import Any, cast

from . import _kernels
from ._kernels.contract import Kernels
from ._version import __version__

# Below this many multiply-adds, 0.25 ms on one core, a call runs on one thread: waking a second one
# takes 20 us if a CPU is idle, but milliseconds if other processes occupy the CPUs, and each call
# waits for all of its threads.
MIN_PARALLEL_WORK = 1_000_000
NO_LIMIT = 1 << 30

_UNCHANGED: Any = object()
_defaults: dict[str, Any] = {"backend": "auto", "n_threads": None}
_overrides: ContextVar[dict[str, Any]] = ContextVar(
    "fastdisc_config",
    default={},  # noqa: B039 (never mutated)
)


class _ProcessState:
    """What this process has in progress: calls that share the CPUs, and calls that limit BLAS."""

    def __init__(self) -> None:
        self.forked = False
        self.reset()

    def reset(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0  # inside `threads`
        self.blas_limits = 0  # inside `one_blas_thread`
        self.blas_limiter: Any = None

    def after_fork(self) -> None:
        """In a forked child nothing is in progress, and OpenMP may hang if it starts threads."""
        self.forked = True
        self.reset()


_state = _ProcessState()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.after_fork)


def check(backend: str | None, n_threads: int | None) -> None:
    """Check the parameters `backend` and `n_threads` of an estimator or a function."""
    if backend not in (None, "auto", *_kernels.BACKENDS):
        names = ", ".join(map(repr, _kernels.BACKENDS))
        raise ValueError(f"backend must be 'auto' or one of {names}, got {backend!r}")
    if n_threads is None:
        return
    if not isinstance(n_threads, Integral) or isinstance(n_threads, bool) or n_threads < 1:
        raise ValueError(f"n_threads must be None or a whole number >= 1, got {n_threads!r}")


def get_config() -> dict[str, Any]:
    """Return the current settings.

    Returns
    -------
    dict
        The values of `backend` and `n_threads`: those of the innermost `config_context`, else
        those of `set_config`.

    See Also
    --------
    set_config : Change the settings of the process.
    config_context : Change the settings within a `with` block.

    Examples
    --------
    >>> import fastdisc
    >>> fastdisc.get_config()
    {'backend': 'auto', 'n_threads': None}
    """
    return _defaults | _overrides.get()


def set_config(*, backend: str = _UNCHANGED, n_threads: int | None = _UNCHANGED) -> None:
    """Change the settings of the process. Settings that are not given keep their values.

    Parameters
    ----------
    backend : {"auto", "cython", "numba", "numpy"}, optional
        "auto" selects the fastest backend that is installed.
    n_threads : int or None, optional
        The maximum number of threads; None for the number of CPUs that this process may use.

    See Also
    --------
    config_context : Change the settings within a `with` block.

    Examples
    --------
    >>> import fastdisc
    >>> fastdisc.set_config(n_threads=2)
    >>> fastdisc.set_config(n_threads=None)
    """
    _defaults.update(_checked_changes(backend, n_threads))


@contextmanager
def config_context(
    *, backend: str = _UNCHANGED, n_threads: int | None = _UNCHANGED
) -> Iterator[None]:
    """Change the settings within a `with` block, for the current thread or asyncio task only.

    Parameters
    ----------
    backend : {"auto", "cython", "numba", "numpy"}, optional
        "auto" selects the fastest backend that is installed.
    n_threads : int or None, optional
        The maximum number of threads; None for the number of CPUs that this process may use.

    See Also
    --------
    set_config : Change the settings of the process.

    Examples
    --------
    >>> import fastdisc
    >>> with fastdisc.config_context(backend="numpy"):
    ...     fastdisc.get_config()["backend"]
    'numpy'
    """
    token = _overrides.set(_overrides.get() | _checked_changes(backend, n_threads))
    try:
        yield
    finally:
        _overrides.reset(token)


def _checked_changes(backend: str, n_threads: int | None) -> dict[str, Any]:
    """The settings that were given, validated."""
    given: dict[str, Any] = {"backend": backend, "n_threads": n_threads}
    changes = {name: value for name, value in given.items() if value is not _UNCHANGED}
    if changes.get("backend", "auto") is None:
        raise ValueError("backend must not be None; 'auto' selects the fastest that is installed")
    check(changes.get("backend"), changes.get("n_threads"))
    return changes


def kernels(backend: str | None = None) -> Kernels:
    """The kernels of a backend; of the current setting if None."""
    name = get_config()["backend"] if backend is None else backend
    return _kernels.load(name) if name != "auto" else _fastest()


@cache
def _fastest() -> Kernels:
    """The first backend that can be imported, with a warning if it is not the first of all."""
    problems: list[str] = []
    for name in _kernels.BACKENDS:
        try:
            module = _kernels.load(name)
        except ImportError as problem:
            problems.append(f"{name}: {problem}")
            continue
        if problems:
            warnings.warn(
                f"fastdisc falls back to its {name} backend ({'; '.join(problems)})",
                RuntimeWarning,
                stacklevel=3,
            )
        return module
    raise ImportError("; ".join(problems))


@cache
def cpus() -> int:
    """The number of CPUs that this process may use, by affinity and cgroup quota."""
    from joblib import cpu_count

    return cpu_count()


@cache
def _openmp_threads() -> Callable[[], int]:
    """The compiled backend's query for OpenMP's limit; a function that returns 0 without it."""
    try:
        return cast(Any, _kernels.load("cython")).openmp_threads
    except (ImportError, ValueError):
        return lambda: 0


def _openmp_limit() -> int:
    """The number of threads that OMP_NUM_THREADS or threadpool_limits allow this thread."""
    limit = _openmp_threads()()
    if limit:
        return limit
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return (int(first) if first.isdecimal() else 0) or NO_LIMIT


@contextmanager
def threads(n_threads: int | None, work: int) -> Iterator[int]:
    """The number of threads for a call that takes `work` multiply-adds.

    Calls that run at the same time share the CPUs, unless `n_threads` or the setting says how many
    threads to use. No result depends on the number of threads.
    """
    n = get_config()["n_threads"] if n_threads is None else n_threads
    check("auto", n)
    with _state.lock:
        _state.calls += 1
        sharing = _state.calls
    try:
        yield _allowed_threads(n, work, sharing)
    finally:
        with _state.lock:
            _state.calls -= 1


def _allowed_threads(n: int | None, work: int, sharing: int) -> int:
    if _state.forked or work < MIN_PARALLEL_WORK:
        return 1
    limit = _openmp_limit()
    if n is None:
        return max(1, min(cpus(), limit) // sharing)
    # OpenMP's default limit is the number of CPUs; a lower one was set on purpose.
    return min(n, limit) if limit < cpus() else n


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, for small linear algebra between sweeps.

    Idle BLAS threads spin, and occupy the CPUs that the kernels' threads need. The limit applies
    to the whole process. Of overlapping calls, the first sets it and the last restores the
    previous one.
    """
    with _state.lock:
        _state.blas_limits += 1
        if _state.blas_limits == 1:
            _state.blas_limiter = _thread_pools().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _state.lock:
            _state.blas_limits -= 1
            if _state.blas_limits == 0:
                _state.blas_limiter.restore_original_limits()


def show_config() -> None:
    """Print versions, backends, threads and settings.

    For each backend that is not available, the reason is printed; for the compiled one, its SIMD
    level; for Numba, its threading layer and the directory of its cache.

    Examples
    --------
    >>> import fastdisc
    >>> fastdisc.show_config()  # doctest: +ELLIPSIS
    fastdisc ...
    """
    version = f"{__version__} on Python {platform.python_version()}, {platform.machine()}"
    settings = ", ".join(f"{name}={value!r}" for name, value in get_config().items())
    lines = [("fastdisc", version)]
    lines += [(name, _describe_backend(name)) for name in _kernels.BACKENDS]
    lines += [("threads", _describe_threads()), ("BLAS", _describe_blas()), ("settings", settings)]
    for name, text in lines:
        print(f"{name:<9} {text}")


def _describe_backend(name: str) -> str:
    try:
        module: Any = _kernels.load(name)
    except (ImportError, ValueError) as problem:
        return f"missing: {problem}"
    if name == "cython":
        openmp = "OpenMP" if module.openmp_threads() else "built without OpenMP: one thread"
        return f"SIMD level {module.SIMD}, {openmp}"
    if name == "numba":
        return _describe_numba(module)
    return "available"


def _describe_numba(module: Any) -> str:
    import numba

    directory = module.cache_path() or "no cache"
    layer = module.threading_layer()
    return f"{numba.__version__}, threading layer {layer}, cache in {directory}"


def _describe_threads() -> str:
    with threads(None, MIN_PARALLEL_WORK) as n:
        reason = " (forked child)" if _state.forked else ""
        return f"up to {n}{reason}; this process may use {cpus()} CPUs"


def _describe_blas() -> str:
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = {f"{p['internal_api']} {p['version']}, {p['num_threads']} threads" for p in pools}
    return "; ".join(sorted(names)) or "not loaded"
