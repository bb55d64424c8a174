def coordinate_descent(H, q, l1, w, double tol, int max_iter):
    """Coordinate descent on a quadratic model of (10.23) or (10.31) with an L1 penalty."""
    cdef const double[:, ::1] H_ = H
    cdef const double[::1] q_ = q, l1_ = l1
    cdef double[::1] w_ = w
    cdef Py_ssize_t n = w_.shape[0], i, j
    cdef int passes = 0
    cdef bint full = True
    cdef double old, z, new, largest
    cdef double[::1] slope = np.asarray(H) @ w - q   # H w - q, updated with each weight
    with nogil:
        while passes < max_iter:
            passes += 1
            largest = 0
            for j in range(n):
                old = w_[j]
                if H_[j, j] <= 0 or not (full or old != 0):
                    continue
                z = H_[j, j] * old - slope[j]
                new = (z - l1_[j] if z > l1_[j] else z + l1_[j] if z < -l1_[j] else 0) / H_[j, j]
                if new != old:
                    w_[j] = new
                    largest = max(largest, H_[j, j] * (new - old) * (new - old))
                    for i in range(n):
                        slope[i] += (new - old) * H_[j, i]
            if largest <= tol:
                if full:
                    break
                full = True   # the nonzero weights have converged: a pass over all weights
            else:
                full = False
    return passes
