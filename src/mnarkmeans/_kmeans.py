"""MNARKMeans: k-means for data whose missing values lie close to a reference point.

L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + lam sum_{j missing} (mu_lj - c_j)^2 ]

``CentersModel`` is the base class of all estimators of centres.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _core as core
from ._choice import LAMS, choose, references_for
from ._io import Saving
from ._missingness import Missingness
from ._observed import Observed
from ._solver import (
    ALGORITHMS,
    STARTS,
    StartResults,
    assign_rows,
    effective_threads,
    finish,
    model_centers,
    run_starts,
    with_component_start,
)
from ._validation import (
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_lam,
    check_number,
    check_scale,
    is_auto,
    like_input,
    observe,
    warn,
)

try:  # progress bars and the like, from scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:
    CallbackSupportMixin = object

    def with_callbacks(method: Any) -> Any:
        return method


N_INIT = 10  # the default number of starts
Init = Literal["k-means++", "random"] | np.ndarray | Sequence[Sequence[float]] | Callable[..., Any]
ROWS_PER_CLUSTER = 30  # from this number, a cluster of one row is worth a warning
# Rows x features x clusters up to which "auto" makes Hartigan's moves, in the best of the starts.
LARGEST_FOR_HARTIGAN = 5_000_000
N_HARTIGAN = 10


class CentersModel(
    Saving, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Prediction, distances, score and imputation from the fitted centres."""

    cluster_centers_: np.ndarray
    labels_: np.ndarray
    inertia_: float
    loss_path_: Any
    n_iter_: int
    start_losses_: np.ndarray
    lam_: float | np.ndarray
    reference_: np.ndarray
    missingness_: Missingness
    n_features_in_: int
    feature_names_in_: np.ndarray
    _STARTS = STARTS  # by name
    _N_INIT = N_INIT
    # Set by the command line: a function called with the number of starts that have ended, and a
    # mapping from k to its Trial, from which an interrupted search resumes.
    _progress: Callable[[int], None] | None = None
    _known: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Index of the closest centre for each row (n,); missing values allowed."""
        return self._labels_of(self._observe(X))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit and return ``labels_``."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def transform(self, X: Any) -> Any:
        """Square root of the penalised distance of each row to every centre (n, k)."""
        observed = self._observe(X)
        centers = model_centers(observed, self.cluster_centers_[None], self.lam_)
        dtype, threads = observed.dtype, self._threads()
        return core.distances(observed.table, centers, dtype, threads, roots=True)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and return the distances of the rows to the centres."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the penalised loss of X at the fitted centres; larger is better.

        Rows without an observed value are ignored.
        """
        observed = self._observe(X, sample_weight)
        return -finish(observed, self.cluster_centers_, self.lam_, self._threads())[1]

    @overload
    def impute(self, X: np.ndarray) -> np.ndarray: ...
    @overload
    def impute(self, X: Any) -> Any: ...
    def impute(self, X: Any) -> Any:
        """Fill missing values from the centre of the row; observed values stay as they are.

        Returns the kind of table that was given (for sparse input a dense array).
        """
        observed = self._observe(X)
        centers = np.ascontiguousarray(self.cluster_centers_, dtype=np.float64)
        labels = self._labels_of(observed)
        return like_input(core.impute(observed.table, centers, labels, self._threads()), X)

    # ------------------------------------------------------------------------------------------

    def _threads(self) -> int:
        return effective_threads(getattr(self, "n_jobs", None))

    def _starts(self, observed: Any, X: Any, rng: np.random.RandomState) -> np.ndarray:
        """Starting centres (n_init, k, p), by ``init``; on Dask ``observed`` are blocks of rows."""
        k, p = self.n_clusters, observed.n_features
        if isinstance(self.init, str):
            return self._STARTS[self.init](observed, self._n_starts(), k, rng, self._threads())
        if callable(self.init):
            made = [self.init(X, k, random_state=rng) for _ in range(self._n_starts())]
            return np.stack([check_init_centers(centers, k, p) for centers in made])
        if self._n_starts() not in (1, self._N_INIT):
            warn(
                f"Explicit initial centre positions were passed: there is one start, and "
                f"n_init={self.n_init} is not used. Leave n_init out, or set n_init=1.",
                RuntimeWarning,
            )
        return check_init_centers(self.init, k, p)[None]

    def _with_better_starts(
        self, observed: Observed, starts: np.ndarray, lam: Any, centers_of_choice: np.ndarray | None
    ) -> np.ndarray:
        """Of several k-means++ starts, the first is replaced by the centres found with lam, and in
        wide tables the last one by k-means on principal components."""
        if not isinstance(self.init, str) or self.init != "k-means++" or len(starts) == 1:
            return starts
        if centers_of_choice is not None:
            starts = np.concatenate([centers_of_choice[None], starts[1:]])
        return with_component_start(observed, starts, lam, self._threads())

    def _reference(self) -> Any:
        """The reference as given; None is "auto" where lam is, otherwise zero."""
        if self.reference is not None:
            return self.reference
        return "auto" if isinstance(self.lam, str) else 0.0

    def _n_starts(self) -> int:
        return self._N_INIT if isinstance(self.n_init, str) else self.n_init

    def _stopping_rule(self) -> Any:
        return dict(max_iter=self.max_iter, tol=float(self.tol))

    def _check_parameters(self) -> Any:
        check_count("n_clusters", self.n_clusters)
        if not is_auto(self.n_init):
            check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        if isinstance(self.init, str):
            check_choice("init", self.init, tuple(self._STARTS), ", an array or a callable")

    def _choose(
        self, observed: Observed, *, max_iter: int, tol: float
    ) -> tuple[Observed, Any, np.ndarray | None]:
        """The table with its reference, and lam: as given, or chosen from the table; and the
        centres (k, p) found with the choice."""
        features = getattr(self, "feature_names_in_", None)
        lam = check_lam(self.lam, observed.n_features, features)
        given = 1.0 if isinstance(lam, str) else lam
        check_scale(observed.summary, given, observed.reference)
        references = references_for(observed) if is_auto(self._reference()) else None
        if references is None and not isinstance(lam, str):
            return observed, lam, None
        choice = choose(
            observed, self.n_clusters, lams=LAMS if isinstance(lam, str) else [lam],
            references=references, max_iter=max_iter, tol=tol, threads=self._threads(),
        )  # fmt: skip
        self.missingness_ = choice.missingness
        return replace(observed, reference=choice.reference), choice.lam, choice.centers

    def _store_best_start(self, results: StartResults, dtype: Any) -> None:
        """The centres of the best start; their loss is not known yet."""
        best = results.best
        self.cluster_centers_ = results.centers[best].astype(dtype)
        self.n_iter_, self.loss_path_ = int(results.n_iter[best]), results.path(best)
        self.start_losses_ = results.losses

    def _store_loss(self, loss: float, members: np.ndarray) -> None:
        """The loss at the stored centres, and the rows (k,) of each. ``loss_path_`` was computed
        with float64 centres; values below the final loss are raised to it."""
        self.inertia_, self.loss_path_ = loss, np.maximum(self.loss_path_, loss)
        self._warn_of_small_clusters(members)

    def _warn_of_small_clusters(self, members: np.ndarray) -> None:
        """``members`` (k,): rows of each cluster."""
        n_nonempty, rows = np.count_nonzero(members), int(members.sum())
        n_single = int(np.sum(members == 1))
        if n_single and rows >= ROWS_PER_CLUSTER * self.n_clusters:
            warn(
                f"{n_single} of {self.n_clusters} clusters have a single row (of {rows}), possibly "
                "an outlier. Check these rows: leave them out if they are errors, or ask for fewer "
                "clusters.",
                UserWarning,
            )
        if n_nonempty < self.n_clusters:
            lam = np.max(self.lam_)
            pull = f", or lam={lam:g} is so large that centres collapse onto the reference"
            warn(
                f"Number of distinct clusters ({n_nonempty}) found smaller than n_clusters "
                f"({self.n_clusters}). There may be duplicate rows{pull if lam > 0 else ''}.",
                ConvergenceWarning,
            )

    def _observe_to_fit(self, X: Any, sample_weight: Any, n_clusters: int) -> Observed:
        observed = observe(
            X, estimator=self, missing_values=self.missing_values, reference=self._reference(),
            sample_weight=sample_weight, threads=self._threads(),
        )  # fmt: skip
        check_enough_rows(observed.summary, n_clusters)
        return observed

    def _observe(self, X: Any, sample_weight: Any = None) -> Observed:
        check_is_fitted(self)
        observed = observe(
            X, estimator=self, fits=False, missing_values=self.missing_values,
            reference=self.reference_, sample_weight=sample_weight, threads=self._threads(),
        )  # fmt: skip
        check_scale(observed.summary, self.lam_, self.reference_, self.cluster_centers_)
        return observed

    def _labels_of(self, observed: Observed) -> np.ndarray:
        centers = self.cluster_centers_[None]
        return assign_rows(observed, centers, self.lam_, self._threads())[:, 0]

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(repr=False, eq=False)
class MNARKMeans(CentersModel, CallbackSupportMixin):
    """k-means for data with missing values, where values close to a reference go missing.

    A missing value is not imputed: it pulls the centre of its cluster towards the reference, with
    strength ``lam``. ``lam=0`` ignores missing values (k-POD), ``lam=1`` is ordinary k-means on
    data whose missing values are filled with the reference, and without missing values every
    ``lam`` is ordinary k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float, array of shape (n_features,) or "auto", default="auto"
        Penalty for missing values, >= 0, for all features or for each. "auto" chooses it from the
        data by a few more fits: clusters fitted to other rows have to predict blocks of features
        of a row, their values and which are missing, from its other features.
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        The point near which values are likely to be missing. "min" is the smallest observed value
        of each feature, as with a detection limit. "auto" chooses between zero and that, together
        with lam. None is "auto" where lam is "auto", otherwise zero.
    missing_values : float, default=nan
        Code of missing values in dense input, such as 0; NaN is always missing. In sparse input,
        entries that are not stored are missing, and stored zeros are observed.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_features) or callable, \
default="k-means++"
        Starting centres: k-means++ on mean-filled data (in wide tables the last start is k-means
        on principal components), random rows (mean-filled), given ones (then there is one start),
        or a function ``init(X, n_clusters, random_state)``.
    n_init : int or "auto", default=10
        Number of starts ("auto" is 10); the one with the smallest loss wins.
    max_iter : int, default=300
        Maximum number of iterations per start.
    tol : float, default=1e-5
        A start ends when an iteration lowers the loss by no more than this share of it.
    algorithm : {"auto", "lloyd", "hartigan"}, default="auto"
        "hartigan" adds moves of single rows after Lloyd's loop, which never raise the loss; "auto"
        does so unless the table is large, for about the ten best starts.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same result, bit for bit, for every ``n_jobs``.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores (at most ``OMP_NUM_THREADS``).
    verbose : int, default=0
        Above 0, a line per start; the logger "mnarkmeans" gets it (INFO) in any case.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres; never NaN.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, as ``predict`` gives it.
    inertia_ : float
        The penalised loss; ``-score(X)``.
    n_iter_, loss_path_ : int, ndarray of shape (n_iter_,)
        Iterations of the best start, and the loss after each of them; it never rises.
    start_losses_ : ndarray of shape (n_init,)
        Final loss of every start.
    lam_, reference_ : float or ndarray of shape (n_features,), ndarray of shape (n_features,)
        The penalty and the reference that were used.
    missingness_ : Missingness
        Where lam or reference were chosen: the candidates with their scores, the choice and the
        reasons. See :class:`mnarkmeans.missingness.Missingness`.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if the input had any.

    Notes
    -----
    A row without observed values does not count, and gets the label of the centre nearest to the
    reference. A feature that is never observed has the reference as its centre. A cluster that
    becomes empty is relocated to the row with the largest loss. With ``lam=0``, a centre keeps its
    place in features that no row of the cluster observes.

    References
    ----------
    Guan, X. (2026). MNAR-k-means: a k-means clustering for data missing not at random with
    magnitude-decaying probability.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> nan = np.nan
    >>> X = [[5.0, nan], [5.2, 0.9], [4.8, nan], [nan, 5.1], [0.8, 4.9], [nan, 5.0]]
    >>> model = MNARKMeans(n_clusters=2, lam=1.0, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[2]), bool(model.labels_[0] == model.labels_[3])
    (True, False)
    >>> model.impute([[5.1, nan]]).round(1)
    array([[5.1, 0.3]])
    """

    n_clusters: int = 8
    _: KW_ONLY
    lam: Any = "auto"
    reference: Any = None
    missing_values: float = math.nan
    init: Init = "k-means++"
    n_init: int | Literal["auto"] = N_INIT
    max_iter: int = 300
    tol: float = 1e-5
    algorithm: Literal["auto", "lloyd", "hartigan"] = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Array, nested list, pandas or polars frame, CSR or CSC matrix; missing values allowed.
        y : ignored
        sample_weight : array of shape (n_samples,), default=None
            Weight of each row; weight 2 is the same as the row twice.

        Returns
        -------
        self : MNARKMeans
        """
        self._check_parameters()
        observed = self._observe_to_fit(X, sample_weight, self.n_clusters)
        starts = self._starts(observed, X, check_random_state(self.random_state))
        observed, lam, centers_of_choice = self._choose(observed, **self._stopping_rule())
        check_scale(observed.summary, lam, observed.reference, starts)
        self._solve(observed, starts, lam, centers_of_choice)
        return self

    # ------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("algorithm", self.algorithm, ("auto", *ALGORITHMS))

    def _n_hartigan(self, observed: Observed, n_starts: int) -> int:
        """In how many of the starts Lloyd's loop is followed by moves of single rows."""
        if self.algorithm != "auto":
            return n_starts if self.algorithm == "hartigan" else 0
        work = observed.n_rows * observed.n_features * self.n_clusters
        return N_HARTIGAN if work <= LARGEST_FOR_HARTIGAN else 0

    @with_callbacks
    def _solve(
        self, observed: Observed, starts: np.ndarray, lam: Any,
        centers_of_choice: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        starts = self._with_better_starts(observed, starts, lam, centers_of_choice)
        progress, task = self._progress, None
        if hasattr(self, "_skl_callbacks"):
            task = self._init_callback_context(max_subtasks=len(starts))
            progress = self._subtasks(task.call_on_fit_task_begin(estimator=self))
        results = run_starts(
            observed, starts, lam, threads=self._threads(), verbose=self.verbose,
            n_hartigan=self._n_hartigan(observed, len(starts)), progress=progress,
            **self._stopping_rule(),
        )  # fmt: skip
        if task is not None:
            task.call_on_fit_task_end(estimator=self)
        self.lam_, self.reference_ = lam, observed.reference
        self._store_best_start(results, observed.dtype)
        self.labels_, loss, members = finish(observed, self.cluster_centers_, lam, self._threads())
        self._store_loss(loss, members)

    def _subtasks(self, task: Any) -> Callable[[int], None]:
        """Report starts that have ended as subtasks of a task of scikit-learn's callbacks."""
        reported = 0

        def progress(ended: int) -> None:
            nonlocal reported
            while reported < ended:
                start = task.subcontext(task_name="start")
                start.call_on_fit_task_begin(estimator=self)
                start.call_on_fit_task_end(estimator=self)
                reported += 1

        return progress
