"""What a fitted mixture says of rows: memberships, likelihoods, what is expected in the gaps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import Saving
from .._core.likelihood import SoftRows, soft_rows
from .._observed import Observed
from .._penalty.em import State, core_mixture, hidden_rows, lost_by
from .._penalty.mechanisms import Lost
from .._penalty.rows import stored_entries
from .._solver import effective_threads
from .._validation import check_count, like_input, observe, read_table
from .mixture_doubt import tempered


class Told(NamedTuple):
    """What the rows with an observed value say of a mixture, all together."""

    n_rows: int
    log_likelihood: float
    entropy: float  # of the memberships


class FittedMixture(Saving, DensityMixin, BaseEstimator):
    """Everything that needs no more than the fitted attributes."""

    missing_values: Any
    random_state: Any
    n_jobs: Any
    n_features_in_: int
    weights_: np.ndarray
    means_: np.ndarray
    covariances_: np.ndarray
    degrees_of_freedom_: float
    temper_: float
    reference_: np.ndarray
    _mechanism: Any

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest cluster of each row."""
        return self._look(X)[1].labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every cluster for each row: (n_samples, n_components)."""
        return tempered(self._look(X)[1].memberships, self.temper_)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row, gaps included, given that something of it is observed.

        A row of nothing but gaps says nothing: 0.
        """
        return self._scores(*self._look(X))[0]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of a row, of those with an observed value."""
        told = self._told(X)
        return told.log_likelihood / max(told.n_rows, 1)

    def bic(self, X: Any) -> float:
        """Bayesian information criterion; smaller is better. Rows of gaps alone do not count."""
        return self._bic(self._told(X))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion; smaller is better."""
        return 2.0 * self._n_parameters() - 2.0 * self._told(X).log_likelihood

    def icl(self, X: Any) -> float:
        """Integrated completed likelihood: the BIC, plus twice the entropy of the memberships.

        Those are the model's own: ``temper_`` has no part in it.
        """
        told = self._told(X)
        return self._bic(told) + 2.0 * told.entropy

    def sample(self, n_samples: int = 1, *, gaps: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int
        gaps : bool
            Lose values as the mechanism says; otherwise rows are complete.

        Returns
        -------
        X, labels : ndarrays of shape (n_samples, n_features) and (n_samples,)
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        rng = check_random_state(self.random_state)
        sizes = rng.multinomial(n_samples, self.weights_ / self.weights_.sum())
        labels = np.repeat(np.arange(len(sizes)), sizes)
        noise = rng.standard_normal((n_samples, self.n_features_in_))
        if math.isfinite(self.degrees_of_freedom_):
            half = 0.5 * self.degrees_of_freedom_
            noise = noise / np.sqrt(rng.gamma(half, 1.0 / half, noise.shape))
        X = self.means_[labels] + noise * np.sqrt(self._variances()[labels])
        if gaps:
            lost = self._mechanism.probability(X - self.reference_, labels)
            X[rng.random_sample(X.shape) < lost] = np.nan
        return X, labels

    def impute(self, X: Any) -> Any:
        """Fill gaps by what is expected of them, over clusters and mechanism.

        Returns
        -------
        filled : the kind of table that was given (sparse input gives a dense array)
        """
        observed, rows = self._look(X)
        filled, gaps = observed.filled_and_gaps()
        lost = self._lost()
        mean = lost.mean if lost.widths is None else lost.widths.expected
        expected = tempered(rows.memberships, self.temper_) @ (self.reference_ + mean)
        return like_input(np.where(gaps, expected.astype(filled.dtype), filled), X)

    # ------------------------------------------------------------------------------------------

    def _told(self, X: Any) -> Told:
        observed, rows = self._look(X)
        each, some = self._scores(observed, rows)
        shares = rows.memberships[some]
        return Told(int(some.sum()), float(each.sum()), -float(xlogy(shares, shares).sum()))

    def _scores(self, observed: Observed, rows: SoftRows) -> tuple[np.ndarray, np.ndarray]:
        """Log-likelihood of each row, and which rows say something."""
        values, features, per_row = stored_entries(observed)
        each = self._mechanism.log_observed(values, features)
        row = np.repeat(np.arange(observed.n_rows), per_row)
        share, _ = hidden_rows(self.weights_, self._lost(), self._mechanism.has_gaps)
        added = np.bincount(row, each, minlength=observed.n_rows)
        some = per_row > 0
        return np.where(some, rows.log_likelihoods + added - math.log1p(-share), 0.0), some

    def _bic(self, told: Told) -> float:
        return self._n_parameters() * math.log(max(told.n_rows, 1)) - 2.0 * told.log_likelihood

    def _threads(self) -> int:
        return effective_threads(self.n_jobs)

    @property
    def precisions_(self) -> np.ndarray:
        return 1.0 / self.covariances_

    @property
    def precisions_cholesky_(self) -> np.ndarray:
        return 1.0 / np.sqrt(self.covariances_)

    def _variances(self) -> np.ndarray:
        if self.covariances_.ndim == 2:
            return self.covariances_
        return np.repeat(self.covariances_[:, None], self.means_.shape[1], axis=1)

    def _n_parameters(self) -> float:
        k, p = self.means_.shape
        own = self._mechanism.n_parameters(k) if self._mechanism.has_gaps.any() else 0
        return (
            k - 1 + k * p + self.covariances_.size + own + math.isfinite(self.degrees_of_freedom_)
        )

    def _look(self, X: Any) -> tuple[Observed, SoftRows]:
        check_is_fitted(self)
        observed = observe(
            read_table(self, X, reset=False),
            missing_values=self.missing_values,
            reference=self.reference_,
            threads=self._threads(),
            allow_all_missing=True,
        )
        mixture = core_mixture(self._state(), self.reference_)
        return observed, soft_rows(observed.table, mixture, self._threads())

    def _state(self) -> State:
        """As EM left it."""
        freedom = self.degrees_of_freedom_ if math.isfinite(self.degrees_of_freedom_) else 0.0
        return State(
            self.weights_, self.means_, self._variances(), self._mechanism, -math.inf, freedom
        )

    def _lost(self) -> Lost:
        return lost_by(self._state(), self.reference_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # scikit-learn's check of sparse input asks this of whatever has predict_proba.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
