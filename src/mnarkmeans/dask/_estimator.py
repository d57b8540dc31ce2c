"""mnarkmeans.dask.MNARKMeans: the estimator on Dask arrays and dataframes.

L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + lam sum_{j missing} (mu_lj - c_j)^2 ]
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from .._base import CentersModel
from .._core import Starts
from .._io import require
from .._solver import StartResults, report
from .._validation import (
    WarnFor,
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_lam,
    check_missing_values,
    check_number,
    check_reference,
    check_scale,
    check_summary,
    is_auto,
    read_table,
    warn_about,
)
from . import _predict as lazy
from ._lloyd import Callback, Checkpoint, Fitted, Iteration, assess, merge_assessed, run
from ._pieces import (
    ClusterLostError,
    LazyTable,
    Pieces,
    compute,
    count_rows,
    gather_pieces,
    held_table,
    is_frame,
    is_lazy,
    lazy_table,
    lazy_weights,
)
from ._starts import STARTS, Problem


class MNARKMeans(CentersModel):
    """MNARKMeans for tables beyond memory or beyond one machine, on Dask.

    The same loss and the same step as :class:`mnarkmeans.MNARKMeans`: from the same starting
    centres the result agrees to rounding, for any cut into blocks and any number of workers. Rows
    stay in their blocks; in an iteration the centres go out and k x p sums come back.

    It runs on whatever scheduler Dask uses: the threads of this process, or a
    ``distributed.Client``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float, array of shape (n_features,) or "auto", default="auto"
        Penalty of the gaps, for all features or for each. "auto" chooses it in memory, from a
        sample of at most 50,000 rows, as the estimator for tables in memory does.
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        The point near which values are likely to be missing; "min" takes the least observed value
        of each feature, over all blocks. "auto" chooses between zero and that, from the same
        sample as lam. None is "auto" where lam is "auto", and zero where lam is a number.
    missing_values : float, default=nan
        How gaps are marked in dense blocks, besides NaN. In sparse blocks what is not stored is
        missing.
    init : {"k-means||", "k-means++", "random"}, array of shape (n_clusters, n_features), \
default="k-means||"
        Starting centres. k-means|| looks at all rows, a few times; "k-means++" and "random" look at
        a sample of up to 50,000 rows.
    n_init : int, default=3
        Number of starts. They run side by side: a pass over the rows serves all of them.
    max_iter : int, default=300
        Most iterations of a start.
    tol : float, default=1e-5
        A start ends when an iteration lowers the loss by no more than this share of it.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. What is drawn does not depend on the blocks.
    persist : bool or "auto", default="auto"
        Whether the blocks, once read, are kept in memory where they are. "auto": if they fit.
    checkpoint : path or None, default=None
        A file for the centres, written whole every few iterations.
    checkpoint_every : int, default=5
        Iterations between two checkpoints.
    resume : bool, default=False
        Go on from the checkpoint if the file is there. The file of another fit is refused.
    callback : callable or None, default=None
        Called after every iteration with an object of ``number``, ``loss``, ``n_active`` (starts
        that go on) and ``seconds``.
    verbose : int, default=0
        Above 0, a line per iteration; the logger "mnarkmeans" gets it in any case.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : dask.array (or ndarray) of shape (n_samples,)
        Lazy, computed from X when asked for; an array if X was in memory.
    inertia_ : float
        The penalised loss, by direct differences.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows in each cluster.
    missing_share_ : float
        Share of the entries of X that are missing.
    n_iter_, loss_path_, start_losses_, lam_, missingness_, reference_, n_features_in_, \
feature_names_in_
        As in :class:`mnarkmeans.MNARKMeans`.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from mnarkmeans.dask import MNARKMeans
    >>> X = np.array([[5.0, np.nan], [5.2, 0.9], [4.8, np.nan], [0.9, 5.1], [0.8, 4.9]])
    >>> model = MNARKMeans(n_clusters=2, lam=1.0, random_state=0)
    >>> labels = model.fit(da.from_array(X, chunks=(2, 2))).labels_.compute()
    >>> bool(labels[0] == labels[2]), bool(labels[0] == labels[3])
    (True, False)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        lam: Any = "auto",
        reference: Any = None,
        missing_values: float = math.nan,
        init: Any = "k-means||",
        n_init: int = 3,
        max_iter: int = 300,
        tol: float = 1e-5,
        random_state: Any = None,
        persist: bool | str = "auto",
        checkpoint: Any = None,
        checkpoint_every: int = 5,
        resume: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.lam = lam
        self.reference = reference
        self.missing_values = missing_values
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.persist = persist
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres.

        Parameters
        ----------
        X : dask.array or dask.dataframe of shape (n_samples, n_features)
            Dense blocks with gaps, SciPy sparse blocks, or frames. Sizes of blocks may be unknown.
            Tables in memory (arrays, frames, sparse matrices) are cut into blocks.
        y : ignored
        sample_weight : array, dask.array or dask series of shape (n_samples,), default=None

        Returns
        -------
        self : MNARKMeans
        """
        require("dask", "dask")
        self._check_parameters()
        table = self._open(X)
        pieces = self._gather(table, sample_weight)
        try:
            problem, lam = self._judge(pieces)
            starts = self._begin(problem, lam)
            results = run(
                pieces, starts, checkpoint=self._checkpoint(problem), callback=self._report
            )
            self._keep(pieces, results, starts.lam)
        finally:
            pieces.release()
        self.labels_ = self._labels(X, table, np.diff(pieces.firsts).tolist())
        self._warn_if_few(self.cluster_sizes_, stacklevel=2)
        return self

    def predict(self, X: Any) -> Any:
        """Index of the closest centre for each row; lazy, cut as X is, if X is a Dask collection.

        Returns
        -------
        labels : dask.array (or ndarray) of shape (n_samples,)
        """
        if not is_lazy(X):
            return super().predict(X)
        return lazy.lazy_rows(self._checked(X), lazy.labels_of, lazy.Model.of(self), None, np.int32)

    def transform(self, X: Any) -> Any:
        """Square root of the penalised distance of each row to every centre; lazy as ``predict``.

        Returns
        -------
        distances : dask.array (or ndarray) of shape (n_samples, n_clusters)
        """
        if not is_lazy(X):
            return super().transform(X)
        k = len(self.cluster_centers_)
        return lazy.lazy_rows(self._checked(X), lazy.distances_of, lazy.Model.of(self), k)

    def impute(self, X: Any, *, out: Any = None) -> Any:
        """Fill the gaps of each row from its centre; lazy as ``predict``.

        Returns
        -------
        filled : a Dask array or dataframe as X (sparse blocks become dense), or as in memory
        """
        if not is_lazy(X):
            return super().impute(X, out=out)
        if out is not None:
            raise TypeError("out is for tables in memory; what is filled here is lazy, as X is.")
        self._checked(X)
        return lazy.lazy_filled(X, lazy.Model.of(self))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the penalised loss of X at the fitted centres, computed now."""
        if not is_lazy(X):
            return super().score(X, y, sample_weight)
        delayed, table = require("dask", "dask").delayed, self._checked(X)
        weights = lazy_weights(sample_weight, table, lambda: count_rows(table))
        model = delayed(lazy.Model.of(self), traverse=False)
        parts = [
            delayed(lazy.loss_of)(block, weight, model)
            for block, weight in zip(table.blocks, weights, strict=True)
        ]
        return -math.fsum(compute(*parts))

    # ------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_count("n_clusters", self.n_clusters)
        check_lam(self.lam)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_count("checkpoint_every", self.checkpoint_every)
        check_missing_values(self.missing_values)
        if isinstance(self.init, str):
            check_choice("init", self.init, tuple(STARTS), " or an array")
        elif callable(self.init):
            raise TypeError("init must be a name or an array here; a callable would need all rows.")
        if self.persist not in (True, False, "auto"):
            raise ValueError(f"persist must be True, False or 'auto'; got {self.persist!r}.")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs checkpoint=PATH, the file to go on from.")

    def _open(self, X: Any) -> LazyTable:
        """The blocks of X; names and number of its features are remembered."""
        if not is_lazy(X):
            return held_table(read_table(self, X, reset=True))
        table = lazy_table(X)
        _check_feature_names(self, X._meta if is_frame(X) else None, reset=True)
        self.n_features_in_ = table.n_features
        return table

    def _gather(self, table: LazyTable, sample_weight: Any) -> Pieces:
        try:
            return gather_pieces(table, sample_weight, self.missing_values, self.persist)
        except ClusterLostError as error:
            raise ClusterLostError(
                f"While the blocks were read {error}. Connect to a running cluster and fit again."
            ) from error

    def _judge(self, pieces: Pieces) -> tuple[Problem, Any]:
        """What all blocks together tell is judged as the first pass over a table in memory is."""
        check_summary(found := pieces.found)
        check_enough_rows(found.n_usable, found.n_rows, self.n_clusters)
        asked = self._reference()
        reference = check_reference(asked, len(found.least), found.least)
        check_scale(found.extent, found.weight, 1.0, reference, vanishing=True)
        fit = WarnFor(getattr(self, "feature_names_in_", None), self.lam)
        warn_about(found, fit, None if isinstance(asked, str) else reference, stacklevel=4)
        return self._chosen(Problem(pieces, reference))

    def _chosen(self, problem: Problem) -> tuple[Problem, Any]:
        """With its reference, and lam; those that are not given are chosen from a sample.

        The sample is the same whatever the seed: a resumed run has to choose the same.
        """
        found = problem.pieces.found
        lam = check_lam(self.lam, self.n_features_in_)
        if isinstance(lam, str) or is_auto(self._reference()):
            sample = problem.sample(np.random.RandomState(0))
            extent = found.least, found.highest
            sample, lam = self._choose(sample, **self._until(), extent=extent)
            problem = Problem(problem.pieces, sample.reference)
        self.reference_ = problem.reference
        return problem, lam

    def _begin(self, problem: Problem, lam: Any) -> Starts:
        k, p = self.n_clusters, self.n_features_in_
        rng = check_random_state(self.random_state)
        if self.resume and os.path.exists(self.checkpoint):  # how they began is past
            centers = np.zeros((self._n_starts(), k, p))
        else:
            if isinstance(self.init, str):
                centers = STARTS[self.init](problem, self.n_init, k, rng)
            else:
                centers = check_init_centers(self.init, k, p)[None]
            found = problem.pieces.found
            check_scale(found.extent, found.weight, lam, self.reference_, centers)
        return problem.starts(centers, lam, **self._until())

    def _n_starts(self) -> int:
        return self.n_init if isinstance(self.init, str) else 1

    def _checkpoint(self, problem: Problem) -> Checkpoint:
        about = problem.about | dict(n_clusters=self.n_clusters, n_starts=self._n_starts())
        if not isinstance(self.lam, str):
            about["lam"] = check_lam(self.lam, self.n_features_in_)
        return Checkpoint(self.checkpoint, self.checkpoint_every, self.resume, about)

    def _report(self, done: Iteration) -> None:
        report(
            f"iteration {done.number}: loss {done.loss:.6g}, {done.n_active} start(s) go on, "
            f"{done.seconds:.2f} s",
            bool(self.verbose),
        )
        if self.callback is not None:
            self.callback(done)

    def _keep(self, pieces: Pieces, results: StartResults, lams: np.ndarray) -> None:
        best = results.best
        lam = lams[best]
        per_feature = np.ndim(self.lam) == 1 or np.ptp(lam) > 0
        self.cluster_centers_ = results.centers[best].astype(pieces.dtype)
        self.lam_ = lam.copy() if per_feature else float(lam[0])
        self.n_iter_ = int(results.n_iter[best])
        self.loss_path_ = results.path(best)
        self.start_losses_ = results.losses
        fitted = Fitted(self.cluster_centers_.astype(np.float64), lam[None], self.reference_)
        self.inertia_, self.cluster_sizes_ = pieces.reduce(assess, merge_assessed, fitted)
        entries = pieces.n_rows * self.n_features_in_
        self.missing_share_ = 1.0 - pieces.found.n_entries / entries

    def _labels(self, X: Any, table: LazyTable, lengths: list[int]) -> Any:
        if not is_lazy(X):
            return super().predict(X)
        table = replace(table, lengths=lengths)
        return lazy.lazy_rows(table, lazy.labels_of, lazy.Model.of(self), None, np.int32)

    def _checked(self, X: Any) -> LazyTable:
        """The blocks of a Dask collection that has the features of the fit."""
        check_is_fitted(self)
        _check_feature_names(self, X._meta if is_frame(X) else None, reset=False)
        table = lazy_table(X)
        if table.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {table.n_features} features, but MNARKMeans is expecting "
                f"{self.n_features_in_} features as input."
            )
        return table
