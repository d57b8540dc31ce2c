"""Cluster the cells of an AnnData object, the scanpy way: results go into the object.

What is written, with ``key_added="mnar_kmeans"``:

    obs["mnar_kmeans"]            cluster of each cell, categorical of strings
    obs["mnar_kmeans_distance"]   square root of its penalised distance to its centre
    obs["mnar_kmeans_confidence"] how sure its cluster is (`mnarkmeans.metrics.confidence`)
    varm["mnar_kmeans"]           centres (n_vars, k), NaN for genes that took no part
    uns["mnar_kmeans"]            params, lam, reference, inertia, n_iter, loss_path, ...
    layers[impute_layer]          the filled matrix, only if asked for

There is no mathematics here: this module finds the matrix, asks MNARKMeans, and files the answer.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ._data.validation import MissingDataWarning
from ._estimators.kmeans import MNARKMeans
from ._io.optional import require
from .metrics import confidence

__all__ = ["mnar_kmeans"]

# Rows read from a backed file at a time.
BACKED_ROWS = 4096


def mnar_kmeans(
    adata: Any,
    n_clusters: int,
    *,
    lam: float | str = "auto",
    layer: str | None = None,
    use_rep: str | None = None,
    use_highly_variable: bool | None = None,
    zero_is_missing: bool = True,
    key_added: str = "mnar_kmeans",
    rng: int | np.random.Generator | None = None,
    copy: bool = False,
    impute_layer: str | None = None,
    reference: Any = 0.0,
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-5,
    algorithm: str = "auto",
    n_jobs: int | None = None,
) -> Any:
    """Cluster cells by k-means that knows that small values drop out.

    Use log-normalised expression (``sc.pp.normalize_total``, ``sc.pp.log1p``), not scaled: zero
    must still mean "not seen".

    Parameters
    ----------
    adata : AnnData
        Cells by genes; dense, sparse or backed.
    n_clusters : int
        Number of clusters.
    lam : float or "auto", default="auto"
        How strongly gaps pull centres towards the reference, as in `mnarkmeans.MNARKMeans`.
    layer : str, optional
        Layer to use instead of ``adata.X``.
    use_rep : str, optional
        Entry of ``adata.obsm`` to use instead of genes. Its centres go to
        ``uns[key_added]["centers"]``, since they belong to no gene.
    use_highly_variable : bool, optional
        Use only the genes marked in ``var["highly_variable"]``. None does so if they are marked.
    zero_is_missing : bool, default=True
        Zeros, stored or not, are gaps. With False they are measurements, only NaN is a gap, and a
        sparse matrix is made dense.
    key_added : str, default="mnar_kmeans"
        Under which name results are stored.
    rng : int, numpy Generator or None
        Seed.
    copy : bool, default=False
        Return a changed copy and leave `adata` as it is.
    impute_layer : str, optional
        Also fill the gaps from the centres and store the (dense) result in this layer. Genes that
        took no part keep their values.
    reference, n_init, max_iter, tol, algorithm, n_jobs
        As in `mnarkmeans.MNARKMeans`. An array as reference has one number per gene of `adata`
        (or per column of the representation).

    Returns
    -------
    AnnData or None
        The changed copy if ``copy=True``, otherwise None.

    Notes
    -----
    Genes without a single observed value are left out; their centres would be the reference
    whatever the clusters, so the result is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from mnarkmeans import tl
    >>> counts = np.random.default_rng(0).poisson([4, 4, 0.3], size=(40, 3)).astype(float)
    >>> counts[20:] = counts[20:, ::-1]
    >>> adata = AnnData(np.log1p(counts))
    >>> tl.mnar_kmeans(adata, 2, lam=0.5, rng=0)
    >>> adata.obs["mnar_kmeans"].cat.categories.tolist()
    ['0', '1']
    >>> adata.varm["mnar_kmeans"].shape
    (3, 2)
    """
    require("anndata", "anndata")
    if copy:
        adata = _copied(adata)
    matrix, columns = _matrix(adata, layer, use_rep, use_highly_variable)
    if impute_layer is not None and use_rep is not None:
        raise ValueError(
            f"impute_layer={impute_layer!r} fills genes, but use_rep={use_rep!r} clusters on "
            "something else. Leave one of them out."
        )
    X, used = _usable(matrix, columns, zero_is_missing)
    _warn_if_centred(X, zero_is_missing)
    model = MNARKMeans(
        n_clusters,
        lam=lam,
        reference=_reference_of(reference, used, matrix.shape[1]),
        missing_values=0.0 if zero_is_missing else np.nan,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        algorithm=algorithm,
        random_state=_seed(rng),
        n_jobs=n_jobs,
    ).fit(X)
    params = dict(
        n_clusters=n_clusters, lam=lam, layer=layer, use_rep=use_rep,
        use_highly_variable=use_highly_variable, zero_is_missing=zero_is_missing, rng=rng,
        impute_layer=impute_layer, reference=reference, n_init=n_init, max_iter=max_iter,
        tol=tol, algorithm=algorithm,
    )  # fmt: skip
    _file_results(adata, key_added, model, X, used, params, in_genes=use_rep is None)
    if impute_layer is not None:
        adata.layers[impute_layer] = _imputed(model, matrix, X, used)
    return adata if copy else None


# --- finding the matrix -----------------------------------------------------------------------


def _copied(adata):
    if adata.isbacked:
        raise ValueError(
            "copy=True cannot copy an AnnData that is backed by a file. "
            "Call adata.to_memory() first, or leave copy=False."
        )
    return adata.copy()


def _matrix(adata, layer, use_rep, use_highly_variable):
    """The matrix asked for, and the mask of its columns to use."""
    if layer is not None and use_rep is not None:
        raise ValueError(
            f"layer={layer!r} and use_rep={use_rep!r} were both given; choose one of them."
        )
    if use_rep is not None:
        if use_highly_variable:
            raise ValueError(
                f"use_highly_variable=True chooses genes, and use_rep={use_rep!r} has none. "
                "Leave one of them out."
            )
        matrix = _entry(adata.obsm, use_rep, "obsm")
        matrix = matrix.to_numpy() if hasattr(matrix, "to_numpy") else matrix
        return matrix, np.ones(matrix.shape[1], bool)
    matrix = adata.X if layer is None else _entry(adata.layers, layer, "layers")
    if matrix is None:
        raise ValueError("adata.X is empty; name the layer= or use_rep= to cluster on.")
    return matrix, _marked_genes(adata, use_highly_variable)


def _entry(mapping, key: str, where: str):
    if key not in mapping:
        found = ", ".join(map(repr, mapping.keys())) or "none"
        raise KeyError(f"{key!r} is not in adata.{where}; there are: {found}.")
    return mapping[key]


def _marked_genes(adata, use_highly_variable) -> np.ndarray:
    marked = "highly_variable" in adata.var
    if use_highly_variable and not marked:
        raise KeyError(
            "use_highly_variable=True, but adata.var has no column 'highly_variable'. "
            "Run scanpy.pp.highly_variable_genes first."
        )
    if not marked or use_highly_variable is False:
        return np.ones(adata.n_vars, bool)
    return adata.var["highly_variable"].to_numpy(dtype=bool)


def _usable(matrix, columns: np.ndarray, zero_is_missing: bool):
    """The columns used, in memory, and their mask: asked for, and observed at least once."""
    if type(matrix).__module__.startswith("dask"):
        raise TypeError(
            "The matrix is a Dask array. Call .compute() on it, or use mnarkmeans.dask.MNARKMeans."
        )
    X = _in_memory(matrix, columns)
    if sparse.issparse(X) and not zero_is_missing:
        X = X.toarray()
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float64)
    observed = _observed_columns(X, zero_is_missing)
    if not observed.any():
        raise ValueError(
            f"None of the {X.shape[0]} x {X.shape[1]} values is observed; there is nothing to "
            "cluster. Check layer=, use_highly_variable= and zero_is_missing=."
        )
    used = columns.copy()
    used[used] = observed
    return (X if observed.all() else X[:, observed]), used


def _in_memory(matrix, columns: np.ndarray):
    everything = bool(columns.all())
    if isinstance(matrix, np.ndarray) or sparse.issparse(matrix):
        X = matrix if everything else matrix[:, columns]
    elif hasattr(matrix, "to_memory") and matrix.format == "csc":
        X = matrix.to_memory()[:, columns]  # by rows it would be read once per slice
    else:
        parts = [
            matrix[start : start + BACKED_ROWS][:, columns]
            for start in range(0, matrix.shape[0], BACKED_ROWS)
        ]
        X = sparse.vstack(parts) if sparse.issparse(parts[0]) else np.concatenate(parts)
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)


def _observed_columns(X, zero_is_missing: bool) -> np.ndarray:
    if sparse.issparse(X):
        seen = ~np.isnan(X.data) & (X.data != 0)
        return np.bincount(X.indices[seen], minlength=X.shape[1]) > 0
    seen = ~np.isnan(X)
    if zero_is_missing:
        seen &= X != 0
    return seen.any(axis=0)


def _warn_if_centred(X, zero_is_missing: bool) -> None:
    values = X.data if sparse.issparse(X) else X
    if zero_is_missing and values.size and np.nanmin(values) < 0:
        warnings.warn(
            "The matrix holds negative values, so it was probably scaled or centred, and zero no "
            "longer means 'not seen'. Use log-normalised expression (layer=), or say "
            "zero_is_missing=False.",
            MissingDataWarning,
            stacklevel=3,
        )


def _reference_of(reference, used: np.ndarray, n_columns: int):
    """One number per column used, from one per column of the matrix."""
    if isinstance(reference, str) or np.ndim(reference) == 0:
        return reference
    if np.shape(reference) != (n_columns,):
        raise ValueError(
            f"reference must be one number or one per column ({n_columns}); "
            f"got an array of shape {np.shape(reference)}."
        )
    return np.asarray(reference)[used]


def _seed(rng):
    """MNARKMeans takes an integer or a RandomState; a Generator gives one integer."""
    return int(rng.integers(2**31 - 1)) if isinstance(rng, np.random.Generator) else rng


# --- filing the answer ------------------------------------------------------------------------


def _file_results(adata, key: str, model, X, used, params: dict, *, in_genes: bool) -> None:
    pandas = require("pandas", "anndata")
    names = [str(l) for l in range(model.n_clusters)]
    adata.obs[key] = pandas.Categorical.from_codes(model.labels_, categories=names)
    own = np.take_along_axis(model.transform(X), model.labels_[:, None].astype(np.intp), axis=1)
    adata.obs[f"{key}_distance"] = own[:, 0]
    adata.obs[f"{key}_confidence"] = confidence(X, model)

    centers = np.full((len(used), model.n_clusters), np.nan)
    centers[used] = model.cluster_centers_.T
    reference = np.full(len(used), np.nan)
    reference[used] = model.reference_
    results = {
        "params": _writable(params),
        "lam": float(model.lam_),
        "reference": reference,
        "inertia": float(model.inertia_),
        "n_iter": int(model.n_iter_),
        "loss_path": np.asarray(model.loss_path_),
        "start_losses": np.asarray(model.start_losses_),
        "n_features": int(used.sum()),
    }
    if in_genes:
        adata.varm[key] = centers
    else:
        results["centers"] = centers
    adata.uns[key] = results


def _writable(params: dict) -> dict:
    """What an h5ad file can hold: numbers, strings and arrays; None is left out."""
    kept: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, bool | int | float | str | np.number):
            kept[name] = value
        elif value is not None and name != "rng":  # a Generator has no one number to write down
            kept[name] = np.asarray(value)
    return kept


def _imputed(model, matrix, X, used: np.ndarray) -> np.ndarray:
    filled = model.impute(X)
    if used.all():
        return filled
    everything = _in_memory(matrix, np.ones(len(used), bool))
    whole = everything.toarray() if sparse.issparse(everything) else everything.copy()
    whole = whole.astype(np.result_type(whole.dtype, filled.dtype), copy=False)
    whole[:, used] = filled
    return whole
