"""What it costs to start: the import beyond NumPy's own, the first call, and Numba's compilation with and without its cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from measure import best_of

CALL = """
import time, numpy as np
from fastdisc import _kernels
X, r = np.ones((1000, 8)), np.zeros(1000, np.int32)
begin = time.perf_counter()
_kernels.load({backend!r}).sweep(X, 1, r, np.ones(1), _kernels.NO_OFFSET, np.zeros((1, 9)), 1, _kernels.grid(X.shape, 8), 1)
print(time.perf_counter() - begin)
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ | environment
    ).stdout


def first_call(backend, **environment):
    return float(run(CALL.format(backend=backend), **environment))


def main():
    with_us, numpy_alone = best_of([lambda: run("import fastdisc"), lambda: run("import numpy")], 9)
    print(f"import fastdisc beyond NumPy's own import   {with_us - numpy_alone:.3f} s")
    print(f"first call, Cython                          {first_call('cython'):.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        print(f"first call, Numba, nothing cached           {first_call('numba', NUMBA_CACHE_DIR=folder):.3f} s")
        print(f"first call, Numba, from its disk cache      {first_call('numba', NUMBA_CACHE_DIR=folder):.3f} s")


if __name__ == "__main__":
    main()
