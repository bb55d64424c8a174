"""How the rows are divided: blocks that stay in cache, and chunks with partial sums of their own.

A grid is a function of shapes and types alone, never of the number of threads.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .contract import Grid, QueryGrid

MAX_CHUNKS = 64  # with this many, 16 threads are still balanced in the last tenth of a sweep
# The partial sums of a chunk are cleared, filled, and read again when they are merged: a chunk
# needs enough rows to be worth that.
MIN_CHUNK_ROWS, MIN_CHUNK_ROWS_HESSIAN = 128, 512
MAX_PARTIAL_SUM_BYTES = 64 * 2**20  # of all chunks together
MAX_MOMENT_BYTES = 24 * 2**20  # the same, of class moments
MAX_QUEUE_BYTES = 16 * 2**20  # of one thread's queues of rows, of class moments
L1_BYTES, L2_BYTES = 32 * 1024, 256 * 1024


def _whole_blocks(n: int, chunks: int, block: int) -> int:
    """Rows of a chunk: n rows in about `chunks` chunks of whole blocks."""
    rows = -(-n // chunks)
    return -(-rows // block) * block


@lru_cache(1024)
def row_grid(
    shape: tuple[int, int],
    itemsize: int,
    K: int = 1,
    order: int = 1,
    stored: int | None = None,
    hessian_blocks: int | None = None,
) -> Grid:
    """Blocks and chunks of a sweep over rows.

    `stored` is the number of stored values of sparse rows. A Hessian has K (K + 1) / 2 blocks
    unless `hessian_blocks` says otherwise.
    """
    n, d = shape
    width = d if stored is None else stored // n
    # One weight row: a block in L1 is read twice at no cost. More weight rows: longer blocks, which
    # amortise the update of G. A Hessian needs a scaled copy of the block, and many rows so that
    # its sums stay in registers.
    cache = L1_BYTES // max(1, order) if K == 1 or order == 2 else L2_BYTES
    rows = cache // max(1, width * itemsize)
    block = min(256, max(48 if order == 2 else 32, rows // 16 * 16))
    blocks = K * (K + 1) // 2 if hessian_blocks is None else hessian_blocks
    size = K * (d + 1) + (blocks * (d + 1) ** 2 if order == 2 else 0)
    if stored is not None:
        worthwhile = stored * K // (16 * size)
    else:
        worthwhile = n // (max(MIN_CHUNK_ROWS_HESSIAN, 4 * d) if order == 2 else MIN_CHUNK_ROWS)
    affordable = max(2, MAX_PARTIAL_SUM_BYTES // (8 * size))
    chunks = max(1, min(MAX_CHUNKS, max(4, worthwhile), affordable, -(-n // block)))
    return Grid(block, _whole_blocks(n, chunks, block))


def moments_grid(
    shape: tuple[int, int], itemsize: int, sums: int, columns: int, groups: int
) -> Grid:
    """Blocks and chunks of `class_moments`.

    `sums` counts the numbers besides the scatter, which has `groups` matrices of `columns` columns.
    A block is also the buffer of a group: wide matrices do not fit in L2, and long buffers reduce
    memory traffic.
    """
    n, _ = shape
    block = (256 if columns <= 64 else 512) if itemsize == 1 else 64 if columns <= 64 else 128
    while block > 16 and groups * block * columns * 8 > MAX_QUEUE_BYTES:
        block //= 2
    size = sums + groups * columns**2
    worthwhile = max(4, n // max(MIN_CHUNK_ROWS_HESSIAN, block))
    affordable = max(2, MAX_MOMENT_BYTES // (8 * size))
    chunks = max(1, min(MAX_CHUNKS, worthwhile, affordable, -(-n // block)))
    return Grid(block, _whole_blocks(n, chunks, block))


def query_grid(starts: np.ndarray, size: int = 1, min_rows: int = 1) -> QueryGrid:
    """Chunks of whole queries with about equal numbers of rows, at least `min_rows`; each chunk
    has `size` partial sums."""
    affordable = max(2, MAX_PARTIAL_SUM_BYTES // (8 * size))
    chunks = min(MAX_CHUNKS, affordable, max(2, int(starts[-1]) // min_rows))
    cuts = np.linspace(0, starts[-1], chunks + 1).astype(np.int64)
    return QueryGrid(64, np.unique(np.searchsorted(starts, cuts)))


def pair_grid(rows: int, pairs: int) -> Grid:
    """Chunks of given pairs. Each has a partial sum for every row, so that few are affordable."""
    affordable = MAX_PARTIAL_SUM_BYTES // (8 * max(1, rows))
    worthwhile = min(pairs // max(1, rows), pairs // MIN_CHUNK_ROWS_HESSIAN)
    chunks = max(1, min(MAX_CHUNKS // 4, worthwhile, affordable))
    return Grid(1, -(-pairs // chunks))
