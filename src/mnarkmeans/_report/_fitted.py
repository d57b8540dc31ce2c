"""A table under a fitted model: what labels, summary, model and page say of it, computed once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..metrics import annotation_agreement, verdict
from ..metrics._markers import contrasts
from ..metrics._quality import silhouettes
from ..missingness._diagnose import cells_of, observed_by_row


class FittedTable:
    """Rows, a fitted k-means model, and what it says of them.

    Parameters
    ----------
    X : array with NaN, or CSR matrix whose stored entries are observed
        The values as they were clustered (after preparation).
    model : fitted MNARKMeans
    labels : array of shape (n_samples,)
        The cluster of each row.
    ids, features : sequences, optional
        Names of rows and columns; numbers if not given.
    annotations : mapping, optional
        What else is known of the rows: name -> one value per row, None where unknown.
    classes : collection of str, optional
        Annotations that are known not to be batches: the classes looked for.
    progress : callable, optional
        Takes (done, total) while the verdict is made, which takes long on large tables.

    Attributes
    ----------
    distances : (n, k) square roots of the penalised distances to the centres
    own_distance, next_distance, next_cluster : (n,)
        To the row's own centre, to the nearest other one, and which that is (NaN, None: no other).
    missing_by_row : (n,) share of missing entries
    silhouettes : (n,) by distances to centres; 0 where there is one cluster
    verdict : separate groups or slices of one continuum, and how sure that is
    confidence : (n,) of each row in its own cluster; NaN where nothing can be said
    stability : (k,) how much of each cluster is found again by fits to other rows; None if unknown
    cells : of each cluster and feature: rows, observed entries and their mean
    sizes : (k,) rows of each cluster
    contrasts : each cluster against the other rows, feature by feature: the markers
    batch_warnings : annotations that the clusters follow as they would follow a batch, in sentences

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> X = np.array([[0.0, 1.0], [0.2, np.nan], [5.0, 6.0], [5.1, 6.2]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> fitted = FittedTable(X, model, model.labels_)
    >>> fitted.sizes.tolist(), fitted.missing_by_row.tolist()
    ([2, 2], [0.0, 0.5, 0.0, 0.0])
    """

    def __init__(
        self,
        X: Any,
        model: Any,
        labels: Any,
        *,
        ids: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        annotations: Mapping[str, Sequence[Any]] | None = None,
        classes: Collection[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        (n, p), k = X.shape, len(model.cluster_centers_)
        self.X, self.model, self.labels, self.n_clusters = X, model, np.asarray(labels), k
        self.ids = [str(name) for name in (range(n) if ids is None else ids)]
        self.features = [f"x{j}" for j in range(p)] if features is None else [*map(str, features)]
        self.annotations = dict(annotations or {})
        self.distances = np.asarray(model.transform(X), dtype=float)
        every = np.arange(n)
        self.own_distance = self.distances[every, self.labels]
        self.next_cluster, self.next_distance = np.full(n, None), np.full(n, np.nan)
        self.silhouettes = np.zeros(n)
        if k > 1:
            others = self.distances.copy()
            others[every, self.labels] = np.inf
            self.next_cluster, self.next_distance = others.argmin(axis=1), others.min(axis=1)
            self.silhouettes = silhouettes(self.own_distance, self.next_distance, self.labels)
        self.missing_by_row = 1.0 - observed_by_row(X) / p
        self.cells = cells_of(X, self.labels, k)
        self.sizes = self.cells.sizes
        self.contrasts = contrasts(X, self.labels, k)
        self.verdict = verdict(X, model, progress=progress)
        self.confidence = self.verdict.confidence
        again = self.verdict.agreement
        self.stability = None if k == 1 or np.isnan(again).any() else again
        unknown = {n: v for n, v in self.annotations.items() if n not in classes}
        found = annotation_agreement(unknown, self.labels)
        self.batch_warnings = [one.sentence for one in found if one.warns]
