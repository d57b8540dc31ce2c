"""BatchCenter: remove what differs between runs, plates or plexes, not between groups.

A row i of batch b and cluster l is modelled as x_ij = mu_lj + s_bj + noise. Shifts s and centres mu
minimise the penalised loss together, in alternation with the clustering of the shifted table:

    L = sum_i [ sum_{j observed} (x_ij - mu_lj - s_bj)^2
                + lam sum_{j missing} (mu_lj + s_bj - c_j)^2 ]

so a missing value counts for the shift as it does for the centres: a batch that lost its low values
below a detection limit does not look high. The shifts of a feature sum to zero over the batches.
They are drawn towards zero by s * omega / (omega + sigma_j^2 / n_bj), where n_bj is the number of
observed values and omega the variance of the shifts, estimated over all features (empirical Bayes).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._kmeans import MNARKMeans
from ._validation import by_position, check_count, check_table

ROUNDS = 5  # of clustering; the labels rarely change after the third
SWEEPS = 20  # of least squares for centres and shifts, per round


@dataclass(repr=False, eq=False)
class BatchCenter(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract a shift per batch and feature, estimated together with the clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters while the shifts are estimated: as many as you want to find, or the
        most that you consider.
    lam, reference
        As for :class:`mnarkmeans.MNARKMeans`.
    random_state : int, RandomState instance or None, default=None
        Seed of the clustering.
    n_jobs : int or None, default=None
        Number of threads.

    Attributes
    ----------
    batches_ : ndarray of shape (n_batches,)
        The batches, sorted.
    shifts_ : ndarray of shape (n_batches, n_features)
        What is subtracted from the observed values of each batch.
    labels_ : ndarray of shape (n_samples,)
        Clusters with which the shifts were estimated.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.tables import BatchCenter
    >>> rng = np.random.default_rng(0)
    >>> group, run = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    >>> X = rng.normal(size=(40, 5)) + 6.0 * group[:, None] + 9.0 * run[:, None]
    >>> corrected = BatchCenter(2, random_state=0).fit_transform(X, batch=run)
    >>> difference = corrected[run == 1].mean() - corrected[run == 0].mean()
    >>> bool(abs(difference) < 0.5)
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    lam: Any = "auto"
    reference: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None, *, batch: Any = None, groups: Any = None) -> Self:
        """Estimate the shifts.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Dense, missing values as NaN.
        y : ignored
        batch : array of shape (n_samples,)
            The batch of each row.
        groups : array of shape (n_samples,), default=None
            Known groups, if there are any. They are used only to refuse a design in which batches
            and groups cannot be told apart.

        Returns
        -------
        self : BatchCenter
        """
        X = self._read(X, reset=True)
        self.batches_, codes = np.unique(batch_names(batch, len(X)), return_inverse=True)
        if 1 < len(self.batches_) == len(X):
            raise ValueError(
                "Every row is a batch of its own; name the run, plate or plex instead."
            )
        if groups is not None:
            check_design(codes, groups)
        self.shifts_, self.labels_ = self._estimate(X, codes)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, batch: Any = None, groups: Any = None) -> Any:
        """Fit, then subtract the shifts."""
        return self.fit(X, y, batch=batch, groups=groups).transform(X, batch=batch)

    def transform(self, X: Any, *, batch: Any = None) -> Any:
        """Subtract the shifts; missing values stay missing.

        A batch that was absent from ``fit`` is refused: its shift is unknown.
        """
        X, shifts = self._with_shifts(X, batch)
        return X - shifts

    def inverse_transform(self, X: Any, *, batch: Any = None) -> Any:
        """Add the shifts again."""
        X, shifts = self._with_shifts(X, batch)
        return X + shifts

    def _with_shifts(self, X: Any, batch: Any) -> tuple[np.ndarray, np.ndarray]:
        """The table, and what each row's batch shifts."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        return X, self.shifts_[batch_codes(batch_names(batch, len(X)), self.batches_)]

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        return check_table(self, X, reset=reset, accept_sparse=False, ensure_all_finite="allow-nan")

    def _estimate(self, X: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        observed = ~np.isnan(X)
        of_batch = np.eye(len(self.batches_))[codes]  # (n, B)
        counts = of_batch.T @ observed
        values = np.where(observed, X, 0.0)
        overall = values.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        shifts = np.where(counts > 0, of_batch.T @ values / np.maximum(counts, 1) - overall, 0.0)
        shifts -= shifts.mean(axis=0)
        k = min(check_count("n_clusters", self.n_clusters), max(1, len(X) // 2))
        names = getattr(self, "feature_names_in_", range(X.shape[1]))
        model = MNARKMeans(
            k, lam=by_position("lam", self.lam, names),
            reference=by_position("reference", self.reference, names),
            random_state=self.random_state, n_jobs=self.n_jobs,
        )  # fmt: skip
        labels = np.empty(0)
        for _ in range(ROUNDS):
            shifted = X - shifts[codes]
            before, labels = labels, model.fit(shifted).labels_
            # A detection limit belongs to the values as measured, whatever their batch.
            is_limit = model.reference_ == np.fmin.reduce(shifted, axis=0)
            point = np.where(is_limit, np.fmin.reduce(X, axis=0), model.reference_)
            weights = np.where(observed, 1.0, model.lam_)
            filled = np.where(observed, X, point)
            shifts, residual = _least_squares(filled, weights, np.eye(k)[labels], of_batch, shifts)
            shifts = _shrink(shifts, counts, np.where(observed, residual, 0.0), k)
            if np.array_equal(before, labels):
                break
        return shifts, labels


def batch_names(batch: Any, n_rows: int) -> np.ndarray:
    """The batch of each row, none of them unknown."""
    if batch is None:
        raise TypeError("batch= is needed: the batch (run, plate, plex) of each row.")
    names = np.asarray(batch)
    if names.shape != (n_rows,):
        raise ValueError(f"batch must name each of the {n_rows} rows; it has {names.shape}.")
    unknown = np.array([name is None or str(name != name) != "False" for name in names.tolist()])
    if unknown.any():
        raise ValueError(
            f"{unknown.sum()} row(s) have no batch, the first is row {unknown.argmax()}. "
            "Give every row a batch, or leave these rows out."
        )
    return names.astype(str) if names.dtype == object else names


def batch_codes(names: np.ndarray, batches: np.ndarray) -> np.ndarray:
    """Positions of these names among the sorted batches of the fit."""
    codes = np.searchsorted(batches, names).clip(max=len(batches) - 1)
    unknown = batches[codes] != names
    if unknown.any():
        raise ValueError(
            f"Batch {names[unknown][0]!s} was not among those of the fit, so its shift is not "
            "known. Fit again with its rows."
        )
    return codes


def _least_squares(
    values: np.ndarray, weights: np.ndarray, of_cluster: np.ndarray, of_batch: np.ndarray,
    shifts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Shifts (B, p) of the two-way model, by alternating weighted means, and what is left."""
    in_cluster = np.maximum(of_cluster.T @ weights, 1e-9)
    in_batch = np.maximum(of_batch.T @ weights, 1e-9)
    for _ in range(SWEEPS):
        centers = of_cluster.T @ (weights * (values - of_batch @ shifts)) / in_cluster
        shifts = of_batch.T @ (weights * (values - of_cluster @ centers)) / in_batch
        shifts = shifts - shifts.mean(axis=0)
    return shifts, values - of_cluster @ centers - of_batch @ shifts


def _shrink(shifts: np.ndarray, counts: np.ndarray, residual: np.ndarray, k: int) -> np.ndarray:
    """Empirical Bayes: shifts that vary no more than noise would become zero."""
    freedom = np.maximum(counts.sum(axis=0) - k - len(counts) + 1, 1)
    error = (residual**2).sum(axis=0) / freedom / np.maximum(counts, 1)
    known = counts > 0
    variance = max(np.mean((shifts**2 - error)[known]), 0.0) if known.any() else 0.0
    return np.where(known, shifts * variance / np.maximum(variance + error, 1e-300), 0.0)


def check_design(codes: np.ndarray, groups: Any) -> None:
    """Refuse batches and groups that cannot be told apart: no chain of shared rows joins them."""
    _, groups = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    n_batches, n_groups = codes.max() + 1, groups.max() + 1
    joined = np.zeros((n_batches + n_groups,) * 2)
    joined[codes, n_batches + groups] = 1
    parts, _ = connected_components(csr_array(joined), directed=False)
    if parts > 1 and n_batches > 1:
        raise ValueError(
            "Batches and groups cannot be told apart: some batches share no group, not even "
            "through other batches, so a shift between them could be either. No correction is "
            "possible; the design needs at least one group in several batches."
        )
