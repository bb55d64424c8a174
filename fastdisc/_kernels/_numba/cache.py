"""The disk cache of compiled functions, which is keyed by the sources of all kernels.

Numba's own cache compares the file of the function that is called. Here functions call each other
across files, so that the stamp covers all of them: a hash of every source of the kernels.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

FOLDER = Path(__file__).parent
PACKAGE = __name__.rsplit(".", 2)[0]  # of the kernels


@cache
def source_stamp() -> str:
    """A hash of the sources that jitted code is made of; OSError if they are not files."""
    digest = hashlib.sha256()
    shared = [FOLDER.parent / name for name in ("contract.py", "enums.py", "basis_program.py")]
    for path in [*sorted(FOLDER.glob("*.py")), *shared]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class CacheFile(IndexDataCacheFile):
    """One file per specialisation, named by a hash of sources and signature.

    Numba numbers the files and keeps an index of them, which several processes may write at the
    same time; without an index there is nothing to get out of step.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: str):
        super().__init__(cache_path, filename_base, source_stamp)
        self._base = filename_base

    def _name(self, key: Any) -> str:
        signature = hashlib.sha256(repr((numba.__version__, key)).encode()).hexdigest()[:24]
        return f"{self._base}.{self._source_stamp}.{signature}.nbc"

    def save(self, key: Any, data: Any) -> None:
        self._remove_stale()
        self._save_data(self._name(key), (key, data))

    def load(self, key: Any) -> Any:
        try:
            stored, data = self._load_data(self._name(key))
        except OSError:
            return None
        return data if stored == key else None

    def flush(self) -> None:
        for path in Path(self._cache_path).glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _remove_stale(self) -> None:
        """Delete files of other sources; no other package caches in this folder."""
        for path in Path(self._cache_path).glob("*.nb[ic]"):
            if self._source_stamp not in path.name:
                with contextlib.suppress(OSError):  # another process may have been faster
                    path.unlink()


class SourceCache(FunctionCache):
    """Numba's cache of a function, with its choice of folder, and with the stamp of all sources.

    Raises RuntimeError, as Numba does, if no folder can be written to.
    """

    def __init__(self, function: Any):
        super().__init__(function)
        try:
            stamp = source_stamp()
        except OSError as reason:
            raise RuntimeError(f"cannot cache {function}: its sources are not files") from reason
        self._cache_file = CacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return super().load_overload(sig, target_context) if is_own(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        if is_own(sig):
            super().save_overload(sig, data)


def is_own(sig: Any) -> bool:
    """Whether a specialisation is made of the package's sources alone.

    Layouts and losses that are registered at run time have types of their own, and sources that
    the stamp does not cover.
    """
    return all(map(_is_own_type, getattr(sig, "args", sig)))


def _is_own_type(kind: types.Type) -> bool:
    if isinstance(kind, types.BaseNamedTuple):
        own = kind.instance_class
        module = sys.modules.get(own.__module__)
        if not own.__module__.startswith(PACKAGE + "."):
            return False
        if getattr(module, own.__name__, None) is not own:  # made at run time
            return False
    if isinstance(kind, types.BaseTuple):
        return all(map(_is_own_type, kind))
    plain = types.Number, types.Boolean, types.Array, types.Omitted, types.CPointer, types.NoneType
    return isinstance(kind, plain)


def enable(compiled: Any, function: Any) -> None:
    """Give a dispatcher or a C callback the disk cache, if there is a folder for it."""
    with contextlib.suppress(RuntimeError):
        compiled._cache = SourceCache(function)
