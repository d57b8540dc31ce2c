"""MNARMixture: soft clusters, fitted together with how values get lost.

    p(row) = sum_l pi_l prod_{j observed} f_lj(x_ij) (1 - P(missing | x_ij))
                        prod_{j missing} P_lj

with f_lj normal or Student's t. The mechanisms and the EM are `_penalty.mechanisms` and
`_penalty.em`, the way to the best of them is `mixture_fit`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._observed import Observed
from .._penalty.em import Problem, State
from .._penalty.mechanisms import MECHANISMS
from .._penalty.rows import Rows
from .._validation import (
    WarnFor,
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_number,
    check_numbers,
    is_auto,
    observe,
    read_table,
)
from .mixture_doubt import power_of
from .mixture_fit import Wanted, fit_mechanisms, go_on, scores_of, with_reference
from .mixture_rows import FittedMixture

INIT_PARAMS = ("kmeans", "k-means++", "random", "random_from_data")


class MixtureMissingness(NamedTuple):
    """What the fitted mixture says of the gaps.

    mechanism : its name
    parameters : dict of numbers and arrays, values measured from the reference
    log_likelihoods : of each mechanism tried, for the whole table; of one that was far behind after
        a few rounds, as it was then
    scores : the same less the price of the parameters; the largest was taken
    """

    mechanism: str
    parameters: dict[str, Any]
    log_likelihoods: dict[str, float]
    scores: dict[str, float]


class MNARMixture(FittedMixture):
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
    tails : {"auto", "normal", "t"}, default="auto"
        Shape of the clusters: normal, or Student's t, to which values far out do no harm, with the
        degrees of freedom that fit. "auto" takes the likelier one, after its price, where values
        are missing; a complete table gets normal clusters, as in ``GaussianMixture``.
    covariance_type : {"diag", "spherical"}, default="diag"
        Variances of every cluster and feature, or one for each cluster.
    variance_prior : float or "auto", default="auto"
        So many rows of the variance common to all clusters begin every variance ("diag"), which
        keeps clusters that saw few values from being too sure. "auto" finds the number by how
        much the variances differ, and takes 0 on a complete table; 0 is maximum likelihood.
    temper : float or "auto", default="auto"
        The power to which ``predict_proba`` raises memberships before it makes them sum to 1; below
        1 they are less sure. "auto" finds it by fits to the rows in random weights: clusters
        found from few rows are uncertain themselves. 1 on a complete table, and is plain Bayes.
    reference : float, array of shape (n_features,), "min" or "auto", default=0.0
        The point around which "decay" and "threshold" lose values. "auto" takes zero, or the least
        observed values if these look like detection limits.
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
        With Student's t its squared scales.
    precisions_, precisions_cholesky_ : ndarray
        1 over the variances, and over their square roots.
    mechanism_ : str
        The mechanism that was used.
    tails_ : {"normal", "t"}
    degrees_of_freedom_ : float
        Of Student's t; infinite for normal clusters.
    temper_ : float
        The power to which memberships are raised.
    missingness_ : MixtureMissingness
        Its parameters, and the likelihood of every mechanism that was tried.
    converged_ : bool
    n_iter_ : int
    lower_bound_ : float
        Mean log-likelihood of a row in the last round.
    lower_bounds_ : list of float
        The same after every round.
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
    >>> bool(model.predict_proba([[2.5, np.nan]]).max() < 0.99)
    True
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        mechanism: str = "auto",
        tails: Any = "auto",
        covariance_type: str = "diag",
        variance_prior: Any = "auto",
        temper: Any = "auto",
        reference: Any = 0.0,
        missing_values: float = math.nan,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: Any = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.mechanism = mechanism
        self.tails = tails
        self.covariance_type = covariance_type
        self.variance_prior = variance_prior
        self.temper = temper
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit clusters and mechanism.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Array, nested list, pandas or polars frame, CSR or CSC matrix; gaps allowed.
        y : ignored
        sample_weight : array of shape (n_samples,), default=None
            Weight of each row; weight 2 is the same as the row twice. Weights that sum to 1 say
            no more than one row: give survey weights a mean of 1.

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
            allow_auto=True,
            warn_for=WarnFor(getattr(self, "feature_names_in_", None), mechanism=self.mechanism),
        )
        check_enough_rows(observed.n_usable, observed.n_rows, self.n_components, "n_components")
        rng = check_random_state(self.random_state)
        if is_auto(self.reference):
            kept = self.reference_ if self._goes_on() else None
            observed = with_reference(observed, self.n_components, kept, rng, self._threads())
        problem = Problem(
            Rows(observed, self._threads()),
            spherical=self.covariance_type == "spherical",
            reg_covar=float(self.reg_covar),
            prior=self.variance_prior,
        )
        wanted = self._wanted(observed)
        if self._goes_on():
            found = go_on(problem, wanted, self._state())
        else:
            found = fit_mechanisms(problem, wanted, rng)
        self._keep(problem, found, rng)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, and the likeliest cluster of each row."""
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    # ------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components)
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
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_number("reg_covar", self.reg_covar)
        is_yes_or_no = isinstance(self.verbose, bool)
        check_count("verbose", int(self.verbose) if is_yes_or_no else self.verbose, least=0)
        if self._goes_on() and len(self.means_) != self.n_components:
            raise ValueError(
                f"warm_start goes on from the last fit, which has n_components={len(self.means_)}; "
                f"got {self.n_components}. Set warm_start=False to begin anew."
            )
        if self.weights_init is not None:
            weights = check_numbers("weights_init", self.weights_init)
            if weights.shape != (self.n_components,) or not (weights >= 0).all():
                raise ValueError(
                    f"weights_init must be {self.n_components} numbers >= 0; "
                    f"got {self.weights_init!r}."
                )
            if not math.isclose(weights.sum(), 1.0, abs_tol=1e-6):
                raise ValueError(f"weights_init must sum to 1; got {weights.sum():g}.")

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "means_")

    def _wanted(self, observed: Observed) -> Wanted:
        means, weights = self.means_init, self.weights_init
        if means is not None:
            names = "means_init", "n_components"
            means = check_init_centers(means, self.n_components, observed.n_features, names)
        if weights is not None:
            weights = np.asarray(weights, dtype=np.float64)
        return Wanted(
            self.n_components, self.mechanism, self.tails, self.init_params, weights, means,
            self.n_init, self.max_iter, self.tol, self.verbose,
        )  # fmt: skip

    def _keep(self, problem: Problem, found: dict[str, State], rng: Any) -> None:
        n = problem.rows.n_rows
        values = {name: state.bound * n for name, state in found.items()}
        scores = scores_of(problem, found)
        self.mechanism_ = max(scores, key=scores.__getitem__)
        state = found[self.mechanism_]
        self._mechanism = state.mechanism.finished()
        self.weights_, self.means_ = state.weights, state.means
        spherical = self.covariance_type == "spherical"
        self.covariances_ = state.variances[:, 0].copy() if spherical else state.variances
        self.tails_ = "t" if state.freedom > 0 else "normal"
        self.degrees_of_freedom_ = state.freedom if state.freedom > 0 else math.inf
        auto = self.temper == "auto"
        self.temper_ = power_of(problem, state, rng) if auto else float(self.temper)
        self.reference_ = problem.reference
        self.converged_, self.n_iter_ = state.converged, len(state.bounds)
        self.lower_bound_, self.lower_bounds_ = state.bound, list(state.bounds)
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
