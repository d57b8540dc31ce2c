"""mnarkmeans.dask.MNARKMeans: the estimator on Dask arrays and dataframes.

L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + lam sum_{j missing} (mu_lj - c_j)^2 ]
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from .._data.validation import (
    _warn_unseen,
    check_choice,
    check_count,
    check_init_centers,
    check_lam,
    check_missing_values,
    check_number,
    check_reference,
)
from .._estimators.base import CentersModel
from .._io.optional import require
from .._penalty.choice import likelihood_choice
from .._solver.solvers import Batch, Starts
from . import _lazy as lazy
from ._blocks import is_array, is_frame, lazy_table, lazy_weights
from ._lloyd import Checkpoint, Iteration, run
from ._passes import assess, merge_assessed
from ._run import ClusterLostError, Pieces, compute, gather_pieces
from ._starts import STARTS, sample_observed


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
    lam : float or "auto", default="auto"
        Penalty of the gaps. "auto" estimates it in memory, from a sample of at most 50,000 rows.
    reference : float, array of shape (n_features,) or "min", default=0.0
        The point near which values are likely to be missing; "min" takes the least observed value
        of each feature, over all blocks.
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
        Above 0, a line per iteration.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : dask.array of shape (n_samples,)
        Lazy; computed from X when asked for.
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
        n_clusters=8,
        *,
        lam="auto",
        reference=0.0,
        missing_values=math.nan,
        init="k-means||",
        n_init=3,
        max_iter=300,
        tol=1e-5,
        random_state=None,
        persist="auto",
        checkpoint=None,
        checkpoint_every=5,
        resume=False,
        callback=None,
        verbose=0,
    ):
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

    def fit(self, X, y=None, sample_weight=None):
        """Find the centres.

        Parameters
        ----------
        X : dask.array or dask.dataframe of shape (n_samples, n_features)
            Dense blocks with gaps, SciPy sparse blocks, or frames. Sizes of blocks may be unknown.
        y : ignored
        sample_weight : array, dask.array or dask series of shape (n_samples,), default=None

        Returns
        -------
        self : MNARKMeans
        """
        require("dask", "dask")
        self._check_parameters()
        table = lazy_table(X)
        _check_feature_names(self, X._meta if is_frame(X) else None, reset=True)
        self.n_features_in_ = table.n_features
        pieces = self._first_look(table, sample_weight)
        try:
            starts = self._starts(pieces)
            batch = run(
                pieces,
                starts,
                missing=self._missing(pieces),
                tol=float(self.tol),
                checkpoint=self._checkpoint(pieces),
                callback=self._report,
            )
            self._keep(X, pieces, batch, starts.lam)
        finally:
            pieces.release()
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit and return the lazy ``labels_``."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def predict(self, X):
        """Index of the closest centre for each row; lazy, cut as X is, if X is a Dask collection.

        Returns
        -------
        labels : dask.array (or ndarray) of shape (n_samples,)
        """
        if not self._is_lazy(X):
            return super().predict(X)
        return lazy.lazy_rows(X, lazy.labels_of, self._centers(X), None, np.int32)

    def transform(self, X):
        """Square root of the penalised distance of each row to every centre; lazy as ``predict``.

        Returns
        -------
        distances : dask.array (or ndarray) of shape (n_samples, n_clusters)
        """
        if not self._is_lazy(X):
            return super().transform(X)
        model = self._centers(X)
        k, dtype = len(model.centers), model.centers.dtype
        return lazy.lazy_rows(X, lazy.distances_of, model, k, dtype)

    def impute(self, X):
        """Fill the gaps of each row from its centre; lazy as ``predict``.

        Returns
        -------
        filled : a Dask array or dataframe as X (sparse blocks become dense), or as in memory
        """
        if not self._is_lazy(X):
            return super().impute(X)
        return lazy.lazy_filled(X, self._centers(X))

    def score(self, X, y=None, sample_weight=None):
        """Minus the penalised loss of X at the fitted centres, computed now."""
        if not self._is_lazy(X):
            return super().score(X, y, sample_weight)
        delayed = require("dask", "dask").delayed
        table, model = lazy_table(X), self._centers(X)
        weights = lazy_weights(sample_weight, table, lambda: _lengths(table))
        parts = [
            delayed(lazy.loss_of)(block, weight, delayed(model, traverse=False))
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
            check_choice("init", self.init, tuple(STARTS), "or an array")
        elif callable(self.init):
            raise TypeError("init must be a name or an array here; a callable would need all rows.")
        if self.persist not in (True, False, "auto"):
            raise ValueError(f"persist must be True, False or 'auto'; got {self.persist!r}.")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs checkpoint=PATH, the file to go on from.")

    def _first_look(self, table, sample_weight) -> Pieces:
        """Read and judge all blocks; the shift, the reference and the means are known after."""
        try:
            pieces = gather_pieces(table, sample_weight, self.missing_values, self.persist)
        except ClusterLostError as error:
            raise ClusterLostError(
                f"While the blocks were read {error}. Connect to a running cluster and fit again."
            ) from error
        found, p = pieces.found, table.n_features
        if not found.counts.any() and found.n_unseen == found.n_rows:
            raise ValueError(
                f"All {found.n_rows} x {p} values are missing; there is nothing to cluster. "
                "Check missing_values and how the table was read."
            )
        if not np.isfinite(found.sums).all():
            column = int(np.flatnonzero(~np.isfinite(found.sums))[0])
            raise ValueError(
                f"The values of column {column} are too large: their sum overflows. "
                "Rescale the data."
            )
        if found.n_usable < self.n_clusters:
            raise ValueError(
                f"n_samples={found.n_usable} usable rows (with a weight and an observed value, of "
                f"{found.n_rows}) should be >= n_clusters={self.n_clusters}. Ask for fewer "
                "clusters."
            )
        _warn_unseen(
            found.n_unseen, np.flatnonzero(found.counts == 0),
            getattr(self, "feature_names_in_", None),
        )  # fmt: skip
        self.reference_ = check_reference(self.reference, p, found.least)
        return pieces

    def _missing(self, pieces: Pieces) -> float:
        """The code of gaps as it reads in the table's own precision."""
        kind = np.float32 if pieces.found.single else np.float64
        return float(kind(check_missing_values(self.missing_values)))

    def _means(self, pieces: Pieces) -> np.ndarray:
        counts = pieces.found.counts
        seen = counts > 0
        return np.where(seen, pieces.found.sums / np.where(seen, counts, 1.0), self.reference_)

    def _starts(self, pieces: Pieces) -> Starts:
        k, p, means = self.n_clusters, self.n_features_in_, self._means(pieces)
        rng = check_random_state(self.random_state)
        if self.resume and _exists(self.checkpoint):  # how they began is past
            centers = np.zeros((self._n_starts(), k, p))
            lam = 0.0
        else:
            if isinstance(self.init, str):
                missing = self._missing(pieces)
                start = STARTS[self.init]
                centers = start(pieces, self.n_init, k, rng, means, self.reference_, missing)
            else:
                centers = check_init_centers(self.init, k, p)[None]
            lam = self._choose_lam(pieces, means, centers, rng)
        shift = self.reference_ if pieces.found.is_sparse else means
        return Starts(centers, np.full(len(centers), lam), shift, self.reference_, self.max_iter)

    def _n_starts(self) -> int:
        return self.n_init if isinstance(self.init, str) else 1

    def _choose_lam(self, pieces: Pieces, means, starts: np.ndarray, rng) -> float:
        if self.lam != "auto":
            return float(self.lam)
        sample = sample_observed(pieces, means, self.reference_, self._missing(pieces), rng)
        self.missingness_ = likelihood_choice(
            sample, starts, max_iter=self.max_iter, tol=float(self.tol), threads=self._threads()
        )
        return self.missingness_.lam

    def _checkpoint(self, pieces: Pieces) -> Checkpoint:
        found = pieces.found
        problem = dict(
            n_clusters=self.n_clusters, n_starts=self._n_starts(), n_rows=found.n_rows,
            n_features=self.n_features_in_, reference=self.reference_,
            observed=found.counts, sums=found.sums,
        )  # fmt: skip
        if self.lam != "auto":
            problem["lam"] = float(self.lam)
        return Checkpoint(self.checkpoint, self.checkpoint_every, self.resume, problem)

    def _report(self, done: Iteration) -> None:
        if self.verbose:
            print(
                f"iteration {done.number}: loss {done.loss:.6g}, {done.n_active} start(s) go on, "
                f"{done.seconds:.2f} s"
            )
        if self.callback is not None:
            self.callback(done)

    def _keep(self, X: Any, pieces: Pieces, batch: Batch, lams: np.ndarray) -> None:
        best = int(np.argmin(batch.losses))
        kind = np.float32 if pieces.found.single else np.float64
        self.cluster_centers_ = batch.centers[best].astype(kind)
        self.lam_ = float(lams[best])
        self.n_iter_ = int(batch.n_iter[best])
        self.loss_path_ = batch.paths[best].copy()
        self.start_losses_ = batch.losses
        exact = self.cluster_centers_.astype(np.float64)
        self.inertia_, members = pieces.reduce(
            assess, merge_assessed, exact, self.lam_, self.reference_
        )
        self.labels_ = lazy.lazy_rows(
            X, lazy.labels_of, self._centers(X), None, np.int32, np.diff(pieces.firsts).tolist()
        )
        self.cluster_sizes_ = members
        entries = pieces.n_rows * self.n_features_in_
        self.missing_share_ = 1.0 - pieces.found.n_entries / entries
        found = int(np.sum(members > 0))
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly there are duplicate rows, or lam={self.lam_:g} is "
                "so large that centres fall together at the reference.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _is_lazy(self, X: Any) -> bool:
        check_is_fitted(self)
        return is_array(X) or is_frame(X)

    def _centers(self, X: Any) -> lazy.Centers:
        _check_feature_names(self, X._meta if is_frame(X) else None, reset=False)
        table = lazy_table(X)
        if table.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {table.n_features} features, but MNARKMeans is expecting "
                f"{self.n_features_in_} features as input."
            )
        return lazy.Centers(self.cluster_centers_, self.lam_, self.reference_, self.missing_values)


def _exists(path) -> bool:
    import os

    return os.path.exists(path)


def _lengths(table) -> list[int]:
    delayed = require("dask", "dask").delayed
    return list(compute(*(delayed(len)(block) for block in table.blocks)))
