"""What naive Bayes models with linear scores share."""

from __future__ import annotations

from numbers import Real
from typing import Any, NoReturn

import numpy as np

from .. import special
from .._base import LinearClassifier, Posteriors, fitted
from .._data.moments import Moments
from .._data.outputs import outputs
from .._data.rows import Rows
from .._kernels import Activation, MomentKind
from .._kernels.contract import Array
from .._solvers.closed_form import log_priors
from .._validation.arrays import check_rows
from .._validation.parameters import check_choice, check_number
from .base import FromMoments


class LinearNaiveBayes(Posteriors, FromMoments, LinearClassifier):
    """Naive Bayes with scores that are linear in the features. Subclasses define `_densities`."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any
    priors_: Array
    coef_: Array
    intercept_: Array
    class_count_: Array
    feature_count_: Array
    _kind = MomentKind.SUMS
    _joint_weights: Array  # (K, d+1)

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log P(C_k) + log p(x | C_k), up to a term that is the same for all classes.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to score.

        Returns
        -------
        log_probabilities : array of shape (N, K)
            In the order of `classes_`.
        """
        fitted(self)
        X = check_rows(self, X, reset=False)
        return self._linear_outputs(X, Activation.IDENTITY, self._joint_weights)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the posterior probabilities.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (N, d)
            Rows to classify.

        Returns
        -------
        log_probabilities : array of shape (N, K)
            In the order of `classes_`.
        """
        return special.log_softmax(self.predict_joint_log_proba(X))

    @property
    def class_prior_(self) -> Array:
        """The prior probabilities, (K,)."""
        return self.priors_

    def _outputs(self, X: Any, activation: Activation) -> Array:
        fitted(self)
        X = check_rows(self, X, reset=False)
        W = np.column_stack([self.intercept_, self.coef_])
        return self._linear_outputs(X, activation, W)

    def _linear_outputs(self, X: Rows, activation: Activation, W: Array) -> Array:
        return outputs(X, activation, W, backend=self.backend, n_threads=self.n_threads)

    def _check_parameters(self) -> None:
        if isinstance(self.alpha, Real):
            check_number(self.alpha, "alpha", low=0)
        else:
            alpha = np.asarray(self.alpha)
            if not (alpha.ndim == 1 and (alpha >= 0).all()):
                raise ValueError(
                    f"alpha must be a number >= 0, or one for each column, got {self.alpha!r}"
                )
        for name in ("force_alpha", "fit_prior"):
            check_choice(getattr(self, name), name, (True, False))

    def _class_shares(self, moments: Moments) -> Array:
        K = len(moments.n)
        return super()._class_shares(moments) if self.fit_prior else np.full(K, 1 / K)

    def _given_priors(self) -> Any:
        return self.class_prior

    def _smoothing(self, d: int) -> Array:
        """alpha, as a number or (d,)."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and len(alpha) != d:
            raise ValueError(f"alpha has {len(alpha)} numbers, X has {d} columns")
        return alpha if self.force_alpha else np.maximum(alpha, 1e-10)

    def _densities(
        self, n: Array, counts: Array, alpha: Array
    ) -> tuple[dict[str, Array], Array, Array]:
        """Fitted attributes, weights (K, d) and intercepts (K,) from the weights n (K,) and the
        sums of features `counts` (K, d) of the classes."""
        raise NotImplementedError

    def _solve(self, moments: Moments, classes: Array, priors: Array) -> dict[str, Any]:
        n, counts = moments.n, moments.M
        found, W, w0 = self._densities(n, counts, self._smoothing(counts.shape[1]))
        logs = log_priors(priors)
        coef, intercept = W, w0 + logs
        if len(classes) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return found | {
            "class_count_": n,
            "feature_count_": counts,
            "class_log_prior_": logs,
            "priors_": priors,
            "coef_": coef,
            "intercept_": intercept,
            "_joint_weights": np.column_stack([w0 + logs, W]),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class CountNaiveBayes(LinearNaiveBayes):
    """Naive Bayes for counts, or other features that are not negative."""

    @property
    def decision_function(self) -> NoReturn:  # type: ignore[override]
        """Not available, as in scikit-learn's models of counts: the estimator checks take a
        `decision_function` to mean that negative features are accepted."""
        raise AttributeError(
            f"{type(self).__name__} has no decision_function: use predict_joint_log_proba"
        )

    def _collect(
        self, X: Rows, r: Array, s: Array, K: int, parts: int = 1, **options: Any
    ) -> Moments:
        if X.has_negative():
            raise ValueError(f"Negative values in data passed to {type(self).__name__} (input X)")
        return super()._collect(X, r, s, K, parts, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
