"""MNARKMeans: k-means for data with gaps that lie close to a reference point.

L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + lam sum_{j missing} (mu_lj - c_j)^2 ]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from ._base import N_INIT, CentersModel, Init
from ._observed import Observed
from ._solver import ALGORITHMS, finish, run_starts
from ._validation import check_choice, check_loss

try:  # progress bars and the like, from scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:
    CallbackSupportMixin = object

    def with_callbacks(method: Any) -> Any:
        return method


# Up to so many rows x features x clusters, ten starts with Hartigan's moves reach lower losses than
# thirty of Lloyd's in less time; beyond, they gain next to nothing.
LARGEST_FOR_HARTIGAN = 5_000_000
N_HARTIGAN = 10  # starts that "auto" follows up by Hartigan's moves, the best ones


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
        data, at the cost of a few more fits: clusters fitted to other rows have to predict blocks
        of features of a row, their values and which are missing, from its other features.
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        The point near which values are likely to be missing. "min" takes the smallest observed
        value of each feature, as for data with a detection limit. "auto" chooses between zero
        and that, together with lam. None is "auto" where lam is "auto", and
        zero where lam is a number.
    missing_values : float, default=nan
        How missing values are marked in dense input: NaN, or a number such as 0. NaN is always
        missing. In sparse input, entries that are not stored are missing, and stored zeros are
        observed.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_features) or callable, \
default="k-means++"
        Starting centres: k-means++ on mean-filled data (in tables with many features, the last
        start is k-means on leading principal components), random rows (gaps filled with means),
        given ones (then there is one start), or a function ``init(X, n_clusters, random_state)``.
    n_init : int or "auto", default=10
        Number of starts ("auto" is 10); the one with the smallest loss wins.
    max_iter : int, default=300
        Most iterations of a start.
    tol : float, default=1e-5
        A start ends when an iteration lowers the loss by no more than this share of it.
    algorithm : {"auto", "lloyd", "hartigan"}, default="auto"
        "hartigan" follows Lloyd's loop by moves of single rows, which leads to optima that are
        never worse; "auto" does so unless the table is large, for about the ten best starts.
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
        The penalised loss, by direct differences; ``-score(X)``.
    n_iter_ : int
        Iterations of the best start.
    loss_path_ : ndarray
        The loss after every one of the ``n_iter_`` iterations of the best start; it never rises.
    start_losses_ : ndarray of shape (n_init,)
        Final loss of every start.
    lam_ : float or ndarray of shape (n_features,)
        The penalty that was used.
    missingness_ : Missingness
        Where lam or reference were chosen: the candidates with their scores, what was taken and
        why. See :class:`mnarkmeans.missingness.Missingness`.
    reference_ : ndarray of shape (n_features,)
        The reference that was used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the input had any.

    Notes
    -----
    A row without any observed value takes no part in the centres and counts for nothing in the
    loss; its label is that of the centre nearest to the reference. A feature that is never observed
    has the reference as its centre. A cluster that becomes empty takes the row that costs most.
    With ``lam=0``, a centre keeps its place in features that no row of the cluster observes.

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
            Array, nested list, pandas or polars frame, CSR or CSC matrix; gaps allowed.
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
        observed, lam, found = self._choose(observed, **self._stopping_rule())
        check_loss(observed, lam, starts)
        self._solve(observed, starts, lam, found)
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
        self, observed: Observed, starts: np.ndarray, lam: Any, found: np.ndarray | None = None
    ) -> None:
        starts = self._with_better_starts(observed, starts, lam, found)
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

        def judge(centers: np.ndarray) -> tuple[float, np.ndarray]:
            self.labels_, loss, members = finish(observed, centers, lam, self._threads())
            return loss, members

        self._keep(results, observed.dtype, judge)

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
