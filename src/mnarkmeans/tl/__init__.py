"""Cluster the cells of an AnnData object, the scanpy way: results go into the object.

What is written, with ``key_added="mnar_kmeans"``:

    obs["mnar_kmeans"]            cluster of each cell, categorical of strings
    obs["mnar_kmeans_distance"]   square root of its penalised distance to its centre
    obs["mnar_kmeans_confidence"] how sure its cluster is (`mnarkmeans.metrics.confidence`)
    varm["mnar_kmeans"]           centres (n_vars, k), NaN for genes that took no part
    uns["mnar_kmeans"]            params, lam, reference, inertia, n_iter, loss_path, ...
    uns["mnar_kmeans_markers"]    genes that make each cluster, as rank_genes_groups has them
    layers[impute_layer]          the filled matrix, only if asked for

There is no mathematics here: this module finds the matrix, asks MNARKMeans, and files the answer.

_matrix  the matrix in an AnnData object: which one, which columns, in memory
_filing  the answer, as an h5ad file can hold it
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._estimators.kmeans import MNARKMeans
from .._io.optional import require
from ._filing import file_results, imputed
from ._matrix import copied, matrix_of, reference_of, seed_of, usable, warn_if_centred

__all__ = ["mnar_kmeans"]

RECORDED = ("n_init", "max_iter", "tol", "algorithm")  # of the fit, in uns
ALLOWED = (*RECORDED, "init", "n_jobs", "verbose")


def mnar_kmeans(
    adata: Any,
    n_clusters: int,
    *,
    lam: float | str = "auto",
    reference: Any = 0.0,
    layer: str | None = None,
    use_rep: str | None = None,
    use_highly_variable: bool | None = None,
    zero_is_missing: bool = True,
    key_added: str = "mnar_kmeans",
    rng: int | np.random.Generator | None = None,
    copy: bool = False,
    impute_layer: str | None = None,
    **fitting: Any,
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
    reference : float, array, "min" or "auto", default=0.0
        As in `mnarkmeans.MNARKMeans`; an array has one number per gene of `adata` (or per column
        of the representation).
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
    **fitting
        `n_init`, `max_iter`, `tol`, `algorithm`, `init`, `n_jobs`, `verbose` of
        `mnarkmeans.MNARKMeans`.

    Returns
    -------
    AnnData or None
        The changed copy if ``copy=True``, otherwise None.

    Notes
    -----
    Genes without a single observed value are left out; their centres would be the reference
    whatever the clusters, so the result is the same.

    The genes that make the clusters are where scanpy looks for them:
    ``sc.pl.rank_genes_groups(adata, key="mnar_kmeans_markers")``,
    ``sc.get.rank_genes_groups_df(adata, "0", key="mnar_kmeans_markers")``. Their scores are the
    effect sizes of `mnarkmeans.metrics.cluster_markers`, which count gaps as well; p-values are
    NaN.

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
        adata = copied(adata)
    asked = dict(
        n_clusters=n_clusters, lam=lam, layer=layer, use_rep=use_rep,
        use_highly_variable=use_highly_variable, zero_is_missing=zero_is_missing, rng=rng,
        impute_layer=impute_layer, reference=reference,
    )  # fmt: skip
    _run(adata, key_added, asked, _fitting(fitting))
    return adata if copy else None


def _run(adata: Any, key: str, asked: dict[str, Any], fitting: dict[str, Any]) -> None:
    """Find the matrix, fit, file."""
    layer, use_rep, impute_layer = (asked[name] for name in ("layer", "use_rep", "impute_layer"))
    matrix, columns = matrix_of(adata, layer, use_rep, asked["use_highly_variable"])
    if impute_layer is not None and use_rep is not None:
        raise ValueError(
            f"impute_layer={impute_layer!r} fills genes, but use_rep={use_rep!r} clusters on "
            "something else. Leave one of them out."
        )
    X, used = usable(matrix, columns, asked["zero_is_missing"])
    warn_if_centred(X, asked["zero_is_missing"])
    model = MNARKMeans(
        asked["n_clusters"],
        lam=asked["lam"],
        reference=reference_of(asked["reference"], used, matrix.shape[1]),
        missing_values=0.0 if asked["zero_is_missing"] else np.nan,
        random_state=seed_of(asked["rng"]),
        **fitting,
    ).fit(X)
    params = asked | {name: getattr(model, name) for name in RECORDED}
    file_results(adata, key, model, X, used, params, in_genes=use_rep is None)
    if impute_layer is not None:
        adata.layers[impute_layer] = imputed(model, matrix, X, used)


def _fitting(given: dict[str, Any]) -> dict[str, Any]:
    for name in given:
        if name not in ALLOWED:
            raise TypeError(
                f"mnar_kmeans() got an unexpected keyword argument {name!r}; to the fit it passes "
                f"{', '.join(ALLOWED)}."
            )
    return given
