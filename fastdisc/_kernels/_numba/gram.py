"""The innermost loop of Hessians and scatter matrices."""

from __future__ import annotations

from ..contract import Array
from .options import jit


@jit()
def weighted_gram(P: Array, Q: Array, c: Array, m: int, H: Array) -> None:
    """H += sum_i c_i p_i p_i', on and above the diagonal; P has the m rows p_i as its columns, Q is
    a buffer like P"""
    # With a block transposed, each entry of H is a sum over contiguous memory, and eight of them
    # stay in registers. With rows as rows LLVM keeps H in memory, and loops from the diagonal on
    # run in their scalar remainder (32 columns: 137 ns a row, this way 35).
    D = H.shape[0]
    for j in range(D):
        for i in range(m):
            Q[j, i] = c[i] * P[j, i]
    for a in range(0, D, 4):
        for b in range(a, D, 2):
            s0, s1, s2, s3, t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(m):
                x, y = P[b, i], P[b + 1, i]
                q0, q1, q2, q3 = Q[a, i], Q[a + 1, i], Q[a + 2, i], Q[a + 3, i]
                s0 += q0 * x
                t0 += q0 * y
                s1 += q1 * x
                t1 += q1 * y
                s2 += q2 * x
                t2 += q2 * y
                s3 += q3 * x
                t3 += q3 * y
            H[a, b] += s0
            H[a, b + 1] += t0
            H[a + 1, b] += s1
            H[a + 1, b + 1] += t1
            H[a + 2, b] += s2
            H[a + 2, b + 1] += t2
            H[a + 3, b] += s3
            H[a + 3, b + 1] += t3
