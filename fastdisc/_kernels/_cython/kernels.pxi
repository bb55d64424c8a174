"""The kernels, compiled ahead of time: this source is built once for each SIMD level (baseline.pyx,
v3.pyx, v4.pyx).

A pass cuts the rows into chunks, and a chunk into blocks that stay in cache. Each kernel checks its
codes, describes the pass in a struct that all threads share, and runs a function for each chunk.
The contract of the functions is in fastdisc/_kernels/contract.py.
"""
cimport numpy as cnp
from libc.math cimport INFINITY, NAN, isfinite, sqrt
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport nth_element, partial_sort, sort
from libcpp.pair cimport pair

import numpy as np

cnp.import_array()

# The type of products.
ctypedef fused real:
    float
    double

include "enums.pxi"
include "buffers.pxi"
include "threads.pxi"
include "vector_math.pxi"
include "layouts.pxi"
include "losses.pxi"
include "sweep.pxi"
include "hessian_product.pxi"
include "sweep_many.pxi"
include "outputs.pxi"
include "matmul.pxi"
include "expand.pxi"
include "moments.pxi"
include "quadratic_scores.pxi"
include "coordinate_descent.pxi"
include "weighted_row_sum.pxi"
include "online_rules.pxi"
include "online_schedule.pxi"
include "online_rows.pxi"
include "online_speculation.pxi"
include "online.pxi"
include "pair_losses.pxi"
include "online_pairs.pxi"
include "rank_tree.pxi"
include "ranking.pxi"
include "query_sweep.pxi"
include "query_hessian.pxi"
include "pair_loss.pxi"
include "metrics.pxi"

# What contract.py and basis_program.py also say: a test compares them.
CONSTANTS = {"MAX_SLOPE": MAX_SLOPE, "MIN_SCALE": MIN_SCALE, "TABLE_COLUMNS": TABLE_COLUMNS}
