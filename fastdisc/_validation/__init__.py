"""Input validation: user arrays, labels, queries, folds and parameters become what the data layer
asks for, or a ValueError that names what is wrong and where.

Imports `_data` and what is below it; `check_rows` imports `basis` when an estimator has one.
"""
