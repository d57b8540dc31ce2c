"""Two coordinates per row, for maps of the clusters: drawn by displays and in the report.

They come from the values and their gaps alone, never from the labels: a picture of rows filled from
their own centres would show islands whatever the data. "pca" is the plane of `plane`; "umap" runs
on its first directions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._io import require
from .plane import fit_plane

DIRECTIONS_FOR_UMAP = 15


class Embedding(NamedTuple):
    """Two coordinates per row, what the axes are called, how much of the variance they hold."""

    points: np.ndarray
    axis_names: tuple[str, str]
    explained: tuple[float, float] | None


def embed(
    X: Any,
    lam: Any = 0.0,
    reference: Any = 0.0,
    method: str = "pca",
    random_state: int | None = 0,
) -> Embedding:
    """Two coordinates per row: main directions of a table with gaps, or UMAP of them.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan]])
    >>> embed(X).axis_names
    ('PC 1', 'PC 2')
    """
    if method == "umap":
        umap = require("umap", "umap")
        plane = fit_plane(X, lam, reference, DIRECTIONS_FOR_UMAP)
        reducer = umap.UMAP(random_state=random_state, n_jobs=1)
        return Embedding(reducer.fit_transform(plane.points), ("UMAP 1", "UMAP 2"), None)
    if method != "pca":
        raise ValueError(f"method must be 'pca' or 'umap', got {method!r}")
    plane = fit_plane(X, lam, reference)
    points, share = plane.points, plane.explained
    if points.shape[1] < 2:
        points, share = np.column_stack([points, np.zeros(len(points))]), np.append(share, 0.0)
    return Embedding(points, ("PC 1", "PC 2"), (float(share[0]), float(share[1])))
