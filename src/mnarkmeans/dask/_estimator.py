"""mnarkmeans.dask.MNARKMeans: the estimator on Dask arrays and dataframes.

L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + lam sum_{j missing} (mu_lj - c_j)^2 ]
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _kmeans
from .._core import Starts
from .._io import require
from .._solver import StartResults, last_losses, lloyd, log_line, penalties
from .._validation import (
    check_enough_rows,
    check_missing_values,
    check_scale,
    check_summary,
    check_table,
    is_auto,
    like_input,
)
from ._blocks import (
    Blocks,
    by_rows,
    compute,
    is_frame,
    is_lazy,
    of_block,
    read_blocks,
    read_rows,
    read_weights,
    to_dask,
    with_weights,
)
from ._passes import STARTS, BlockRows, Partition, add, total_loss

N_INIT = 3
ROWS_TO_INSPECT = 1000  # the first ones, for codes of missing values and for raw counts


@dataclass(repr=False, eq=False)
class MNARKMeans(_kmeans.CentersModel):
    """MNARKMeans for tables larger than memory or on several machines, on Dask.

    The same loss and the same step as :class:`mnarkmeans.MNARKMeans`: from the same starting
    centres the result agrees to rounding, for any cut into blocks and any number of workers. It
    runs on the scheduler that Dask uses: threads of this process, or a ``distributed.Client``.

    Parameters
    ----------
    n_clusters, lam, reference, missing_values, max_iter, tol
        As in :class:`mnarkmeans.MNARKMeans`. "auto" chooses lam and the reference from a sample of
        at most 50,000 rows.
    init : {"k-means||", "k-means++", "random"}, array of shape (n_clusters, n_features) or \
callable, default="k-means||"
        Starting centres. k-means|| reads all rows a few times; "k-means++" and "random" draw from a
        sample of up to 50,000 rows. A callable gets X as it was given.
    n_init : int or "auto", default=3
        Number of starts ("auto" is 3). They run side by side in every pass over the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. What is drawn does not depend on the blocks.
    persist : bool or "auto", default="auto"
        Whether the blocks, once read, are kept in memory. "auto": if they fit.
    verbose : int, default=0
        Above 0, a line per iteration; the logger "mnarkmeans" gets it in any case.

    Attributes
    ----------
    labels_ : dask.array (or ndarray) of shape (n_samples,)
        Lazy, computed from X when asked for; an array if X was in memory.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows in each cluster.
    cluster_centers_, inertia_, n_iter_, loss_path_, start_losses_, lam_, missingness_, \
reference_, n_features_in_, feature_names_in_
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

    _STARTS, _N_INIT = STARTS, N_INIT

    n_clusters: int = 8
    _: KW_ONLY
    lam: Any = "auto"
    reference: Any = None
    missing_values: float = math.nan
    init: Any = "k-means||"
    n_init: int | Literal["auto"] = N_INIT
    max_iter: int = 300
    tol: float = 1e-5
    random_state: Any = None
    persist: bool | str = "auto"
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres of a Dask array (dense or SciPy sparse blocks) or dataframe.

        Sizes of blocks may be unknown; tables in memory are cut into blocks. ``sample_weight``: an
        array, Dask array or Dask series.
        """
        require("dask", "dask")
        self._check_parameters()
        rows = to_dask(check_table(self, X)) if not is_lazy(X) else self._rows_of(X, reset=True)
        with read_blocks(rows, sample_weight, self.missing_values, self.persist) as blocks:
            blocks = self._with_reference(blocks)
            self._store_best_start(self._run(blocks, X), blocks.dtype)
            mu = self.cluster_centers_.astype(np.float64)[None]
            lam, shift = penalties(self.lam_, 1, blocks.n_features), mu.mean(axis=(0, 1))
            fitted = Partition(mu, lam, blocks.reference, shift)
            loss, self.cluster_sizes_ = blocks.reduce(total_loss, add, fitted, mu)
            self._store_loss(loss, self.cluster_sizes_)
        labels = self.predict(X)
        if is_lazy(X):  # the sizes of all blocks are known by now
            labels._chunks = (tuple(np.diff(blocks.firsts).tolist()),)
        self.labels_ = labels
        return self

    def predict(self, X: Any) -> Any:
        """Index of the closest centre of each row; lazy, cut as X is, if X is a Dask collection."""
        return self._map_rows(X, "predict")[:, 0] if is_lazy(X) else super().predict(X)

    def transform(self, X: Any) -> Any:
        """Square root of the penalised distance of rows to every centre; lazy as ``predict``."""
        return self._map_rows(X, "transform") if is_lazy(X) else super().transform(X)

    def impute(self, X: Any) -> Any:
        """Fill missing values from the centre of the row; lazy as ``predict``.

        A Dask array gives a Dask array (sparse blocks become dense), a dataframe a dataframe.
        """
        if not is_frame(X):
            return self._map_rows(X, "impute") if is_lazy(X) else super().impute(X)
        model, dtype = self._in_memory(), self._rows_of(X, reset=False).dtype
        empty = np.empty((0, self.n_features_in_), dtype)
        return X.map_partitions(_filled_frame, model, empty, meta=like_input(empty, X._meta))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the penalised loss of X at the fitted centres, computed now."""
        if not is_lazy(X):
            return super().score(X, y, sample_weight)
        delayed = require("dask", "dask").delayed
        model = delayed(self._in_memory(), traverse=False)
        parts = with_weights(self._rows_of(X, reset=False), sample_weight)
        return math.fsum(compute(*(delayed(_score)(*part, model) for part in parts)))

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
        super()._check_parameters()
        check_missing_values(self.missing_values)
        if self.persist not in (True, False, "auto"):
            raise ValueError(f"persist must be True, False or 'auto'; got {self.persist!r}.")

    def _rows_of(self, X: Any, *, reset: bool) -> Any:
        """The blocks of rows, a Dask array; features are remembered (``reset``) or checked."""
        rows = by_rows(X)
        validate_data(self, X._meta if is_frame(X) else rows, reset=reset, skip_check_array=True)
        return rows

    def _with_reference(self, blocks: Blocks) -> Blocks:
        """The blocks with their reference, and ``lam_``: as given, or chosen from a sample.

        Refuses and warns as for a table in memory.
        """
        summary = blocks.summary
        first_rows, _ = blocks.take(np.arange(min(ROWS_TO_INSPECT, summary.n_rows)))
        reference = check_summary(first_rows, summary, self._reference(), self)
        check_enough_rows(summary, self.n_clusters)
        rows: Any = replace(blocks, reference=reference)
        if is_auto(self.lam) or is_auto(self._reference()):
            rows = rows.sample(np.random.RandomState(0))
        rows, self.lam_, _ = self._choose(rows, **self._stopping_rule())
        self.reference_ = rows.reference
        return replace(blocks, reference=rows.reference)

    def _run(self, blocks: Blocks, X: Any) -> StartResults:
        """Run the starts to their ends."""
        summary = blocks.summary
        centers = self._starts(blocks, X, check_random_state(self.random_state))
        check_scale(summary, self.lam_, self.reference_, centers)
        starts = Starts(
            centers, penalties(self.lam_, len(centers), self.n_features_in_), blocks.reference,
            blocks.means, weights=summary.total_weight, **self._stopping_rule(),
        )  # fmt: skip

        def progress(ended: int) -> None:
            loss, left = last_losses(starts).min(), starts.count - ended
            line = f"iteration {starts.n_iter.max()}: loss {loss:.6g}, {left} start(s) go on"
            log_line(line, bool(self.verbose))

        lloyd(BlockRows(blocks), starts, progress)
        return StartResults.of(starts)

    def _map_rows(self, X: Any, method: str) -> Any:
        """What a method of the model gives for every block, as a Dask array of two dimensions."""
        model, table = self._in_memory(), self._rows_of(X, reset=False)
        width = {"predict": 1, "transform": len(model.cluster_centers_), "impute": table.shape[1]}
        dtype = np.dtype(np.float32 if table.dtype == np.float32 else np.float64)
        empty = np.empty((0, width[method]), np.int32 if method == "predict" else dtype)
        return table.map_blocks(
            _apply, require("dask", "dask").delayed(model, traverse=False), method, empty,
            table.numblocks[0], chunks=(table.chunks[0], empty.shape[1:]), meta=empty,
        )  # fmt: skip


# --- fitted centres on the rows of a chunk --------------------------------------------------------


def _apply(
    chunk: Any, model: Any, method: str, empty: np.ndarray, n_blocks: int, block_id: tuple[int, int]
) -> np.ndarray:
    with of_block(block_id[0], n_blocks):
        rows = read_rows(chunk, model.n_features_in_)
        if not rows.shape[0]:
            return empty
        result = np.asarray(getattr(model, method)(rows), empty.dtype)
        return result.reshape(-1, empty.shape[1])


def _filled_frame(frame: Any, model: Any, empty: np.ndarray) -> Any:
    rows = read_rows(frame, model.n_features_in_)
    return like_input(model.impute(rows).astype(empty.dtype) if len(rows) else empty, frame)


def _score(chunk: Any, weights: Any, model: Any) -> float:
    rows = read_rows(chunk, model.n_features_in_)
    weights = read_weights(weights, rows)
    return model.score(rows, sample_weight=weights) if weights.any() else 0.0
