"""Data as solvers' objectives see them: rows in a layout (`rows.py`), sources of batches
(`source.py`), samples, and class moments. Imports `runtime` and `_kernels` only."""
