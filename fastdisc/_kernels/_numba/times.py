"""Sparse rows times a matrix."""

from numba import prange

from .options import drivers, jit


@jit()
def times_rows(X, B, lo, hi, Z):
    """Rows lo to hi of Z = X B"""
    data, indices, indptr = X
    for i in range(lo, hi):
        z = Z[i]
        z[:] = 0
        for t in range(indptr[i], indptr[i + 1]):
            v, b = B.dtype.type(data[t]), B[indices[t]]
            for k in range(len(z)):
                z[k] += v * b[k]


def times_driver(X, B, chunk, chunks, Z):
    for c in prange(chunks):
        times_rows(X, B, c * chunk, min(len(Z), c * chunk + chunk), Z)


DRIVERS = drivers(times_driver)
