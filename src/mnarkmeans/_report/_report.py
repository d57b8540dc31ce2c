"""The report of a fitted model, from Python."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .._io import write_bytes
from .._model_files import as_kmeans
from .._validation import values_with_nan
from ._content import FittedTable, page_of, search_facts
from ._render import render


class Report:
    """A finished report: shown by Jupyter as it is, written by `save`.

    Attributes
    ----------
    html : str
        The page.
    page : dict
        The numbers on it.
    """

    def __init__(self, page: dict[str, Any]) -> None:
        self.page = page

    @cached_property
    def html(self) -> str:
        return render(self.page)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, replacing what was there."""
        write_bytes(path, self.html.encode())

    def __repr__(self) -> str:
        data, k = self.page["data"], self.page["fit"]["k"]
        size = f"{data['rows']:,} rows, {data['features']:,} features"
        return f"<Report {self.page['title']!r}: {size}, {k} cluster{'s' if k != 1 else ''}>"

    def _repr_html_(self) -> str:
        look = "width:100%;height:80vh;min-height:600px;border:1px solid #ccc"
        name = escape(self.page["title"])
        return f'<iframe title="{name}" style="{look}" srcdoc="{escape(self.html)}"></iframe>'


def report(
    model: Any,
    X: Any,
    path: str | PathLike[str] | None = None,
    *,
    title: str = "Clusters",
    ids: Sequence[Any] | None = None,
    features: Sequence[str] | None = None,
    annotations: Mapping[str, Sequence[Any]] | None = None,
    embedding: str = "pca",
) -> Report:
    """The report of rows X under a fitted model: one HTML file that needs no network.

    Parameters
    ----------
    model : MNARKMeans, MNARKMeansCV or MiniBatchMNARKMeans, fitted
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The rows, as `predict` takes them.
    path : path, optional
        Where to write the page.
    title : str
        Heading of the page.
    ids, features : sequences, optional
        Names of rows and columns; those of a data frame if not given.
    annotations : mapping, optional
        What else is known of the rows (batch, group, time): name -> one value per row, None where
        unknown.
    embedding : {"pca", "umap"}
        How the rows are placed in the picture.

    Returns
    -------
    Report
        Shown in full by Jupyter; `save(path)` writes it.

    Examples
    --------
    >>> import mnarkmeans
    >>> from mnarkmeans.datasets import make_gaussian_clusters
    >>> X = make_gaussian_clusters(60, 4, 2, fraction=0.2, random_state=0).data
    >>> model = mnarkmeans.MNARKMeans(2, random_state=0).fit(X)
    >>> mnarkmeans.report(model, X, title="Two groups")
    <Report 'Two groups': 60 rows, 4 features, 2 clusters>
    """
    check_is_fitted(model)
    if not hasattr(model, "lam_") or not hasattr(model, "cluster_centers_"):
        raise TypeError(
            f"report needs a fitted MNARKMeans, MNARKMeansCV or MiniBatchMNARKMeans, got "
            f"{type(model).__name__}."
        )
    labels = model.predict(X)
    values = values_with_nan(X, getattr(model, "missing_values", np.nan))
    values = values.tocsr() if sp.issparse(values) else values
    n, p = values.shape
    if ids is None:
        ids = list(X.index) if hasattr(X, "iloc") else range(n)
    if features is None:
        unnamed = [f"x{j}" for j in range(p)]
        features = getattr(X, "columns", getattr(model, "feature_names_in_", unnamed))
    for name, names, size in (("ids", ids, n), ("features", features, p)):
        if len(names) != size:
            raise ValueError(f"{name} must be {size} names, got {len(names)}.")
    nameless = copy.copy(as_kmeans(model))  # the values are an array with NaN by now
    nameless.missing_values = np.nan
    nameless.__dict__.pop("feature_names_in_", None)
    fitted = FittedTable(
        values, nameless, labels, ids=ids, features=features, annotations=annotations
    )
    page = page_of(fitted, title, embedding)
    if hasattr(model, "cv_results_"):
        page |= search_facts(model, X, fitted.verdict)
    made = Report(page)
    if path is not None:
        made.save(path)
    return made
