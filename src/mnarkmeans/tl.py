"""Cluster the cells of an AnnData object, the scanpy way: results go into the object.

What is written, with ``key_added="mnar_kmeans"``:

    obs["mnar_kmeans"]            cluster of each cell, categorical of strings
    obs["mnar_kmeans_distance"]   square root of its penalised distance to its centre
    obs["mnar_kmeans_confidence"] how sure its cluster is (`mnarkmeans.metrics.confidence`)
    varm["mnar_kmeans"]           centres (n_vars, k), NaN for genes that took no part
    uns["mnar_kmeans"]            params, lam, reference, inertia, n_iter, verdict, ...
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from ._batch import BatchCenter
from ._cv import MNARKMeansCV
from ._io import require
from ._kmeans import MNARKMeans
from ._observed import with_nan
from ._solver import log_line
from ._validation import (
    MissingDataWarning,
    by_position,
    check_lam,
    check_reference,
    summarise,
)
from .metrics import verdict
from .missingness._paragraph import lam_words

__all__ = ["mnar_kmeans"]

BACKED_ROWS = 4096  # read from a file at a time
LARGEST_DENSE = 1 << 28  # entries: 2 GB of numbers


def mnar_kmeans(
    adata: Any,
    n_clusters: int | Sequence[int],
    *,
    lam: Any = "auto",
    reference: Any = None,
    layer: str | None = None,
    use_rep: str | None = None,
    use_highly_variable: bool | None = None,
    zero_is_missing: bool | None = None,
    batch_key: str | None = None,
    key_added: str = "mnar_kmeans",
    random_state: int | np.random.RandomState | None = None,
    rng: int | np.random.Generator | None = None,
    copy: bool = False,
    verbose: bool = True,
    **fitting: Any,
) -> Any:
    """Cluster the cells of an AnnData object with `mnarkmeans.MNARKMeans`.

    Expects log-normalised expression (``sc.pp.normalize_total``, ``sc.pp.log1p``) that is not
    scaled or centred: zero must still mean "not detected". Raw counts are refused.

    Parameters
    ----------
    adata : AnnData
        Cells by genes; dense, sparse, backed by a file, or Dask arrays.
    n_clusters : int or sequence of int
        Number of clusters, or the numbers to choose from by stability.
    lam, reference : as in `mnarkmeans.MNARKMeans`
        Arrays have one number per gene of `adata`, a dict or a Series goes by their names.
    layer : str, optional
        Layer to use instead of ``adata.X``.
    use_rep : str, optional
        Entry of ``adata.obsm`` to use instead of genes; the centres (columns x k) are then stored
        in ``uns[key_added]["centers"]``.
    use_highly_variable : bool, optional
        Use only the genes marked in ``var["highly_variable"]``. None does so if they are marked.
    zero_is_missing : bool, optional
        Zeros, stored or not, are missing values. With False only NaN is missing, and a sparse
        matrix is made dense. None: True for genes, False for `use_rep`.
    batch_key : str, optional
        Column of ``adata.obs`` with the batch of each cell. Differences between batches are removed
        before clustering (`mnarkmeans.tables.BatchCenter`) and stored in
        ``uns[key_added]["batch_shifts"]``. The matrix is made dense; Dask arrays are refused.
    key_added : str, default="mnar_kmeans"
        Under which name results are stored.
    random_state, rng : int, RandomState or None; int, numpy Generator or None, default=None
        The seed, by the name that scikit-learn or scverse has for it.
    copy : bool, default=False
        Return a changed copy and leave `adata` as it is.
    verbose : bool, default=True
        Print one line about the result.
    **fitting
        `n_init`, `max_iter`, `tol`, `algorithm`, `init`, `n_jobs` of `mnarkmeans.MNARKMeans`.

    Returns
    -------
    AnnData or None
        The changed copy if ``copy=True``.

    Notes
    -----
    Genes without any observed value are left out. `mnarkmeans.metrics.cluster_markers` finds the
    genes that make a cluster. For Dask arrays there are no verdict and no confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from mnarkmeans import tl
    >>> counts = np.random.default_rng(0).poisson([9, 9, 1, 1], size=(200, 4)).astype(float)
    >>> counts[100:] = counts[100:, ::-1]
    >>> adata = AnnData(np.log1p(counts))
    >>> tl.mnar_kmeans(adata, 2, lam=0.5, random_state=0)
    mnar_kmeans: clusters of 100, 100 cells, lam 0.5. Separate groups.
    >>> adata.obs["mnar_kmeans"].cat.categories.tolist()
    ['0', '1']
    >>> adata.varm["mnar_kmeans"].shape
    (4, 2)
    """
    require("anndata", "anndata")
    if rng is not None:  # estimators take an integer or a RandomState
        if random_state is not None:
            raise ValueError("random_state and rng are two names of the seed; give one of them.")
        random_state = int(np.random.default_rng(rng).integers(2**31 - 1))
    if zero_is_missing is None:
        zero_is_missing = use_rep is None
    adata = adata.copy() if copy else adata
    matrix, columns = _matrix_of(adata, layer, use_rep, use_highly_variable)
    missing = 0.0 if zero_is_missing else np.nan
    X, used = _usable(matrix, columns, missing)
    if zero_is_missing:
        _check_expression(X)
    p, names = len(used), adata.var_names if use_rep is None else range(len(used))
    lam, reference = by_position("lam", lam, names), by_position("reference", reference, names)
    chosen: dict[str, Any] = {"lam": lam, "reference": reference, "random_state": random_state}
    if np.ndim(lam):
        chosen["lam"] = np.asarray(check_lam(lam, p))[used]
    if np.ndim(reference):
        chosen["reference"] = check_reference(reference, p, np.zeros(p))[used]
    results: dict[str, Any] = {}
    if batch_key is not None:
        batches = _entry(adata.obs, batch_key, "obs").to_numpy()
        center = BatchCenter(int(np.max(n_clusters)), n_jobs=fitting.get("n_jobs"), **chosen)
        X, missing = center.fit_transform(_dense_with_nan(X, missing), batch=batches), np.nan
        results["batches"] = center.batches_.astype(str)
        results["batch_shifts"] = _of_all_columns(center.shifts_, used)
    with warnings.catch_warnings():
        if zero_is_missing:  # zero is the detection limit, however far from it a gene is
            warnings.filterwarnings("ignore", "The reference lies far outside")
        model = _estimator(X, n_clusters, missing_values=missing, **chosen, **fitting).fit(X)
    params = dict(
        n_clusters=n_clusters, lam=lam, reference=reference, layer=layer, use_rep=use_rep,
        use_highly_variable=use_highly_variable, zero_is_missing=zero_is_missing,
        batch_key=batch_key, random_state=random_state,
        n_init=model.n_init, max_iter=model.max_iter, tol=model.tol,
    )  # fmt: skip
    results["params"] = _writable(params)
    results |= _store_results(adata, key_added, model, X, used, of_genes=use_rep is None)
    adata.uns[key_added] = results
    sizes = np.bincount(np.asarray(model.labels_), minlength=results["n_clusters"])
    headline = results.get("verdict", {}).get("headline", "")
    found = f"clusters of {', '.join(map(str, sizes))} cells, lam {lam_words(model.lam_)}."
    log_line(f"{key_added}: {found} {headline}".rstrip(), verbose)
    return adata if copy else None


def _estimator(X: Any, n_clusters: Any, *, lam: Any, **settings: Any) -> Any:
    """The estimator for this matrix, with k given or to be chosen."""
    if _is_dask(X):
        if np.ndim(n_clusters):
            raise ValueError("With a Dask array n_clusters must be one number.")
        from .dask import MNARKMeans as DaskMNARKMeans

        return DaskMNARKMeans(n_clusters, lam=lam, **settings)
    if np.ndim(n_clusters) == 0:
        return MNARKMeans(n_clusters, lam=lam, **settings)
    if np.ndim(lam):
        raise ValueError("With several n_clusters lam must be one number or 'auto'.")
    lams: Any = lam if isinstance(lam, str) else [lam]
    return MNARKMeansCV(list(n_clusters), lams=lams, **settings)


# --- the matrix


def _matrix_of(
    adata: Any, layer: str | None, use_rep: str | None, use_highly_variable: bool | None
) -> tuple[Any, np.ndarray]:
    """The matrix to cluster, and the mask of its columns to use."""
    if use_rep is not None:
        if layer or use_highly_variable:
            raise ValueError(
                "use_rep= replaces the genes: leave layer= and use_highly_variable= out."
            )
        matrix = _entry(adata.obsm, use_rep, "obsm")
        matrix = matrix.to_numpy() if hasattr(matrix, "to_numpy") else matrix
        return matrix, np.ones(matrix.shape[1], bool)
    matrix = adata.X if layer is None else _entry(adata.layers, layer, "layers")
    if matrix is None:
        raise ValueError("adata.X is empty; name the layer= or use_rep= to cluster on.")
    marked = "highly_variable" in adata.var
    if use_highly_variable and not marked:
        raise KeyError(
            "use_highly_variable=True, but adata.var has no column 'highly_variable'. "
            "Run scanpy.pp.highly_variable_genes first."
        )
    if not marked or use_highly_variable is False:
        return matrix, np.ones(adata.n_vars, bool)
    return matrix, adata.var["highly_variable"].to_numpy(dtype=bool)


def _entry(mapping: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in mapping:
        present = ", ".join(map(repr, mapping.keys())) or "none"
        raise KeyError(f"{key!r} is not in adata.{where}; there are: {present}.")
    return mapping[key]


def _usable(matrix: Any, columns: np.ndarray, missing: float) -> tuple[Any, np.ndarray]:
    """The columns to use that are observed at least once, and their mask."""
    X = _in_memory(matrix, columns)
    X = _dense(X) if np.isnan(missing) else X
    X = X if np.issubdtype(X.dtype, np.floating) else X.astype(np.float64)
    observed = _observed_columns(X, missing)
    if not observed.any():
        raise ValueError(
            f"None of the {X.shape[0]} x {X.shape[1]} values is observed; there is nothing to "
            "cluster. Check layer=, use_highly_variable= and zero_is_missing=."
        )
    used = columns.copy()
    used[used] = observed
    return (X if observed.all() else X[:, observed]), used


def _is_dask(matrix: Any) -> bool:
    return hasattr(matrix, "__dask_graph__")


def _in_memory(matrix: Any, columns: np.ndarray) -> Any:
    """Some columns of a matrix, in memory unless it is a Dask array."""
    if _is_dask(matrix):
        return matrix.rechunk({1: -1})[:, np.flatnonzero(columns)]
    if isinstance(matrix, np.ndarray) or sparse.issparse(matrix):
        X = matrix if columns.all() else matrix[:, np.flatnonzero(columns)]
    elif getattr(matrix, "format", None) == "csc":
        X = matrix.to_memory()[:, columns]  # by rows it would be read once per slice
    else:
        parts = [matrix[rows][:, columns] for rows in gen_batches(matrix.shape[0], BACKED_ROWS)]
        X = sparse.vstack(parts) if sparse.issparse(parts[0]) else np.concatenate(parts)
    return X.tocsr() if sparse.issparse(X) else X


def _observed_columns(X: Any, missing: float) -> np.ndarray:
    if not _is_dask(X):
        return summarise(X, missing, np.ones(X.shape[0]), threads=1)[-1].observed > 0
    from .dask._blocks import read_blocks

    with read_blocks(X, None, missing, persist=False) as blocks:
        return blocks.summary.observed > 0


def _check_expression(X: Any) -> None:
    """Refuse counts, warn about scaled values: zero has to mean "not detected"."""
    rows = X.blocks[0].compute() if _is_dask(X) else X
    values = rows.data if sparse.issparse(rows) else rows
    values = values[np.isfinite(values)]
    if values.size and values.max() > 1 and not np.any(values % 1):
        raise ValueError(
            "The matrix holds whole numbers: raw counts. Prepare them first with\n"
            "    sc.pp.normalize_total(adata)\n"
            "    sc.pp.log1p(adata)\n"
            "or name the layer= that holds log-normalised expression."
        )
    if values.size and values.min() < 0:
        warnings.warn(
            "The matrix holds negative values, so it was probably scaled or centred, and zero no "
            "longer means 'not detected'. Use log-normalised expression (layer=), or say "
            "zero_is_missing=False.",
            MissingDataWarning,
            stacklevel=3,
        )


def _dense_with_nan(X: Any, missing: float) -> np.ndarray:
    """The matrix in the form in which batches are corrected."""
    if _is_dask(X):
        raise ValueError("batch_key= does not work with Dask arrays. Call adata.to_memory() first.")
    if X.shape[0] * X.shape[1] > LARGEST_DENSE:
        raise ValueError(
            f"batch_key= makes the matrix dense, and {X.shape[0]} x {X.shape[1]} is too large. "
            "Mark the genes to use with scanpy.pp.highly_variable_genes."
        )
    return with_nan(_dense(X), missing)


def _dense(matrix: Any) -> Any:
    if _is_dask(matrix):
        return matrix.map_blocks(_dense, dtype=matrix.dtype, meta=np.empty((0, 0), matrix.dtype))
    return matrix.toarray() if sparse.issparse(matrix) else matrix


# --- the results


def _store_results(
    adata: Any, key: str, model: Any, X: Any, used: np.ndarray, *, of_genes: bool
) -> dict[str, Any]:
    """Write into obs and varm what the module's docstring lists, and return what uns gets."""
    k = len(model.cluster_centers_)
    labels, distances = np.asarray(model.labels_), np.asarray(model.transform(X))
    pandas, names = require("pandas", "anndata"), [str(label) for label in range(k)]
    adata.obs[key] = pandas.Categorical.from_codes(labels, categories=names)
    adata.obs[f"{key}_distance"] = distances[np.arange(len(labels)), labels]
    results: dict[str, Any] = {
        "n_clusters": k,
        "lam": _of_all_columns(model.lam_, used),
        "reference": _of_all_columns(model.reference_, used),
        "inertia": float(model.inertia_),
        "n_iter": int(model.n_iter_),
    }
    centers = _of_all_columns(model.cluster_centers_, used).T
    if of_genes:
        adata.varm[key] = centers
    else:
        results["centers"] = centers
    if isinstance(model, MNARKMeansCV):
        results["cv_results"] = {name: np.asarray(v) for name, v in model.cv_results_.items()}
    if not _is_dask(X):
        found = verdict(X, model)
        words = ("kind", "headline", "sentence")
        results["verdict"] = {name: getattr(found, name) for name in words}
        adata.obs[f"{key}_confidence"] = found.confidence
    return results


def _writable(params: dict[str, Any]) -> dict[str, Any]:
    """What an h5ad file can hold: numbers, strings and arrays, but neither None nor generators."""
    single = (bool, int, float, str, np.number)
    return {
        name: value if isinstance(value, single) else np.asarray(value)
        for name, value in params.items()
        if value is not None and not isinstance(value, np.random.RandomState)
    }


def _of_all_columns(values: Any, used: np.ndarray) -> Any:
    """Numbers of the columns used (the last axis), NaN for the others; a single number as it is."""
    if np.ndim(values) == 0:
        return float(values)
    whole = np.full((*np.shape(values)[:-1], len(used)), np.nan)
    whole[..., used] = values
    return whole
