"""What linear and quadratic discriminant analysis share: covariances of Gaussian classes from their
moments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from .._data.moments import Moments
from .._data.rows import Rows
from .._kernels import MomentKind
from .._kernels.contract import Array
from .._solvers import closed_form
from .._validation.parameters import check_choice, check_number
from .base import FromMoments


class GaussianFromMoments(FromMoments):
    """Gaussian classes whose covariances are those of the moments, possibly shrunk, or come from
    another estimator."""

    solver: str
    shrinkage: Any
    covariance_estimator: Any
    store_covariance: bool
    tol: float
    means_: Array
    priors_: Array

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        self._require_moments("partial_fit")
        return super().partial_fit(X, y, classes, sample_weight)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self._require_moments("forget")
        return super().forget(X, y, sample_weight)

    def merge(self, other: FromMoments) -> Self:
        self._require_moments("merge")
        return super().merge(other)

    partial_fit.__doc__ = FromMoments.partial_fit.__doc__
    forget.__doc__ = FromMoments.forget.__doc__
    merge.__doc__ = FromMoments.merge.__doc__

    def _require_moments(self, method: str) -> None:
        if self.covariance_estimator is not None:
            raise ValueError(
                f"{method} does not support covariance_estimator, which needs all rows at once"
            )

    @property
    def _kind(self) -> MomentKind:
        return MomentKind.QUARTIC if self.shrinkage == "auto" else MomentKind.SCATTER

    def _collect(
        self, X: Rows, r: Array, s: Array, K: int, parts: int = 1, **options: Any
    ) -> Moments:
        moments = super()._collect(X, r, s, K, parts, **options)
        if self.covariance_estimator is None:
            return moments
        if parts > 1:
            self._require_moments("cross_val_from_moments")
        if X.is_sparse:
            raise ValueError("covariance_estimator needs dense X")
        found = [
            clone(self.covariance_estimator).fit(X.take(np.flatnonzero(r == k)).dense())
            for k in range(K)
        ]
        if not all(hasattr(estimator, "covariance_") for estimator in found):
            name = type(self.covariance_estimator).__name__
            raise ValueError(f"{name} does not have a covariance_ attribute")
        S = [n * estimator.covariance_ for n, estimator in zip(moments.n, found, strict=True)]
        return moments._replace(S=np.stack(S))

    def _covariance_of(self, n: float, S: Array) -> Array:
        """The covariance from the sums of products S of rows of weight n."""
        if self.shrinkage == "auto":
            return closed_form.ledoit_wolf(n, S)
        return S / n if self.shrinkage is None else closed_form.shrink(S / n, self.shrinkage)

    def _check_shared(self, solvers: tuple[str, ...]) -> None:
        check_choice(self.solver, "solver", solvers)
        is_number = self.shrinkage not in ("auto", None)
        if is_number and check_number(self.shrinkage, "shrinkage", low=0) > 1:
            raise ValueError(
                f"shrinkage must be a number from 0 to 1, 'auto' or None, got {self.shrinkage!r}"
            )
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotImplementedError("shrinkage not supported with 'svd' solver: use 'eigen'")
        if self.solver == "svd" and self.covariance_estimator is not None:
            raise ValueError(
                "covariance_estimator is not supported with solver='svd'; use solver='eigen'"
            )
        if self.shrinkage is not None and self.covariance_estimator is not None:
            raise ValueError("covariance_estimator and shrinkage: only one of the two can be set")
        check_choice(self.store_covariance, "store_covariance", (True, False))
        check_number(self.tol, "tol", low=0)
