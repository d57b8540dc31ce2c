"""A table under a fitted model: what labels, summary, model file and page say of it, computed once.

The distances to the centres are computed in one pass, and one verdict gives stability, confidence
and the noise for new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..metrics import Verdict, annotation_agreement, verdict
from ..metrics._annotations import agreement
from ..metrics._markers import Contrasts, contrasts
from ..metrics._quality import silhouettes
from ..missingness._diagnose import Cells, cells_of, observed_by_row


class FittedTable:
    """Rows, a fitted k-means model, and what it says of them.

    Parameters
    ----------
    X : array with NaN, or CSR matrix whose stored entries are observed
        The values as they were clustered (after preparation).
    model : fitted MNARKMeans, MNARKMeansCV or MiniBatchMNARKMeans
    ids, features : sequences of str, optional
        Names of rows and columns; numbers if not given.
    labels : array of shape (n_samples,), optional
        The model's own labels of these rows, where it has them; else they are predicted.
    annotations : mapping, optional
        What else is known of the rows: name -> one value per row, None where unknown.
    classes : sequence of str, optional
        Annotations that are known not to be batches: the classes looked for.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> X = np.array([[0.0, 1.0], [0.2, np.nan], [5.0, 6.0], [5.1, 6.2]])
    >>> fitted = FittedTable(X, MNARKMeans(2, lam=0.5, random_state=0).fit(X))
    >>> fitted.sizes.tolist(), fitted.missing_by_row.tolist()
    ([2, 2], [0.0, 0.5, 0.0, 0.0])
    """

    def __init__(
        self,
        X: Any,
        model: Any,
        *,
        ids: Sequence[Any] | None = None,
        features: Sequence[str] | None = None,
        labels: Any = None,
        annotations: Mapping[str, Sequence[Any]] | None = None,
        classes: Sequence[str] = (),
    ) -> None:
        n, p = X.shape
        self.X, self.model = X, model
        self.ids = np.array(range(n) if ids is None else ids, dtype=object)
        self.features = [f"x{j}" for j in range(p)] if features is None else list(features)
        self.annotations = dict(annotations or {})
        self.classes = set(classes)
        self.labels = np.asarray(model.predict(X) if labels is None else labels)
        self.n_clusters = len(model.cluster_centers_)

    @cached_property
    def distances(self) -> np.ndarray:
        """(n, k) square roots of the penalised distances to the centres."""
        return np.asarray(self.model.transform(self.X), dtype=float)

    @property
    def own_distance(self) -> np.ndarray:
        """(n,) distance to the row's own centre."""
        return self.distances[np.arange(len(self.labels)), self.labels]

    @cached_property
    def missing_by_row(self) -> np.ndarray:
        """(n,) share of missing entries."""
        return 1.0 - observed_by_row(self.X) / self.X.shape[1]

    @cached_property
    def verdict(self) -> Verdict:
        """Separate groups or slices of one continuum; confidence and stability come with it."""
        return verdict(self.X, self.model)

    def judge(self, progress: Callable[[int, int], None]) -> None:
        """Make the verdict, which takes long on large tables, and tell how far it is."""
        self.verdict = verdict(self.X, self.model, progress=progress)

    @property
    def confidence(self) -> np.ndarray:
        """(n,) confidence of each row in its own cluster; NaN where nothing can be said."""
        return self.verdict.confidence

    @cached_property
    def next_cluster(self) -> np.ndarray:
        """(n,) the nearest other centre; -1 where there is none."""
        if self.n_clusters == 1:
            return np.full(len(self.labels), -1)
        others = self.distances.copy()
        others[np.arange(len(others)), self.labels] = np.inf
        return others.argmin(axis=1)

    @property
    def next_distance(self) -> np.ndarray:
        """(n,) distance to the nearest other centre; NaN where there is none."""
        found = self.distances[np.arange(len(self.labels)), self.next_cluster]
        return found if self.n_clusters > 1 else np.full(len(found), np.nan)

    @property
    def silhouettes(self) -> np.ndarray:
        """(n,) by distances to centres; 0 where there is one cluster."""
        if self.n_clusters == 1:
            return np.zeros(len(self.labels))
        return silhouettes(self.own_distance, self.next_distance, self.labels)

    @cached_property
    def cells(self) -> Cells:
        """Of each cluster and feature: rows, observed entries and their mean."""
        return cells_of(self.X, self.labels, self.n_clusters)

    @property
    def sizes(self) -> np.ndarray:
        """(k,) rows of each cluster."""
        return self.cells.sizes

    @cached_property
    def contrasts(self) -> Contrasts:
        """Each cluster against the other rows, feature by feature: the markers."""
        return contrasts(self.X, self.labels, self.n_clusters)

    @property
    def stability(self) -> np.ndarray | None:
        """(k,) how much of each cluster is found again by fits to other rows; None if unknown."""
        found = self.verdict.agreement
        return None if np.isnan(found).any() or self.n_clusters == 1 else found

    @cached_property
    def batch_warnings(self) -> list[str]:
        """Annotations that the clusters follow as they would follow a batch."""
        others = {n: v for n, v in self.annotations.items() if n not in self.classes}
        found = annotation_agreement(others, self.labels)
        return [one.sentence for one in found if one.warns]

    @cached_property
    def agreement(self) -> list[dict[str, Any]]:
        """How far each annotation agrees with the clusters."""
        return agreement(self.annotations, self.labels)
