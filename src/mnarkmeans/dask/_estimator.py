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

from .. import _kmeans
from .._base import CentersModel
from .._core import Starts
from .._io import require
from .._solver import StartResults, penalties, report
from .._validation import (
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_lam,
    check_missing_values,
    check_number,
    check_scale,
    check_summary,
    is_auto,
    like_input,
    read_table,
)
from ._lloyd import Callback, Checkpoint, Iteration, Partition, assess, merge_assessed, run
from ._pieces import (
    Blocks,
    Pieces,
    blocks_of,
    compute,
    cut_into_blocks,
    gather_pieces,
    is_frame,
    is_lazy,
    named,
    read_rows,
    read_weights,
    weights_of,
)
from ._starts import STARTS

ROWS_TO_JUDGE = 1000  # the first ones, whether codes or counts are among the values


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
        blocks = self._open(X)
        pieces = gather_pieces(blocks, sample_weight, self.missing_values, self.persist)
        try:
            pieces, lam = self._choose_from(self._judged(pieces))
            starts = self._begin(pieces, lam)
            results = run(pieces, starts, self._checkpoint(pieces), self._report)
            self._keep(pieces, results, lam)
        finally:
            pieces.release()
        if is_lazy(X):
            blocks = replace(blocks, lengths=np.diff(pieces.firsts).tolist())
            self.labels_ = self._lazy_rows(blocks, "predict", (), np.int32)
        else:
            self.labels_ = super().predict(X)
        self._warn_if_few(self.cluster_sizes_)
        return self

    def predict(self, X: Any) -> Any:
        """Index of the closest centre for each row; lazy, cut as X is, if X is a Dask collection.

        Returns
        -------
        labels : dask.array (or ndarray) of shape (n_samples,)
        """
        if not is_lazy(X):
            return super().predict(X)
        return self._lazy_rows(self._checked(X), "predict", (), np.int32)

    def transform(self, X: Any) -> Any:
        """Square root of the penalised distance of each row to every centre; lazy as ``predict``.

        Returns
        -------
        distances : dask.array (or ndarray) of shape (n_samples, n_clusters)
        """
        if not is_lazy(X):
            return super().transform(X)
        blocks = self._checked(X)
        return self._lazy_rows(blocks, "transform", (len(self.cluster_centers_),), blocks.dtype)

    def impute(self, X: Any, *, out: Any = None) -> Any:
        """Fill the gaps of each row from its centre; lazy as ``predict``.

        Returns
        -------
        filled : a Dask array or dataframe as X (sparse blocks become dense), or as in memory
        """
        if not is_lazy(X):
            return super().impute(X, out=out)
        if out is not None:
            raise TypeError("out is for tables in memory; here the result is lazy, as X is.")
        blocks = self._checked(X)
        if not is_frame(X):
            return self._lazy_rows(blocks, "impute", (blocks.n_features,), blocks.dtype)
        meta = like_input(np.empty((0, blocks.n_features), blocks.dtype), X._meta)
        return X.map_partitions(_filled_frame, self._in_memory(), blocks.dtype, meta=meta)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the penalised loss of X at the fitted centres, computed now."""
        if not is_lazy(X):
            return super().score(X, y, sample_weight)
        delayed, blocks = require("dask", "dask").delayed, self._checked(X)
        model = delayed(self._in_memory(), traverse=False)
        weights = weights_of(sample_weight, blocks)
        parts = [
            delayed(_score)(block, weight, model)
            for block, weight in zip(blocks.delayed, weights, strict=True)
        ]
        return math.fsum(compute(*parts))

    def _in_memory(self) -> Any:
        """The same centres as an estimator for arrays and sparse matrices in memory."""
        check_is_fitted(self)
        model = _kmeans.MNARKMeans(
            len(self.cluster_centers_), missing_values=self.missing_values, n_jobs=1
        )
        for name in ("cluster_centers_", "lam_", "reference_", "n_features_in_"):
            setattr(model, name, getattr(self, name))
        return model

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
            raise ValueError("resume=True needs checkpoint=PATH, the file to continue from.")

    def _open(self, X: Any) -> Blocks:
        """The blocks of X; names and number of its features are remembered."""
        if not is_lazy(X):
            return blocks_of(cut_into_blocks(read_table(self, X, reset=True)))
        blocks = blocks_of(X)
        _check_feature_names(self, X._meta if is_frame(X) else None, reset=True)
        self.n_features_in_ = blocks.n_features
        return blocks

    def _judged(self, pieces: Pieces) -> Pieces:
        """With the reference; what was found in all blocks is judged as a table in memory is."""
        found = pieces.found
        rows, _ = pieces.take(np.arange(min(ROWS_TO_JUDGE, found.n_rows)))
        reference = check_summary(rows, found, self._reference(), self)
        check_enough_rows(found.n_usable, found.n_rows, self.n_clusters)
        return replace(pieces, reference=reference)

    def _choose_from(self, pieces: Pieces) -> tuple[Pieces, Any]:
        """With its reference, and lam; those that are not given are chosen from a sample.

        The sample is the same whatever the seed: a resumed run has to choose the same.
        """
        lam = check_lam(self.lam, self.n_features_in_, self._names())
        if isinstance(lam, str) or is_auto(self._reference()):
            extent = pieces.found.least, pieces.found.highest
            sample = pieces.sample(np.random.RandomState(0))
            sample, lam = self._choose(sample, **self._stopping_rule(), extent=extent)
            pieces = replace(pieces, reference=sample.reference)
        self.reference_, self.lam_ = pieces.reference, lam
        return pieces, lam

    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _begin(self, pieces: Pieces, lam: Any) -> Starts:
        k, p = self.n_clusters, self.n_features_in_
        rng = check_random_state(self.random_state)
        if self.resume and os.path.exists(self.checkpoint):  # it has the centres
            centers = np.zeros((self._n_starts(), k, p))
        else:
            if isinstance(self.init, str):
                centers = STARTS[self.init](pieces, self.n_init, k, rng)
            else:
                centers = check_init_centers(self.init, k, p)[None]
            found = pieces.found
            check_scale(found.extent, found.weight, lam, self.reference_, centers)
        return Starts(
            centers, penalties(lam, len(centers), p), pieces.reference, pieces.means, n_rows=0,
            weights=pieces.found.total_weight, **self._stopping_rule(),
        )  # fmt: skip

    def _n_starts(self) -> int:
        return self.n_init if isinstance(self.init, str) else 1

    def _checkpoint(self, pieces: Pieces) -> Checkpoint:
        found = pieces.found
        problem = dict(
            n_rows=found.n_rows, n_features=self.n_features_in_, reference=pieces.reference,
            observed=found.counts, sums=found.sums, n_clusters=self.n_clusters,
            n_starts=self._n_starts(),
        )  # fmt: skip
        if not isinstance(self.lam, str):
            problem["lam"] = self.lam_
        return Checkpoint(self.checkpoint, self.checkpoint_every, self.resume, problem)

    def _report(self, done: Iteration) -> None:
        report(
            f"iteration {done.number}: loss {done.loss:.6g}, {done.n_active} start(s) go on, "
            f"{done.seconds:.2f} s",
            bool(self.verbose),
        )
        if self.callback is not None:
            self.callback(done)

    def _keep(self, pieces: Pieces, results: StartResults, lam: Any) -> None:
        best = results.best
        self.cluster_centers_ = results.centers[best].astype(pieces.dtype)
        self.n_iter_ = int(results.n_iter[best])
        self.loss_path_ = results.path(best)
        self.start_losses_ = results.losses
        mu = self.cluster_centers_.astype(np.float64)
        lams = penalties(lam, 1, self.n_features_in_)
        fitted = Partition(mu[None], lams, pieces.reference, mu.mean(axis=0))
        self.inertia_, self.cluster_sizes_ = pieces.reduce(assess, merge_assessed, fitted)
        entries = pieces.n_rows * self.n_features_in_
        self.missing_share_ = 1.0 - pieces.found.n_entries / entries

    def _checked(self, X: Any) -> Blocks:
        """The blocks of a Dask collection that has the features of the fit."""
        check_is_fitted(self)
        _check_feature_names(self, X._meta if is_frame(X) else None, reset=False)
        blocks = blocks_of(X)
        if blocks.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {blocks.n_features} features, but MNARKMeans is expecting "
                f"{self.n_features_in_} features as input."
            )
        return blocks

    def _lazy_rows(self, blocks: Blocks, method: str, tail: tuple[int, ...], dtype: Any) -> Any:
        """What a method of the model gives for every block, as a Dask array (n, *tail)."""
        da, delayed = require("dask.array", "dask"), require("dask", "dask").delayed
        n_blocks, ask = len(blocks.delayed), delayed(_ask, pure=False)
        lengths: list[Any] = blocks.lengths or [math.nan] * n_blocks
        model, empty = delayed(self._in_memory(), traverse=False), np.empty((0, *tail), dtype)
        arrays = [
            da.from_delayed(
                ask(block, model, method, empty, number, n_blocks), (length, *tail),
                meta=np.empty((0,) * (1 + len(tail)), dtype),
            )
            for number, (block, length) in enumerate(zip(blocks.delayed, lengths, strict=True))
        ]  # fmt: skip
        return da.concatenate(arrays, allow_unknown_chunksizes=True)


# --- fitted centres on the rows of a block --------------------------------------------------------


def _ask(
    raw: Any, model: Any, method: str, empty: np.ndarray, number: int, n_blocks: int
) -> np.ndarray:
    try:
        rows = read_rows(raw, model.n_features_in_)
        if not rows.shape[0]:
            return empty
        return np.asarray(getattr(model, method)(rows), empty.dtype)
    except (TypeError, ValueError) as error:
        raise named(error, number, n_blocks) from error


def _filled_frame(frame: Any, model: Any, dtype: Any) -> Any:
    rows = read_rows(frame, model.n_features_in_)
    filled = model.impute(rows) if len(rows) else rows
    return like_input(filled.astype(dtype, copy=False), frame)


def _score(raw: Any, weights: Any, model: Any) -> float:
    rows = read_rows(raw, model.n_features_in_)
    weights = read_weights(weights, rows.shape[0])
    return model.score(rows, sample_weight=weights) if weights.any() else 0.0
