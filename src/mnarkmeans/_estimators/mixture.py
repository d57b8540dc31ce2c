"""MNARMixture: soft clusters, fitted together with how values get lost.

    p(row) = sum_l pi_l prod_{j observed} N(x_ij; mu_lj, v_lj) (1 - P(missing | x_ij))
                        prod_{j missing} P_lj

The mechanisms and the EM are `_penalty.mechanisms` and `_penalty.em`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core.likelihood import SoftRows, soft_rows
from .._data.frames import like_input
from .._data.observed import Observed
from .._data.validation import (
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_number,
    observe,
    read_table,
)
from .._penalty.choice import first_fits, sample_rows
from .._penalty.em import Problem, State, core_mixture, hidden_rows
from .._penalty.evidence import DOUBT
from .._penalty.mar import gain_of_complete_features
from .._penalty.mechanisms import MECHANISMS, finished
from .._penalty.mixture import stored_entries
from .._solver.solve import finish
from .._solver.starts import STARTS
from .._solver.threads import effective_threads

INIT_PARAMS = ("kmeans", "k-means++", "random", "random_from_data")
KMEANS_STARTS = 10  # k-means fits for every start of the mixture
SHORT_ROUNDS = 5  # from every first partition, before only the best goes on


class MixtureMissingness(NamedTuple):
    """What the fitted mixture says of the gaps.

    mechanism : its name
    parameters : dict of numbers and arrays, values measured from the reference
    log_likelihoods : of each mechanism tried, for the whole table
    scores : the same less the price of the parameters; the largest was taken
    """

    mechanism: str
    parameters: dict[str, Any]
    log_likelihoods: dict[str, float]
    scores: dict[str, float]


class MNARMixture(DensityMixin, BaseEstimator):
    """Gaussian mixture for data with gaps, fitted together with how values get lost.

    Every row belongs to every cluster with a probability, and a gap is evidence too: of the value
    that may have been there, or of the cluster that loses such values. On complete data this is
    scikit-learn's ``GaussianMixture``, whose names and habits it has.

    Parameters
    ----------
    n_components : int, default=1
        Number of clusters.
    mechanism : {"auto", "mcar", "decay", "threshold", "limit", "class"}, \
default="auto"
        How values get lost: by chance ("mcar"), with probability c exp(-t x^2) around the
        reference ("decay"), where \\|x\\| is below a threshold ("threshold"), below a
        soft limit of the feature, Phi((c - x) / zeta) ("limit"), at a rate of each cluster and
        feature ("class"). "auto" fits them all and takes the likeliest, after
        the price of its parameters.
    covariance_type : {"diag", "spherical"}, default="diag"
        Variances of every cluster and feature, or one for each cluster.
    reference : float, array of shape (n_features,) or "min", default=0.0
        The point around which "decay" and "threshold" lose values.
    missing_values : float, default=nan
        How gaps are marked in dense input. In sparse input whatever is not stored is a gap.
    tol : float, default=1e-3
        EM ends when the mean log-likelihood of a row moves by less.
    reg_covar : float, default=1e-6
        Added to the variances.
    max_iter : int, default=100
        Most rounds of EM.
    n_init : int, default=1
        Number of starts; the likeliest wins.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        First partition: k-means fits with gaps (lam = 0, 1/2 and 1, of which the likeliest goes
        on), rows nearest to k-means++ centres or to random rows, or random memberships.
    weights_init : array of shape (n_components,), default=None
        Starting weights.
    means_init : array of shape (n_components, n_features), default=None
        Starting means; the first partition is then that of the nearest mean.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same result for every ``n_jobs``.
    warm_start : bool, default=False
        Go on from the last fit.
    verbose : int, default=0
        Above 0, a line per start; above 1, a line per round.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, n_features)
        Of all values, lost ones included.
    covariances_ : ndarray of shape (n_components, n_features), or (n_components,) if spherical
    precisions_, precisions_cholesky_ : ndarray
        1 over the variances, and over their square roots.
    mechanism_ : str
        The mechanism that was used.
    missingness_ : MixtureMissingness
        Its parameters, and the likelihood of every mechanism that was tried.
    converged_ : bool
    n_iter_ : int
    lower_bound_ : float
        Mean log-likelihood of a row in the last round.
    reference_ : ndarray of shape (n_features,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    Rows without any observed value take no part in the fit, and the likelihood is that of a row
    given that something of it is observed. A feature without gaps has no part in the mechanism.

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
    >>> model.predict_proba([[2.5, np.nan]]).max() < 0.99
    np.True_
    """

    def __init__(
        self,
        n_components=1,
        *,
        mechanism="auto",
        covariance_type="diag",
        reference=0.0,
        missing_values=math.nan,
        tol=1e-3,
        reg_covar=1e-6,
        max_iter=100,
        n_init=1,
        init_params="kmeans",
        weights_init=None,
        means_init=None,
        random_state=None,
        warm_start=False,
        verbose=0,
        n_jobs=None,
    ):
        self.n_components = n_components
        self.mechanism = mechanism
        self.covariance_type = covariance_type
        self.reference = reference
        self.missing_values = missing_values
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X, y=None, sample_weight=None):
        """Fit clusters and mechanism.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Array, nested list, pandas or polars frame, CSR or CSC matrix; gaps allowed.
        y : ignored
        sample_weight : array of shape (n_samples,), default=None
            Weight of each row; weight 2 is the same as the row twice.

        Returns
        -------
        self : MNARMixture
        """
        self._check_parameters()
        observed = observe(
            read_table(self, X, reset=not self._goes_on()),
            missing_values=self.missing_values,
            reference=self.reference,
            sample_weight=sample_weight,
            threads=self._threads(),
            warn=True,
            names=getattr(self, "feature_names_in_", None),
        )
        check_enough_rows(observed, self.n_components)
        problem = Problem(
            observed,
            spherical=self.covariance_type == "spherical",
            reg_covar=float(self.reg_covar),
            threads=self._threads(),
        )
        self._keep(problem, self._fit_mechanisms(problem))
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, and the likeliest cluster of each row."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def predict(self, X):
        """The likeliest cluster of each row."""
        return self._look(X)[1].labels

    def predict_proba(self, X):
        """Probability of every cluster for each row: (n_samples, n_components)."""
        return self._look(X)[1].memberships

    def score_samples(self, X):
        """Log-likelihood of each row, gaps included, given that something of it is observed."""
        observed, rows = self._look(X)
        values, features, per_row = stored_entries(observed)
        each = self._mechanism.log_observed(values, features)
        row = np.repeat(np.arange(observed.n_rows), per_row)
        lost = self._mechanism.lost(self.means_ - self.reference_, self._variances())
        share, _ = hidden_rows(self.weights_, lost, self._mechanism.has_gaps)
        added = np.bincount(row, each, minlength=observed.n_rows)
        return rows.log_likelihoods + added - math.log1p(-share)

    def score(self, X, y=None):
        """Mean log-likelihood of a row."""
        return float(self.score_samples(X).mean())

    def bic(self, X):
        """Bayesian information criterion; smaller is better."""
        n = self._n_rows(X)
        return -2.0 * n * self.score(X) + self._n_parameters() * math.log(n)

    def aic(self, X):
        """Akaike's information criterion; smaller is better."""
        return -2.0 * self._n_rows(X) * self.score(X) + 2.0 * self._n_parameters()

    def icl(self, X):
        """Integrated completed likelihood: the BIC, plus twice the entropy of the memberships."""
        shares = self.predict_proba(X)
        return self.bic(X) - 2.0 * float(xlogy(shares, shares).sum())

    def sample(self, n_samples=1, *, gaps=False):
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
        X = self.means_[labels] + noise * np.sqrt(self._variances()[labels])
        if gaps:
            lost = self._mechanism.probability(X - self.reference_, labels)
            X[rng.random_sample(X.shape) < lost] = np.nan
        return X, labels

    def impute(self, X):
        """Fill gaps by what is expected of them, over clusters and mechanism.

        Returns
        -------
        filled : the kind of table that was given (sparse input gives a dense array)
        """
        observed, rows = self._look(X)
        filled, gaps = observed.filled_and_gaps()
        lost = self._mechanism.lost(self.means_ - self.reference_, self._variances())
        expected = rows.memberships @ (self.reference_ + lost.mean)
        return like_input(np.where(gaps, expected.astype(filled.dtype), filled), X)

    # ------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
        check_choice("mechanism", self.mechanism, ("auto", *MECHANISMS))
        check_choice("covariance_type", self.covariance_type, ("diag", "spherical"))
        check_choice("init_params", self.init_params, INIT_PARAMS)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_number("reg_covar", self.reg_covar)
        if self.weights_init is not None:
            weights = np.asarray(self.weights_init, dtype=np.float64)
            if weights.shape != (self.n_components,) or not (weights >= 0).all():
                raise ValueError(
                    f"weights_init must be {self.n_components} numbers >= 0; "
                    f"got {self.weights_init!r}."
                )
            if not math.isclose(weights.sum(), 1.0, abs_tol=1e-6):
                raise ValueError(f"weights_init must sum to 1; got {weights.sum():g}.")

    def _threads(self) -> int:
        return effective_threads(self.n_jobs)

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "means_")

    def _names(self, problem: Problem) -> list[str]:
        """The mechanisms to try."""
        if self.mechanism != "auto":
            return [self.mechanism]
        rows = problem.rows
        if rows.missing_weight <= 0 or rows.magnitudes.mean_square <= 0:
            return ["mcar"]
        at_reference = rows.least[rows.has_gaps].min() <= 1e-6
        return [name for name in MECHANISMS if not (name == "threshold" and at_reference)]

    def _fit_mechanisms(self, problem: Problem) -> dict[str, State]:
        names = self._names(problem)
        if self._goes_on():
            return {name: self._run(problem, [self._last_state(problem, name)]) for name in names}
        rng = check_random_state(self.random_state)
        found: dict[str, State] = {}
        for start in range(self.n_init):
            firsts = [problem.sums_of(shares) for shares in self._partitions(problem, rng)]
            for name in names:
                state = self._run(problem, [self._begin(problem, sums, name) for sums in firsts])
                if self.verbose:
                    print(f"start {start + 1}, {name}: {state.n_iter} rounds, {state.bound:.6f}")
                if name not in found or state.bound > found[name].bound:
                    found[name] = state
        return found

    def _begin(self, problem: Problem, sums, name: str) -> State:
        state = problem.begin(sums, name)
        if self.means_init is not None:
            state = state._replace(means=self._means_init(problem.observed))
        if self.weights_init is not None:
            state = state._replace(weights=np.asarray(self.weights_init, dtype=np.float64))
        return state

    def _run(self, problem: Problem, states: list[State]) -> State:
        if len(states) > 1:
            rounds = min(SHORT_ROUNDS, self.max_iter)
            states = [list(problem.run(s, max_iter=rounds, tol=self.tol))[-1] for s in states]
        state = max(states, key=lambda one: one.bound)
        rounds = problem.run(state, max_iter=self.max_iter - state.n_iter, tol=self.tol)
        for state in rounds:
            if self.verbose > 1:
                print(f"  round {state.n_iter}: {state.bound:.6f}")
        return state

    def _means_init(self, observed: Observed) -> np.ndarray:
        try:
            return check_init_centers(self.means_init, self.n_components, observed.n_features)
        except ValueError as error:
            raise ValueError(str(error).replace("init must", "means_init must")) from None

    def _partitions(self, problem: Problem, rng) -> list[np.ndarray]:
        """First memberships (n, k) to begin with, one or several."""
        observed, k, threads = problem.observed, self.n_components, self._threads()
        if self.means_init is not None:
            fits = [(self._means_init(observed), 0.0)]
        elif self.init_params == "random":
            shares = rng.random_sample((observed.n_rows, k))
            return [shares / shares.sum(axis=1, keepdims=True)]
        elif self.init_params == "kmeans":
            starts = STARTS["k-means++"](observed, KMEANS_STARTS, k, rng, threads)
            sample = sample_rows(observed, max(200, 20 * k), threads)
            found = first_fits(sample, starts, max_iter=300, tol=1e-5, threads=threads)
            found = found if problem.rows.missing_weight > 0 else found[:1]
            fits = [(fit.centers + observed.reference, fit.lam) for fit in found]
        else:
            way = {"k-means++": "k-means++", "random_from_data": "random"}[self.init_params]
            fits = [(STARTS[way](observed, 1, k, rng, threads)[0], 0.0)]
        labels = [finish(observed, centers, lam, threads)[0] for centers, lam in fits]
        return [np.eye(k)[own] for own in labels]

    def _last_state(self, problem: Problem, name: str) -> State:
        means, variances = self.means_, self._variances()
        if name == self.mechanism_:
            return State(self.weights_, means, variances, self._mechanism, -math.inf)
        lost = self._mechanism.lost(means - self.reference_, variances)
        rows = soft_rows(
            problem.observed.table,
            core_mixture(self.weights_, means, variances, lost),
            self._threads(),
        )
        return problem.begin(problem.sums_of(rows.memberships), name)

    def _keep(self, problem: Problem, found: dict[str, State]) -> None:
        n, k = problem.rows.n_rows, self.n_components
        values = {name: state.bound * n for name, state in found.items()}
        scores = {
            name: values[name] - 0.5 * math.log(max(n, 2.0)) * state.mechanism.n_parameters(k)
            for name, state in found.items()
        }
        if len(found) > 1:
            rows = problem.rows
            scores["mcar"] += DOUBT + gain_of_complete_features(
                rows.table.source, rows.has_gaps, rows.gaps_per_row, rows.weights
            )
        self.mechanism_ = max(scores, key=scores.__getitem__)
        state = found[self.mechanism_]
        self._mechanism = finished(state.mechanism)
        self.weights_, self.means_ = state.weights, state.means
        spherical = self.covariance_type == "spherical"
        self.covariances_ = state.variances[:, 0].copy() if spherical else state.variances
        self.reference_ = problem.reference
        self.converged_, self.n_iter_ = state.converged, state.n_iter
        self.lower_bound_ = state.bound
        self.missingness_ = MixtureMissingness(
            self.mechanism_, state.mechanism.parameters(), values, scores
        )
        if not state.converged:
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} rounds. Raise max_iter or tol, "
                "or look for rows that are the same and for features without spread.",
                ConvergenceWarning,
                stacklevel=3,
            )

    @property
    def precisions_(self):
        return 1.0 / self.covariances_

    @property
    def precisions_cholesky_(self):
        return 1.0 / np.sqrt(self.covariances_)

    def _variances(self) -> np.ndarray:
        if self.covariances_.ndim == 2:
            return self.covariances_
        return np.repeat(self.covariances_[:, None], self.means_.shape[1], axis=1)

    def _n_parameters(self) -> float:
        k, p = self.means_.shape
        own = self._mechanism.n_parameters(k) if self._mechanism.has_gaps.any() else 0
        return k - 1 + k * p + self.covariances_.size + own

    @staticmethod
    def _n_rows(X) -> int:
        return X.shape[0] if hasattr(X, "shape") else len(X)

    def _look(self, X) -> tuple[Observed, SoftRows]:
        check_is_fitted(self)
        observed = observe(
            read_table(self, X, reset=False),
            missing_values=self.missing_values,
            reference=self.reference_,
            threads=self._threads(),
            allow_all_missing=True,
        )
        lost = self._mechanism.lost(self.means_ - self.reference_, self._variances())
        mixture = core_mixture(self.weights_, self.means_, self._variances(), lost)
        return observed, soft_rows(observed.table, mixture, self._threads())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # scikit-learn's check of sparse input asks this of whatever has predict_proba.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
