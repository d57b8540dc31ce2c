"""File the answer in the AnnData object, so that an h5ad file can hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._data.gaps import with_nan
from .._estimators.kmeans import MNARKMeans
from .._io.optional import require
from ..metrics import confidence
from ..metrics._markers import Contrasts, contrasts
from ._matrix import in_memory


def file_results(
    adata: Any,
    key: str,
    model: MNARKMeans,
    X: Any,
    used: np.ndarray,
    params: dict[str, Any],
    *,
    in_genes: bool,
) -> None:
    pandas = require("pandas", "anndata")
    names = [str(l) for l in range(model.n_clusters)]
    adata.obs[key] = pandas.Categorical.from_codes(model.labels_, categories=names)
    own = np.take_along_axis(model.transform(X), model.labels_[:, None].astype(np.intp), axis=1)
    adata.obs[f"{key}_distance"] = own[:, 0]
    adata.obs[f"{key}_confidence"] = confidence(X, model)

    centers = np.full((len(used), model.n_clusters), np.nan)
    centers[used] = model.cluster_centers_.T
    results = {
        "params": _writable(params),
        "lam": _of_all_genes(model.lam_, used),
        "reference": _of_all_genes(np.asarray(model.reference_), used),
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
    if in_genes and model.n_clusters > 1:
        adata.uns[f"{key}_markers"] = _markers(adata, key, X, used, model)


def _writable(params: dict[str, Any]) -> dict[str, Any]:
    """What an h5ad file can hold: numbers, strings and arrays; None is left out."""
    kept: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, bool | int | float | str | np.number):
            kept[name] = value
        elif value is not None and name != "rng":  # a Generator has no one number to write down
            kept[name] = np.asarray(value)
    return kept


def imputed(model: MNARKMeans, matrix: Any, X: Any, used: np.ndarray) -> np.ndarray:
    filled = model.impute(X)
    if used.all():
        return filled
    everything = in_memory(matrix, np.ones(len(used), bool))
    whole = everything.toarray() if sparse.issparse(everything) else everything.copy()
    whole = whole.astype(np.result_type(whole.dtype, filled.dtype), copy=False)
    whole[:, used] = filled
    return whole


def _of_all_genes(found: Any, used: np.ndarray) -> float | np.ndarray:
    """A number, or one for each gene: NaN where it was not used."""
    if np.ndim(found) == 0:
        return float(found)
    whole = np.full(len(used), np.nan)
    whole[used] = found
    return whole


def _markers(adata: Any, key: str, X: Any, used: np.ndarray, model: MNARKMeans) -> dict[str, Any]:
    """What makes each cluster, in the shape of ``scanpy.tl.rank_genes_groups``.

    There is no p-value (the clusters were made from the same numbers): it is NaN.
    """
    pandas = require("pandas", "anndata")
    clusters = [str(l) for l in range(model.n_clusters)]
    genes = adata.var_names.to_numpy()[used].astype(str)
    found = contrasts(with_nan(X, model.missing_values), model.labels_, model.n_clusters)
    order = np.argsort(-found.signed, axis=1, kind="stable")
    missing = np.full(found.effect.shape, np.nan)
    columns = {
        "scores": found.signed,
        "logfoldchanges": _log_fold_changes(found),
        "pvals": missing,
        "pvals_adj": missing,
    }
    return {
        "params": {
            "groupby": key, "reference": "rest", "method": "mnar_kmeans", "use_raw": False,
            "corr_method": "none",
        },
        "names": np.rec.fromarrays(
            genes.astype(object)[order], dtype=[(c, "O") for c in clusters]
        ),
        **{
            name: np.rec.fromarrays(
                np.take_along_axis(values, order, axis=1), dtype=[(c, "f8") for c in clusters]
            )
            for name, values in columns.items()
        },
        "pts": pandas.DataFrame(found.observed_inside.T, index=genes, columns=clusters),
        "pts_rest": pandas.DataFrame(found.observed_outside.T, index=genes, columns=clusters),
    }  # fmt: skip


def _log_fold_changes(found: Contrasts) -> np.ndarray:
    """Difference of the observed means, in powers of 2; the values are natural logarithms."""
    return np.nan_to_num(found.mean_inside - found.mean_outside) / np.log(2.0)
