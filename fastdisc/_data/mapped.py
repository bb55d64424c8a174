"""Mapped rows: dense rows that stand for features of a basis, which kernels compute by blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from .._kernels.basis_program import Program
from .._kernels.contract import Array, Kernels
from .._kernels.grid import row_grid
from .dense import ArrayRows, DenseRows
from .rows import RowIndex, Rows, slices


class FeatureBasis:
    """What an estimator asks of its parameter `basis`; implemented in `fastdisc.basis`."""

    def fit_clone(self, owner: Any, X: Rows, y: Any = None) -> Self:
        """A clone, fitted to the validated rows of its owner, with its column names."""
        raise NotImplementedError

    def mapped(self, X: Rows, backend: str | None = None) -> MappedRows:
        """Rows that stand for their features."""
        raise NotImplementedError

    def program(self) -> Program:
        """The fitted basis as kernels read it."""
        raise NotImplementedError


class MappedRows(ArrayRows):
    """Features (f(x) - mean) / scale of the rows x, or some of them. The matrix of features is
    never stored: rows are taken of the inputs, columns of the features."""

    layout = "mapped"
    lazy = True
    float32_products = False

    def __init__(
        self,
        inputs: DenseRows,
        program: Program,
        kernels: Kernels,
        names: Callable[[], Any],
        chosen: Array | None = None,
        mean: Array | None = None,
        scale: Array | None = None,
    ):
        self.inputs, self.program, self.kernels, self.names = inputs, program, kernels, names
        self.chosen, self.mean, self.scale = chosen, mean, scale
        self.shape = inputs.shape[0], program.width if chosen is None else len(chosen)

    def _like(self, inputs: DenseRows | None = None, **changes: Any) -> MappedRows:
        fields = {"chosen": self.chosen, "mean": self.mean, "scale": self.scale} | changes
        inputs = self.inputs if inputs is None else inputs
        return MappedRows(inputs, self.program, self.kernels, self.names, **fields)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    @property
    def bytes_per_row(self) -> int:
        return self.shape[1] * 8

    def is_small_dense(self, n_outputs: int) -> bool:
        return False

    def block(self, rows: slice) -> Array:
        return self.take(rows).dense()

    def take(self, rows: RowIndex) -> MappedRows:
        return self._like(self.inputs.take(rows))

    def columns(self, chosen: Array) -> MappedRows:
        columns = np.arange(self.shape[1])[chosen]
        places = columns if self.chosen is None else self.chosen[columns]
        mean = None if self.mean is None else self.mean[columns]
        scale = None if self.scale is None else self.scale[columns]
        return self._like(chosen=np.ascontiguousarray(places, np.int64), mean=mean, scale=scale)

    def gather(self, order: Array, n_threads: int) -> MappedRows:
        return self._like(self.inputs.gather(order, n_threads))

    def standardized(self, mean: Array, scale: Array) -> MappedRows:
        if self.mean is not None and self.scale is not None:
            mean, scale = self.mean + self.scale * mean, self.scale * scale
        return self._like(mean=np.ascontiguousarray(mean), scale=np.ascontiguousarray(scale))

    def to_float64(self) -> Array:
        """The features by the reference implementation."""
        from .._kernels._numpy.basis import features

        F = features(self.program, self.inputs.to_float64())
        F = F if self.chosen is None else F[:, self.chosen]
        return F if self.mean is None else (F - self.mean) / self.scale

    def dense(self) -> Array:
        """The features by the rows' own backend."""
        if not self.shape[0]:
            return np.empty(self.shape)
        return self.kernels.expand(self, row_grid(self.shape, 8), 1)

    def failure(self) -> BaseException | None:
        """An exception that a user's function raised inside a kernel, once; else None."""
        functions: Any = (p.function for p in self.program.parts if p.function is not None)
        return next(filter(None, (function.failure() for function in functions)), None)

    def check_finite(self) -> None:
        failure = self.failure()
        self.inputs.check_finite()
        if failure is not None:
            raise failure
        for rows in slices((self.shape[0], self.program.width), 1 << 20):
            F = self.take(rows).to_float64()
            bad = ~np.isfinite(F)
            if bad.any():
                row, column = divmod(int(bad.argmax()), F.shape[1])
                name = self.names()[column if self.chosen is None else self.chosen[column]]
                inputs = self.inputs.values[rows.start + row].tolist()[:20]
                raise ValueError(
                    f"the basis is not defined for all rows: {name!r} is {F[row, column]} first in "
                    f"row {rows.start + row}, which has {inputs}"
                )
