"""A table under a fitted model: what labels, summary, model and page say of it, computed once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..metrics import verdict
from ..metrics._annotations import agreement
from ..metrics._markers import contrasts
from ..metrics._quality import silhouettes
from ..missingness._diagnose import cells_of, observed_by_row


class FittedTable:
    """Rows, a fitted k-means model, and what it says of them.

    X are the values as they were clustered: an array with NaN, or a CSR matrix whose stored entries
    are observed. Annotations are name -> one value per row; `classes` are those known not to be
    batches. `progress` takes (done, total) while the verdict is made, which takes long on large
    tables.

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
        known = (annotations or {}).items()
        self.annotations = [agreement(name, values, self.labels) for name, values in known]
        distances = np.asarray(model.transform(X), dtype=float)
        self.own_distance = distances[np.arange(n), self.labels]
        found = silhouettes(distances, self.labels)
        self.silhouettes, self.next_cluster, self.next_distance = found
        self.missing_by_row = 1.0 - observed_by_row(X) / p
        self.cells = cells_of(X, self.labels, k)
        self.sizes = self.cells.sizes
        self.contrasts = contrasts(X, self.labels, k)
        self.verdict = verdict(X, model, progress=progress)
        self.confidence = self.verdict.confidence
        again = self.verdict.agreement  # of each cluster, what refits to other rows find again
        self.stability = None if k == 1 or np.isnan(again).any() else again
        warned = [one for one in self.annotations if one.warns and one.name not in classes]
        self.batch_warnings = [one.sentence for one in sorted(warned, key=lambda one: -one.nested)]
