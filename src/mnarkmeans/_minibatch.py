"""MiniBatchMNARKMeans: centres from a few rows at a time, as averages over all batches.

For every centre three sums grow from batch to batch: S of the observed values, C the weight of the
rows that observe a feature, N the weight of all rows. After each batch

    centre  mu = (S + lam (N - C) c) / (C + lam (N - C))

as if all rows so far had been fitted at once with the labels they were given.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from . import _core as core
from ._kmeans import N_INIT, CentersModel, Init
from ._observed import Observed
from ._solver import finish, log_line, penalties, run_starts
from ._validation import check_count, check_number, check_scale, is_auto

SAMPLE = 3  # the starts are tried on a sample of this many batches
TRIAL: dict[str, Any] = {"max_iter": 300, "tol": 1e-4}  # how they are tried
QUIET_BATCHES = 3  # in a row, before the fit ends
BATCHES_TO_PROVE = 10  # in which a centre may find rows before it is moved


@dataclass(repr=False, eq=False)
class MiniBatchMNARKMeans(CentersModel):
    """MNARKMeans on small batches of rows, for data that are large or arrive over time.

    Parameters
    ----------
    n_clusters, lam, reference, missing_values, n_jobs
        As in :class:`MNARKMeans`. "auto" chooses lam and the reference from the sample the starts
        are tried on (``partial_fit``: the first batch); "min" is the smallest value so far.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_features) or callable, \
default="k-means++"
        Starting centres. Those made by name are fitted to a sample of three batches, and the best
        start is kept.
    n_init : int or "auto", default=10
        Number of starts ("auto" is 10) tried on the sample.
    batch_size : int, default=4096
        Rows of a batch in ``fit``. A table that is not larger is one batch.
    max_iter : int, default=1000
        Maximum number of batches per ``fit``.
    tol : float, default=1e-5
        ``fit`` ends when three batches in a row each move the centres by so little that their own
        loss changes by no more than this share.
    reassignment_ratio : float, default=0.01
        A centre with fewer rows than this share of ``1 / n_clusters`` of them moves to a row that
        is far from its own centre. 0 leaves centres where they are.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and the batches.
    verbose : int, default=0
        Above 0, a line per batch; the logger "mnarkmeans" gets it in any case.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, lam_, missingness_, reference_, n_features_in_, \
feature_names_in_
        As in :class:`MNARKMeans`. After ``partial_fit``, ``labels_`` and ``inertia_`` are those of
        the batch, at the centres before it.
    n_iter_ : int
        Number of batches.
    loss_path_ : ndarray of shape (n_iter_,)
        The mean loss per unit of weight of every batch, at the centres before it.
    start_losses_ : ndarray
        Loss of every start on the sample.
    n_rows_seen_ : float
        Weight of all rows of all batches.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MiniBatchMNARKMeans
    >>> X = np.array([[5.0, np.nan], [5.2, 0.9], [0.9, 5.1], [np.nan, 5.0]])
    >>> model = MiniBatchMNARKMeans(n_clusters=2, lam=0.5, random_state=0).partial_fit(X)
    >>> model.partial_fit([[4.8, 1.1]]).n_iter_
    2
    """

    n_clusters: int = 8
    _: KW_ONLY
    lam: Any = "auto"
    reference: Any = None
    missing_values: float = math.nan
    init: Init = "k-means++"
    n_init: int | Literal["auto"] = N_INIT
    batch_size: int = 4096
    max_iter: int = 1000
    tol: float = 1e-5
    reassignment_ratio: float = 0.01
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres from random batches of the table; parameters as in `MNARKMeans`."""
        observed = self._begin(X, sample_weight, SAMPLE * self.batch_size)
        observed = replace(observed, reference=self.reference_)
        quiet = 0
        while self.n_iter_ < self.max_iter and quiet < QUIET_BATCHES:
            change = self._update(self._draw(observed, self.batch_size))
            quiet = quiet + 1 if change <= self.tol else 0
        centers, threads = self.cluster_centers_, self._threads()
        self.labels_, self.inertia_, members = finish(observed, centers, self.lam_, threads)
        self._warn_of_small_clusters(members)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch; the first must have at least ``n_clusters`` usable rows."""
        if hasattr(self, "_state"):
            observed = self._observe(X, sample_weight)
        else:
            observed = self._begin(X, sample_weight, math.inf)
        if self._follows_minimum:
            self.reference_ = np.minimum(observed.summary.minimum, self.reference_)
            self._state.reference = self.reference_
        self._update(replace(observed, reference=self.reference_))
        return self

    @property
    def loss_path_(self) -> np.ndarray:
        return np.array(self._path)

    # ------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("batch_size", self.batch_size)
        check_number("reassignment_ratio", self.reassignment_ratio)

    def _draw(self, observed: Observed, size: float) -> Observed:
        """Random rows (the same one may come twice), or all if there are no more."""
        if observed.n_rows <= size:
            return observed
        rows = np.sort(self._rng.randint(0, observed.n_rows, int(size)))
        return observed.draw(rows)

    def _begin(self, X: Any, sample_weight: Any, size: float) -> Observed:
        """All rows; starting centres, reference and lam from a sample of them; sums of 0."""
        self._check_parameters()
        observed = self._observe_to_fit(X, sample_weight, self.n_clusters)
        self._rng = check_random_state(self.random_state)
        sample = self._draw(observed, size)
        starts = self._starts(sample, X, self._rng)
        sample, self.lam_, centers_of_choice = self._choose(sample, **TRIAL)
        check_scale(sample.summary, self.lam_, sample.reference, starts)
        starts = self._with_better_starts(sample, starts, self.lam_, centers_of_choice)
        reference = self.missingness_.reference if is_auto(self._reference()) else self.reference
        self._follows_minimum = isinstance(reference, str) and reference == "min"
        results = run_starts(sample, starts, self.lam_, threads=self._threads(), **TRIAL)
        self.start_losses_ = results.losses
        is_given = not isinstance(self.init, str) and not callable(self.init)
        best = starts[0] if is_given else results.centers[results.best]
        self.reference_ = sample.reference
        # One shift for all batches: their sums are to add up.
        lam = penalties(self.lam_, 1, sample.n_features)
        self._state = core.Starts(best[None], lam, sample.reference, sample.means)
        self._dtype = sample.dtype
        self._age = np.zeros(self.n_clusters, np.int64)  # batches since a centre was placed
        self.n_iter_, self.n_rows_seen_ = 0, 0.0
        self._path: list[float] = []
        return observed

    def _update(self, batch: Observed) -> float:
        """Learn from a batch. Returns the share of its loss by which the new centres may change it.

        ``labels_`` and ``inertia_`` are those of the batch at the centres before it.
        """
        state, threads = self._state, self._threads()
        before = core.Starts(
            state.mu, state.lam, state.reference, state.shift,
            n_rows=batch.n_rows, weights=batch.summary.total_weight,
        )  # fmt: skip
        core.pass_(batch.table, before, [0], fresh=True, bounds=None, threads=threads)
        self.labels_, costs = before.labels[0], np.empty(batch.n_rows)
        loss = core.loss_of(batch.table, before.centers([0]), self.labels_, threads, costs)
        state.stats.add(before.stats)
        core.update(state, [0])
        sizes, moves = before.stats.sizes[0], np.sum((state.mu - before.mu)[0] ** 2, axis=1)
        self._reassign(batch, costs)
        self.cluster_centers_ = state.mu[0].astype(self._dtype)
        self.inertia_ = loss
        self.n_iter_ += 1
        self.n_rows_seen_ += before.total_weight
        self._path.append(loss / before.total_weight if before.total_weight > 0.0 else 0.0)
        log_line(f"batch {self.n_iter_}: loss {self._path[-1]:.6g} per row", bool(self.verbose))
        change = max(1.0, state.lam.max()) * float(sizes @ moves)
        return change / loss if loss > 0.0 else 0.0

    def _reassign(self, batch: Observed, costs: np.ndarray) -> None:
        """Move centres with hardly any rows to rows drawn by their loss."""
        self._age += 1
        stats, weight = self._state.stats, costs * batch.weights
        sizes = stats.sizes[0]
        starved = sizes < self.reassignment_ratio * sizes.sum() / self.n_clusters
        moved = np.flatnonzero(starved & (self._age >= BATCHES_TO_PROVE))
        moved = moved[: np.count_nonzero(weight)]
        if not len(moved):
            return
        rows = self._rng.choice(batch.n_rows, len(moved), replace=False, p=weight / weight.sum())
        self._state.mu[0, moved] = core.fill_rows(batch.table, rows, batch.means)
        for values in stats[:4]:
            values[0, moved] = 0  # sums of rows elsewhere
        self._age[moved] = 0
