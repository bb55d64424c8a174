"""Solvers: functions of an objective. Each takes an objective and a start W (K, d+1) and returns a
`Result`. Imports the objectives' protocol, `runtime` and `_kernels`."""
