"""MNARMixture: soft clusters, fitted together with the missingness mechanism.

    p(row) = sum_l pi_l prod_{j observed} f_lj(x_j) (1 - P(missing | x_j)) prod_{j missing} P_lj

with f_lj normal or Student's t, and P_lj the probability that feature j is missing in cluster l.
`_em` has the mechanisms, the EM and the choice between mixtures.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ._em.em import Parameters, hidden_rows, missing_of, posteriors
from ._em.fit import MixtureFit, fit, temper_of, tempered
from ._em.mechanisms import MECHANISMS, entries
from ._io import Saving
from ._observed import Observed
from ._solver import effective_threads
from ._validation import (
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_number,
    check_numbers,
    is_auto,
    like_input,
    observe,
)

INIT_PARAMS = ("kmeans", "k-means++", "random", "random_from_data")


class MixtureMissingness(NamedTuple):
    """The fitted missingness mechanism."""

    mechanism: str
    parameters: dict[str, Any]  # numbers and arrays; values are measured from the reference
    log_likelihoods: dict[str, float]  # of the whole table, for each mechanism that was compared
    scores: dict[str, float]  # the same minus log(n) / 2 for each parameter; the largest is chosen

    def __repr__(self) -> str:
        head = f"{self.mechanism}; scores (log-likelihood minus log(n) / 2 per parameter):"
        ranked = sorted(self.scores.items(), key=lambda item: -item[1])
        return "\n".join([head, *(f"{name:>12}  {score:.2f}" for name, score in ranked)])


@dataclass(repr=False, eq=False)
class MNARMixture(Saving, DensityMixin, BaseEstimator):
    """Gaussian mixture for data with missing values, fitted with the missingness mechanism.

    Every row belongs to every cluster with a probability; missing values are informative too. On
    complete data this is scikit-learn's ``GaussianMixture`` (diag, spherical).

    Parameters
    ----------
    n_components : int, default=1
        Number of clusters.
    mechanism : {"auto", "mcar", "decay", "threshold", "limit", "class"}, default="auto"
        Missing at random; with probability c exp(-t x^2) around the reference; where \\|x\\| is
        below a threshold; below a soft detection limit; at a rate for each cluster and feature.
        "auto" fits them all and chooses by BIC.
    tails : {"auto", "normal", "t"}, default="auto"
        Normal clusters, or Student's t with 4 degrees of freedom, which outliers affect less.
        "auto" takes the likelier; normal clusters on complete data.
    covariance_type : {"diag", "spherical"}, default="diag"
        A variance for every cluster and feature, or one for each cluster.
    variance_prior : float or "auto", default="auto"
        Weight, in rows, of a prior that draws the variances of a feature together ("diag").
        "auto" estimates it, and is 0 on a complete table; 0 is maximum likelihood.
    temper : float or "auto", default="auto"
        The power to which ``predict_proba`` raises posteriors, below 1 where few rows make them
        overconfident. "auto" estimates it by a bootstrap; 1 is plain Bayes.
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        The point near which values go missing in "decay" and "threshold". "auto": zero or the
        smallest observed values, by BIC. None is "auto" if the mechanism is, otherwise zero.
    missing_values : float, default=nan
        The code of missing values in dense input; in sparse input what is not stored is missing.
    tol, reg_covar, max_iter, n_init, weights_init, means_init, warm_start, verbose
        As for ``GaussianMixture``, but ``reg_covar`` is the smallest variance where values are
        missing, n_init="auto" is 1, and with ``means_init`` the first partition is that of the
        nearest mean. The logger "mnarkmeans" gets the lines of ``verbose`` in any case.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        First partition: k-means with missing values (the best of lam = 0, 1/2 and 1), rows nearest
        to k-means++ centres or to random rows, or random memberships.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same result for every ``n_jobs``.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : ndarrays
        As for ``GaussianMixture``; means are of all values, missing ones included, and covariances
        are squared scales if the clusters are Student's t.
    mechanism_ : str
    tails_ : {"normal", "t"}
    degrees_of_freedom_ : float
        4 for Student's t; infinite for normal clusters.
    temper_ : float
    missingness_ : MixtureMissingness
        The parameters of the mechanism, and the likelihood of every one that was compared.
    reference_ : ndarray of shape (n_features,)
    lower_bound_ : float
        What EM maximises, per row: the log-likelihood plus the log prior of variances and of the
        rates of "class".
    lower_bounds_ : list of float
        The same after every iteration. With missing values it never falls.
    converged_, n_iter_, n_features_in_, feature_names_in_
        As for ``GaussianMixture``.

    Notes
    -----
    Rows without observed values do not count, and the likelihood of a row is conditional on one of
    its values being observed. Features without missing values are left out of the mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(0, 1, (100, 2)), rng.normal(5, 1, (100, 2))])
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> X = X[~np.isnan(X).all(axis=1)]
    >>> model = MNARMixture(2, mechanism="mcar", random_state=0).fit(X)
    >>> np.sort(model.means_[:, 0]).round(0)
    array([-0.,  5.])
    >>> bool(model.predict_proba([[2.5, np.nan]]).max() < 0.99)
    True
    """

    n_components: int = 1
    _: KW_ONLY
    mechanism: Literal["auto", "mcar", "decay", "threshold", "limit", "class"] = "auto"
    tails: Literal["auto", "normal", "t"] = "auto"
    covariance_type: Literal["diag", "spherical"] = "diag"
    variance_prior: float | Literal["auto"] = "auto"
    temper: float | Literal["auto"] = "auto"
    reference: Any = None
    missing_values: float = math.nan
    tol: float = 1e-3
    reg_covar: float = 1e-6
    max_iter: int = 100
    n_init: int | Literal["auto"] = 1
    init_params: Literal["kmeans", "k-means++", "random", "random_from_data"] = "kmeans"
    weights_init: Any = None
    means_init: Any = None
    random_state: Any = None
    warm_start: bool = False
    verbose: int = 0
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit clusters and mechanism to an array, frame, or CSR or CSC matrix.

        A row of weight 2 counts as two rows: give survey weights a mean of 1.
        """
        self._check_parameters()
        continues, threads, given = self._continues(), self._threads(), self.reference
        if given is None:
            given = "auto" if self.mechanism == "auto" else 0.0
        observed = observe(
            X, estimator=self, reset=not continues, missing_values=self.missing_values,
            reference=given, sample_weight=sample_weight, threads=threads,
        )  # fmt: skip
        check_enough_rows(observed.summary, self.n_components, "n_components")
        if self.means_init is not None:
            names = "means_init", "n_components"
            check_init_centers(self.means_init, self.n_components, observed.n_features, names)
        rng = check_random_state(self.random_state)
        references = [observed.reference]
        if is_auto(given):
            minimum = observed.summary.minimum
            lowest = np.where(np.isfinite(minimum), minimum, 0.0)
            references = [self.reference_] if continues else [np.zeros_like(lowest), lowest]
        tables = [replace(observed, reference=reference) for reference in references]
        last = self._parameters() if continues else None
        self._store_fit(*fit(self, tables, rng, threads, last), rng)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the most probable cluster of each row."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable cluster of each row."""
        return self._posteriors(X)[1].labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Posterior probability of every cluster for each row: (n_samples, n_components)."""
        return tempered(self._posteriors(X)[1].memberships, self.temper_)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row, missing values included; 0 for rows without any value."""
        return self._log_likelihoods(*self._posteriors(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows with an observed value."""
        total, n_rows, _ = self._totals(X)
        return total / n_rows

    def bic(self, X: Any) -> float:
        """Bayesian information criterion; smaller is better. Rows without values do not count."""
        total, n_rows, _ = self._totals(X)
        return self._n_parameters() * math.log(n_rows) - 2.0 * total

    def aic(self, X: Any) -> float:
        """Akaike's information criterion; smaller is better."""
        return 2.0 * self._n_parameters() - 2.0 * self._totals(X)[0]

    def icl(self, X: Any) -> float:
        """Integrated completed likelihood: BIC plus twice the entropy of the model's posteriors."""
        return self.bic(X) + 2.0 * self._totals(X)[2]

    def sample(self, n_samples: int = 1, *, gaps: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their clusters; with ``gaps``, values go missing by the mechanism."""
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        rng = check_random_state(self.random_state)
        weights, means, variances, mechanism, freedom = self._parameters()
        sizes = rng.multinomial(n_samples, weights / weights.sum())
        labels = np.repeat(np.arange(len(sizes)), sizes)
        noise = rng.standard_normal((n_samples, means.shape[1]))
        if freedom > 0:
            noise = noise / np.sqrt(rng.gamma(0.5 * freedom, 2.0 / freedom, noise.shape))
        X = means[labels] + noise * np.sqrt(variances[labels])
        if gaps:
            rate = mechanism.probability(X - self.reference_, labels)
            X[(rng.random_sample(X.shape) < rate) & mechanism.has_gaps] = np.nan
        return X, labels

    def impute(self, X: Any) -> Any:
        """Fill missing values with their expectation, over clusters and mechanism."""
        observed, rows = self._posteriors(X)
        filled, gaps = observed.filled_and_gaps()
        missing = missing_of(self._parameters(), self.reference_)
        mean = missing.mean if missing.expected is None else missing.expected
        expected = tempered(rows.memberships, self.temper_) @ (self.reference_ + mean)
        return like_input(np.where(gaps, expected.astype(filled.dtype), filled), X)

    @property
    def precisions_(self) -> np.ndarray:
        return 1.0 / self.covariances_

    @property
    def precisions_cholesky_(self) -> np.ndarray:
        return 1.0 / np.sqrt(self.covariances_)

    # ------------------------------------------------------------------------------------------

    def _posteriors(self, X: Any) -> tuple[Observed, Any]:
        check_is_fitted(self)
        observed = observe(
            X, estimator=self, fits=False, missing_values=self.missing_values,
            reference=self.reference_, threads=self._threads(),
        )  # fmt: skip
        return observed, posteriors(observed, self._parameters(), self._threads())

    def _log_likelihoods(self, observed: Observed, rows: Any) -> np.ndarray:
        parameters, mechanism = self._parameters(), self._mechanism
        share, _ = hidden_rows(parameters, missing_of(parameters, self.reference_))
        each = rows.log_likelihoods - math.log1p(-share)
        for number, features, values in entries(observed, mechanism.has_gaps):
            each += np.bincount(number, mechanism.log_observed(values, features), len(each))
        return np.where(observed.weights > 0, each, 0.0)

    def _totals(self, X: Any) -> tuple[float, int, float]:
        """Log-likelihood, rows with an observed value, and the entropy of their posteriors."""
        observed, rows = self._posteriors(X)
        posterior = rows.memberships[observed.weights > 0]
        entropy = -float(xlogy(posterior, posterior).sum())
        return float(self._log_likelihoods(observed, rows).sum()), len(posterior) or 1, entropy

    def _n_parameters(self) -> int:
        of_clusters = len(self.weights_) - 1 + self.means_.size + self.covariances_.size
        return of_clusters + self._mechanism.n_parameters * self._mechanism.has_gaps.any()

    def _parameters(self) -> Parameters:
        freedom = self.degrees_of_freedom_ if math.isfinite(self.degrees_of_freedom_) else 0.0
        variances = self.covariances_.reshape(len(self.weights_), -1)  # spherical: one of each
        variances = np.array(np.broadcast_to(variances, self.means_.shape))
        return Parameters(self.weights_, self.means_, variances, self._mechanism, freedom)

    def _threads(self) -> int:
        return effective_threads(self.n_jobs)

    def _check_parameters(self) -> None:
        for name in ("n_components", "max_iter"):
            check_count(name, getattr(self, name))
        for name in ("tol", "reg_covar"):
            check_number(name, getattr(self, name))
        check_choice("mechanism", self.mechanism, ("auto", *MECHANISMS))
        check_choice("tails", self.tails, ("auto", "normal", "t"))
        for name in ("variance_prior", "temper"):
            value = getattr(self, name)
            if isinstance(value, str):
                check_choice(name, value, ("auto",), " or a number >= 0")
            else:
                check_number(name, value)
        check_choice("covariance_type", self.covariance_type, ("diag", "spherical"))
        check_choice("init_params", self.init_params, INIT_PARAMS)
        if not is_auto(self.n_init):
            check_count("n_init", self.n_init)
        verbose = int(self.verbose) if isinstance(self.verbose, bool) else self.verbose
        check_count("verbose", verbose, minimum=0)
        if self._continues() and len(self.means_) != self.n_components:
            raise ValueError(
                f"warm_start continues the last fit, which has n_components={len(self.means_)}; "
                f"got {self.n_components}. Set warm_start=False for a new fit."
            )
        if self.weights_init is not None:
            weights, k = check_numbers("weights_init", self.weights_init), self.n_components
            is_share = weights.shape == (k,) and bool((weights >= 0.0).all())
            if not is_share or not math.isclose(weights.sum(), 1.0, abs_tol=1e-6):
                raise ValueError(
                    f"weights_init must be {k} numbers >= 0 that sum to 1; "
                    f"got {self.weights_init!r:.80}."
                )

    def _continues(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "means_")

    def _store_fit(self, best: MixtureFit, compared: list[MixtureFit], rng: Any) -> None:
        state = best.result
        parameters = best.em.m_step(state.parameters, state.expectation)
        self._mechanism = parameters.mechanism
        self.mechanism_ = best.mechanism
        self.weights_, self.means_ = parameters.weights, parameters.means
        spherical = self.covariance_type == "spherical"
        self.covariances_ = parameters.variances[:, 0].copy() if spherical else parameters.variances
        self.tails_ = "t" if parameters.freedom > 0 else "normal"
        self.degrees_of_freedom_ = parameters.freedom or math.inf
        auto = self.temper == "auto"
        self.temper_ = temper_of(best.em, parameters, rng) if auto else float(self.temper)
        self.reference_ = best.em.observed.reference
        self.converged_, self.n_iter_ = state.converged, len(state.path)
        self.lower_bound_, self.lower_bounds_ = state.path[-1], list(state.path)
        ranked = sorted(compared, key=lambda run: run.score)  # the last of a mechanism is its best
        self.missingness_ = MixtureMissingness(
            self.mechanism_,
            parameters.mechanism.parameters(),
            {run.mechanism: run.log_likelihood for run in ranked},
            {run.mechanism: run.score for run in ranked},
        )
        if not state.converged:
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} iterations. Raise max_iter or "
                "tol, or look for duplicate rows and for constant features.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # scikit-learn's check of sparse input asks this of whatever has predict_proba.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
