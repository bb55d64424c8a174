"""The cost of the first use: the import compared with that of NumPy, the first call, and Numba's
compilation with and without its disk cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from measure import best_of

FIRST_CALL = """
import time
import numpy as np
from fastdisc import _kernels
from fastdisc._data.dense import DenseRows
X = DenseRows(np.ones((1000, 8)))
batch = _kernels.Batch(X, np.zeros(1000, np.int32), np.ones(1))
begin = time.perf_counter()
grid = _kernels.row_grid(X.shape, 8)
_kernels.load({backend!r}).sweep(batch, _kernels.RowLoss.LOGISTIC, np.zeros((1, 9)), 1, grid, 1)
print(time.perf_counter() - begin)
"""


def run(code: str, **environment: str) -> str:
    """What a Python program prints, in a process of its own."""
    command, env = [sys.executable, "-c", code], os.environ | environment
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


def first_call(backend: str, **environment: str) -> float:
    """The seconds of the first call of a kernel, with the import of its backend."""
    return float(run(FIRST_CALL.format(backend=backend), **environment))


def main() -> None:
    calls = [lambda: run("import fastdisc"), lambda: run("import numpy")]
    with_us, numpy_alone = best_of(calls, 9)
    lines = [("import fastdisc beyond NumPy's own import", with_us - numpy_alone)]
    lines.append(("first call, Cython", first_call("cython")))
    with tempfile.TemporaryDirectory() as folder:
        for label in (
            "first call, Numba, nothing cached",
            "first call, Numba, from its disk cache",
        ):
            lines.append((label, first_call("numba", NUMBA_CACHE_DIR=folder)))
    for label, seconds in lines:
        print(f"{label:<43} {seconds:.3f} s")


if __name__ == "__main__":
    main()
