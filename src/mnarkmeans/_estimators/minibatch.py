"""MiniBatchMNARKMeans: a few rows at a time, with averages that forget nothing.

For every centre three sums grow from batch to batch: S of the observed values, C the weight of the
rows that observe a feature, N the weight of all rows. After each batch

    centre  mu = (S + lam (N - C) c) / (C + lam (N - C))

so observed and missing entries keep their separate weights, and lam applies exactly, as if all
rows so far had been fitted at once with the labels they were given.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._data.observed import Observed
from .._data.validation import (
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_lam,
    check_number,
    observe,
    read_table,
)
from .._penalty.choice import likelihood_choice
from .._solver.loss import Stats, update_centers, zero_stats
from .._solver.schedule import Slabs, filled_row, row_costs, sweep
from .._solver.solvers import finish, run_starts
from .._solver.starts import STARTS
from .base import CentersModel

SAMPLE = 3  # the starts are tried on a sample of this many batches
QUIET_BATCHES = 3  # in a row, before the fit ends
BATCHES_TO_PROVE = 10  # a centre has this many batches to find rows before it is moved


class MiniBatchMNARKMeans(CentersModel):
    """MNARKMeans on small batches of rows, for data that are large or arrive over time.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float or "auto", default="auto"
        Penalty of the gaps, >= 0. "auto" estimates it from the sample the starts are tried on (the
        first batch, for ``partial_fit``).
    reference : float, array of shape (n_features,) or "min", default=0.0
        The point near which values are likely to be missing. "min" is the least value seen so far.
    missing_values : float, default=nan
        How gaps are marked in dense input, besides NaN.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_features) or callable, \
default="k-means++"
        Starting centres. Those made by name are led to their optimum on a sample of three batches,
        and the best goes on.
    n_init : int, default=10
        Number of starts tried on the sample.
    batch_size : int, default=4096
        Rows of a batch in ``fit``. A table that is not larger is one batch.
    max_iter : int, default=1000
        Most batches of a ``fit``.
    tol : float, default=1e-5
        ``fit`` ends when three batches in a row each move the centres by so little that their own
        loss changes by no more than this share.
    reassignment_ratio : float, default=0.01
        A centre that has won less than this share of an even part of the rows is starved: it moves
        to a row that is far from its centre. 0 leaves centres where they are.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and the batches.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : int, default=0
        Above 0, a line per batch.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, lam_, missingness_, reference_, n_features_in_, \
feature_names_in_
        As in :class:`MNARKMeans`. After ``partial_fit``, ``labels_`` and ``inertia_`` are those of
        the batch, at the centres it met.
    n_iter_ : int
        Number of batches.
    loss_path_ : ndarray of shape (n_iter_,)
        The mean loss per unit of weight of every batch, at the centres it met.
    start_losses_ : ndarray
        Loss of every start on the sample.
    n_rows_seen_ : float
        Weight of all rows of all batches.
    observed_weights_, missing_weights_ : ndarray of shape (n_clusters, n_features)
        Weight of the observed and of the missing entries each centre has averaged.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MiniBatchMNARKMeans
    >>> rng = np.random.default_rng(0)
    >>> model = MiniBatchMNARKMeans(n_clusters=2, lam=0.5, random_state=0)
    >>> for _ in range(10):
    ...     X = rng.normal(size=(50, 2)) + 8.0 * rng.integers(0, 2, size=(50, 1))
    ...     X[rng.random(X.shape) < 0.1] = np.nan
    ...     X = X[~np.isnan(X).all(axis=1)]
    ...     model = model.partial_fit(X)
    >>> weight = model.observed_weights_ + model.missing_weights_
    >>> bool((weight.sum(axis=0) == model.n_rows_seen_).all())
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        lam="auto",
        reference=0.0,
        missing_values=math.nan,
        init="k-means++",
        n_init=10,
        batch_size=4096,
        max_iter=1000,
        tol=1e-5,
        reassignment_ratio=0.01,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.lam = lam
        self.reference = reference
        self.missing_values = missing_values
        self.init = init
        self.n_init = n_init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.reassignment_ratio = reassignment_ratio
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None):
        """Find the centres from random batches of the table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        self : MiniBatchMNARKMeans
        """
        self._check_parameters()
        table = read_table(self, X, reset=True)
        observed = self._look(table, self.reference, sample_weight, warn=True)
        check_enough_rows(observed, self.n_clusters)
        self._rng = check_random_state(self.random_state)
        self._begin(self._draw(observed, SAMPLE * self.batch_size), X)
        quiet = 0
        while self.n_iter_ < self.max_iter and quiet < QUIET_BATCHES:
            change = self._learn(self._draw(observed, self.batch_size))
            quiet = quiet + 1 if change <= self.tol else 0
        self._publish(observed)
        self.labels_, self.inertia_, _ = finish(
            observed, self.cluster_centers_, self.lam_, self._threads()
        )
        self._warn_if_few()
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Learn from one more batch. The first one must have at least ``n_clusters`` usable rows.

        Returns
        -------
        self : MiniBatchMNARKMeans
        """
        first = not hasattr(self, "_stats")
        if first:
            self._check_parameters()
        table = read_table(self, X, reset=first)
        observed = self._look(table, self.reference, sample_weight, warn=first, later=not first)
        if first:
            check_enough_rows(observed, self.n_clusters)
            self._rng = check_random_state(self.random_state)
            self._begin(observed, X)
        elif isinstance(self.reference, str):
            observed = self._lower_reference(observed)
        self._learn(observed)
        self._publish(observed)
        self.labels_ = self._labels
        self.inertia_ = float(np.sum(self._costs * observed.weights))
        return self

    @property
    def observed_weights_(self) -> np.ndarray:
        return self._stats.counts[0].copy()

    @property
    def missing_weights_(self) -> np.ndarray:
        return self._stats.sizes[0][:, None] - self._stats.counts[0]

    # ------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_count("n_clusters", self.n_clusters)
        check_lam(self.lam)
        for name in ("n_init", "batch_size", "max_iter"):
            check_count(name, getattr(self, name))
        check_number("tol", self.tol)
        check_number("reassignment_ratio", self.reassignment_ratio)
        if isinstance(self.init, str):
            check_choice("init", self.init, tuple(STARTS), "an array or a callable")

    def _look(self, table, reference, sample_weight, *, warn: bool, later: bool = False):
        return observe(
            table,
            missing_values=self.missing_values,
            reference=reference,
            sample_weight=sample_weight,
            threads=self._threads(),
            warn=warn,
            names=getattr(self, "feature_names_in_", None),
            allow_all_missing=later,
        )

    def _draw(self, observed: Observed, size: int) -> Observed:
        """Random rows (the same one may come twice), or all if there are no more."""
        if observed.n_rows <= size:
            return observed
        rows = np.sort(self._rng.randint(0, observed.n_rows, size))
        return observed.take(rows, means=observed.means)

    def _begin(self, sample: Observed, X) -> None:
        """Starting centres and lam; sums of nothing."""
        k, p = self.n_clusters, sample.n_features
        starts = self._starts(sample, X)
        options: dict[str, Any] = {"max_iter": 300, "tol": 1e-4, "threads": self._threads()}
        if self.lam == "auto":
            self.missingness_ = likelihood_choice(sample, starts, **options)
            self.lam_ = self.missingness_.lam
        else:
            self.lam_ = float(self.lam)
        batch = run_starts(
            sample, starts, np.full(len(starts), self.lam_), algorithm="lloyd", **options
        )
        self.start_losses_ = batch.losses
        best = starts[0] if self._is_given() else batch.centers[np.argmin(batch.losses)]
        self.reference_ = sample.reference
        self._shift = sample.shift
        self._m = np.ascontiguousarray(best - self._shift)[None]
        self._stats: Stats = zero_stats(1, k, p)
        self._dtype = sample.dtype
        self._proving = np.zeros(k, np.int64)  # batches since each centre was put where it is
        self.n_iter_, self.n_rows_seen_ = 0, 0.0
        self._path: list[float] = []

    def _is_given(self) -> bool:
        return not isinstance(self.init, str) and not callable(self.init)

    def _starts(self, sample: Observed, X) -> np.ndarray:
        k, p = self.n_clusters, sample.n_features
        if isinstance(self.init, str):
            return STARTS[self.init](sample, self.n_init, k, self._rng, self._threads())
        if callable(self.init):
            made = [self.init(X, k, random_state=self._rng) for _ in range(self.n_init)]
            return np.stack([check_init_centers(centers, k, p) for centers in made])
        return check_init_centers(self.init, k, p)[None]

    def _lower_reference(self, observed: Observed) -> Observed:
        """reference="min": the least value of all batches, this one included."""
        seen = observed.observed_weight > 0.0
        lower = np.where(seen, np.minimum(self.reference_, observed.reference), self.reference_)
        self.reference_ = lower
        return replace(observed, reference=lower)

    def _move_origin(self, shift: np.ndarray) -> None:
        """The sums and centres, taken relative to another shift."""
        if np.array_equal(shift, self._shift):
            return
        self._stats.sums[0] += (self._shift - shift) * self._stats.counts[0]
        self._m += self._shift - shift
        self._shift = shift

    def _learn(self, batch: Observed) -> float:
        """One batch. Returns the share of its loss by which the new centres may change it."""
        if batch.is_sparse:  # the CSR kernel wants the reference as the shift
            self._move_origin(batch.reference)
        lam, c = np.array([self.lam_]), batch.reference - self._shift
        data = Slabs(batch, batch.slabs(), self._threads())
        labels = np.full((1, batch.n_rows), -1, np.int32)
        before, sizes = self._m.copy(), self._stats.sizes[0].copy()
        one = np.zeros(1, np.int64)
        sweep(data, batch.weights, self._shift, c, lam, self._m, one, True, labels, self._stats)
        self._labels = labels[0]
        self._costs = row_costs(
            data, self._labels, self._m[0] + self._shift, self.lam_, batch.reference
        )
        update_centers(self._stats, 0, self.lam_, c, self._m[0])
        won = self._stats.sizes[0] - sizes
        loss = float(np.sum(self._costs * batch.weights))
        moved = max(1.0, self.lam_) * float(won @ np.sum((self._m - before)[0] ** 2, axis=1))
        self._tell(loss, float(batch.weights.sum()))
        self._feed_starved(data, batch)
        return moved / loss if loss > 0.0 else 0.0

    def _tell(self, loss: float, weight: float) -> None:
        self.n_iter_ += 1
        self.n_rows_seen_ += weight
        self._path.append(loss / weight if weight > 0.0 else 0.0)
        if self.verbose:
            print(f"batch {self.n_iter_}: loss {self._path[-1]:.6g} per row")

    def _feed_starved(self, data: Slabs, batch: Observed) -> None:
        """Move centres that win next to no rows to rows that are far from theirs."""
        self._proving += 1
        sizes = self._stats.sizes[0]
        fair = sizes.sum() / self.n_clusters
        starved = np.flatnonzero(
            (sizes < self.reassignment_ratio * fair) & (self._proving >= BATCHES_TO_PROVE)
        )
        weight = self._costs * batch.weights
        starved = starved[: int(np.sum(weight > 0.0))]
        if not len(starved):
            return
        rows = self._rng.choice(batch.n_rows, len(starved), replace=False, p=weight / weight.sum())
        for l, row in zip(starved, rows, strict=True):
            zero = np.zeros_like(self._shift)
            filled_row(data, int(row), zero, batch.means, self._m[0, l])
            self._m[0, l] -= self._shift
            for values in self._stats[:4]:
                values[0, l] = 0  # what it learnt elsewhere is of no use here
            self._proving[l] = 0

    def _publish(self, observed: Observed) -> None:
        self.cluster_centers_ = (self._m[0] + self._shift).astype(self._dtype)
        self.loss_path_ = np.array(self._path)

    def _warn_if_few(self) -> None:
        found = len(np.unique(self.labels_))
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly there are duplicate rows, or lam={self.lam_:g} is "
                "so large that centres fall together at the reference.",
                ConvergenceWarning,
                stacklevel=3,
            )
