"""Objectives: what a solver may ask of a problem (`protocol.py`), and the classes that answer.
Imports `_data`, `runtime` and `_kernels`."""
