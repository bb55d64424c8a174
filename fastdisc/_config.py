"""Which backend runs, on how many threads, and what this installation has."""

from __future__ import annotations

import os
import platform
import threading
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Integral

from . import _kernels

_KEEP = object()
_defaults = {"backend": "auto", "n_threads": None}
_overrides: ContextVar[dict] = ContextVar("fastdisc_config", default={})  # noqa: B039 (never mutated)

# Below this many multiply-adds, 0.25 ms on one core, a second thread is not worth its risk: it takes 20 us to wake one that is
# ready, but milliseconds where other programs have the CPUs, and each call waits for all of its threads.
SMALL = 1_000_000

_forked = False
_active = 0
_lock = threading.Lock()


def _after_fork():
    global _forked, _active, _limited, _lock
    _forked, _active, _limited, _lock = True, 0, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check(backend, n_threads):
    if backend not in (None, "auto", *_kernels.BACKENDS):
        raise ValueError(f"backend must be 'auto' or one of {', '.join(map(repr, _kernels.BACKENDS))}, got {backend!r}")
    whole = isinstance(n_threads, Integral) and not isinstance(n_threads, bool)
    if n_threads is not None and not (whole and n_threads >= 1):
        raise ValueError(f"n_threads must be None or a whole number >= 1, got {n_threads!r}")


def get_config():
    """The settings in force here.

    Examples
    --------
    >>> import fastdisc
    >>> fastdisc.get_config()
    {'backend': 'auto', 'n_threads': None}
    """
    return _defaults | _overrides.get()


def set_config(*, backend=_KEEP, n_threads=_KEEP):
    """Change the settings for the whole process. What is not given stays as it is.

    Parameters
    ----------
    backend : {"auto", "cython", "numba", "numpy"}, optional
        "auto" takes the fastest that is installed.
    n_threads : int or None, optional
        The most threads to use; None for the CPUs that this process may use.

    Examples
    --------
    >>> import fastdisc
    >>> fastdisc.set_config(n_threads=2)
    >>> fastdisc.set_config(n_threads=None)
    """
    changes = _changes(backend, n_threads)
    _defaults.update(changes)


@contextmanager
def config_context(*, backend=_KEEP, n_threads=_KEEP):
    """Settings for the code in a `with` block, in this thread or task alone.

    Parameters are those of `set_config`.

    Examples
    --------
    >>> import fastdisc
    >>> with fastdisc.config_context(backend="numpy"):
    ...     fastdisc.get_config()["backend"]
    'numpy'
    """
    token = _overrides.set(_overrides.get() | _changes(backend, n_threads))
    try:
        yield
    finally:
        _overrides.reset(token)


def _changes(backend, n_threads):
    changes = {"backend": backend, "n_threads": n_threads}
    changes = {key: value for key, value in changes.items() if value is not _KEEP}
    if changes.get("backend", "auto") is None:
        raise ValueError("backend must be a name; 'auto' takes the fastest that is installed")
    check(changes.get("backend"), changes.get("n_threads"))
    return changes


def kernels(backend=None):
    """The backend's module; None means the setting in force."""
    name = get_config()["backend"] if backend is None else backend
    return _kernels.load(name) if name != "auto" else _fastest()


@cache
def _fastest():
    problems = []
    for name in _kernels.BACKENDS:
        try:
            module = _kernels.load(name)
        except ImportError as problem:
            problems.append(f"{name}: {problem}")
            continue
        if problems:
            warnings.warn(f"fastdisc falls back to its {name} backend ({'; '.join(problems)})", RuntimeWarning, stacklevel=3)
        return module
    raise ImportError("; ".join(problems))


@cache
def cpus():
    """CPUs that this process may use: affinity and cgroup quota."""
    from joblib import cpu_count

    return cpu_count()


@cache
def _openmp():
    """The function that asks OpenMP for its threads; one that says 0 where there is none."""
    try:
        return _kernels.load("cython").openmp_threads
    except (ImportError, ValueError):
        return lambda: 0


def _openmp_limit():
    """What OMP_NUM_THREADS and threadpool_limits allow this thread; a large number where nothing does."""
    limit = _openmp()()
    if limit:
        return limit
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return (int(first) if first.isdecimal() else 0) or 1 << 30


@contextmanager
def threads(n_threads, work):
    """How many threads a call with this many multiply-adds gets; calls that run at the same time share the CPUs.

    Sharing is safe because no result depends on the number of threads.
    """
    global _active
    n = get_config()["n_threads"] if n_threads is None else n_threads
    check("auto", n)
    with _lock:
        _active += 1
        sharing = _active
    try:
        if _forked or work < SMALL:
            yield 1
            return
        limit = _openmp_limit()
        if n is None:
            yield max(1, min(cpus(), limit) // sharing)
        else:
            yield min(n, limit) if limit < cpus() else n  # a limit below the CPUs was set by somebody: it holds
    finally:
        with _lock:
            _active -= 1


@cache
def _thread_pools():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_limited = 0
_limiter = None


@contextmanager
def one_blas_thread():
    """For small linear algebra between sweeps: BLAS threads that wait for work spin, and take the CPUs from our own.

    The limit is the process's: of calls that overlap, the first sets it and the last restores what was.
    """
    global _limited, _limiter
    with _lock:
        _limited += 1
        if _limited == 1:
            _limiter = _thread_pools().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _limited -= 1
            if _limited == 0:
                _limiter.restore_original_limits()


def show_config():
    """Print the version, the backends and why one is missing, SIMD level, threads, BLAS, and Numba's threading layer and cache.

    Examples
    --------
    >>> import fastdisc
    >>> fastdisc.show_config()  # doctest: +ELLIPSIS
    fastdisc ...
    """
    from . import __version__

    lines = [("fastdisc", f"{__version__} on Python {platform.python_version()}, {platform.machine()}")]
    for name in _kernels.BACKENDS:
        try:
            module = _kernels.load(name)
        except (ImportError, ValueError) as problem:
            lines.append((name, f"missing: {problem}"))
            continue
        lines.append((name, "available"))
        if name == "cython":
            openmp = "OpenMP" if module.openmp_threads() else "built without OpenMP: one thread"
            lines[-1] = (name, f"SIMD level {module.SIMD}, {openmp}")
        if name == "numba":
            lines[-1] = (name, _describe_numba(module))
    with threads(None, SMALL) as n:
        why = " (forked child)" if _forked else ""
        lines.append(("threads", f"up to {n}{why}; this process may use {cpus()} CPUs"))
    from threadpoolctl import threadpool_info

    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    found = sorted({f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in blas})
    lines.append(("BLAS", "; ".join(found) or "not loaded"))
    lines.append(("settings", ", ".join(f"{key}={value!r}" for key, value in get_config().items())))
    for key, value in lines:
        print(f"{key:<9} {value}")


def _describe_numba(module):
    import numba

    place = module.jitted.sweep_chunk.stats.cache_path or "no cache"
    return f"{numba.__version__}, threading layer {module.threading_layer()}, cache in {place}"
