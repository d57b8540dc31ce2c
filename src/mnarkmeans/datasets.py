"""Data to try things on: simulated clusters, and the paper's two real tables.

The real tables are not shipped. They are read from a folder you name, from the folder in the
variable MNARKMEANS_DATA, or downloaded once, and checked, from the repository of the paper's
authors.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from ._io import require
from ._validation import check_choice, check_count
from .missingness import ampute

__all__ = ["load_lymphoma", "load_usoskin", "make_gaussian_clusters"]

SOURCE = "https://raw.githubusercontent.com/GXguanxin/MNAR-k-means/HEAD/realdata/"
SHA256 = {
    "lymphoma.x.txt": "7694b19ed9fbe09a9dfc79e338d07f933ad63b2c5a35302fec49e65dd44b611a",
    "lymphoma.y.txt": "102eb1205c25114fe3255799370ffe40d61299dc5ddc7466df7f8bc9ef9ef176",
    "GSE59739_cleardata_significant.txt": (
        "15bc0e81818edfd1808a6410899f375784d8b5b8520e2d56e31b934e2d78705c"
    ),
}


def make_gaussian_clusters(
    n_samples: int = 300,
    n_features: int = 2,
    centers: int | ArrayLike = 3,
    *,
    separation: float = 3.0,
    cluster_std: float = 1.0,
    mechanism: str | None = "mnar0",
    strength: float | None = None,
    fraction: float | None = None,
    reference: Any = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Gaussian clusters with missing values, as in the paper's simulations.

    Clusters are equally likely, and rows are normal around the centres. Then values go missing (see
    `mnarkmeans.missingness.ampute`), and rows that have lost every value are left out.

    Parameters
    ----------
    n_samples, n_features : int
        Size of the complete table.
    centers : int or array-like of shape (k, n_features)
        The centres, or how many: then they are the corners of a regular polygon in the first two
        features, the first corner at 0, and 0 in all others.
    separation : float
        Side of that polygon.
    cluster_std : float
        Standard deviation of every feature in every cluster.
    mechanism : str or None
        How values go missing; None leaves the data complete.
    strength, fraction, reference
        As in `mnarkmeans.missingness.ampute`; without strength and fraction, a fraction of 0.3.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    Bunch
        ``data`` (with NaN), ``complete`` (the same rows with all values), ``target`` (cluster of
        each row), ``centers`` (k, n_features), ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> from mnarkmeans.datasets import make_gaussian_clusters
    >>> toy = make_gaussian_clusters(n_samples=200, centers=3, fraction=0.3, random_state=0)
    >>> toy.centers.round(2).tolist()
    [[0.0, 0.0], [3.0, 0.0], [1.5, 2.6]]
    >>> toy.data.shape == toy.complete.shape
    True
    """
    rng = np.random.default_rng(random_state)
    points = _centers(centers, n_features, separation)
    target = rng.integers(len(points), size=n_samples)
    complete = points[target] + cluster_std * rng.standard_normal((n_samples, points.shape[1]))
    data = complete
    if mechanism is not None:
        fraction = 0.3 if strength is None and fraction is None else fraction
        data = ampute(
            complete, mechanism, strength=strength, fraction=fraction, reference=reference, rng=rng
        )
    elif strength is not None or fraction is not None:
        raise ValueError("mechanism=None removes nothing; leave strength and fraction out.")
    kept = ~np.isnan(data).all(axis=1)
    data, complete, target = data[kept], complete[kept], target[kept]
    return Bunch(
        data=data, complete=complete, target=target, centers=points,
        feature_names=[f"x{j}" for j in range(points.shape[1])],
        DESCR=f"{len(points)} Gaussian clusters, values missing by {mechanism}",
    )  # fmt: skip


def _centers(centers: int | ArrayLike, n_features: int, side: float) -> np.ndarray:
    if np.ndim(centers) > 0:
        points = np.asarray(centers, dtype=float)
        if points.shape[1:] != (n_features,):
            raise ValueError(f"centers has shape {points.shape}; n_features={n_features} of each.")
        return points
    k = check_count("centers", centers)
    if n_features < (2 if k > 2 else 1):
        raise ValueError(f"{k} polygon corners need 2 features; got n_features={n_features}.")
    # Walk along the polygon's sides: each turns by 2 pi / k against the one before.
    turn = 2 * np.pi * np.arange(k - 1) / k
    corners = np.vstack([np.zeros(2), side * np.column_stack([np.cos(turn), np.sin(turn)])])
    points = np.zeros((k, n_features))
    points[:, :2] = corners.cumsum(axis=0)[:, :n_features]
    return points


def load_lymphoma(folder: str | os.PathLike[str] | None = None) -> Bunch:
    """Lymphoma: 62 samples of 3 kinds, expression of 4026 genes, nothing missing.

    As in the paper, every gene has mean 0 and standard deviation 1.

    Parameters
    ----------
    folder : path, optional
        Where lymphoma.x.txt and lymphoma.y.txt lie. Without it, the folder in the variable
        MNARKMEANS_DATA; without that, a download (once, checked; extra ``datasets``).

    Returns
    -------
    Bunch
        ``data`` (62, 4026), ``target``, ``target_names``, ``feature_names``, ``DESCR``.

    References
    ----------
    Jin and Wang, Influential features PCA for high dimensional clustering, 2016.

    Examples
    --------
    >>> from mnarkmeans.datasets import load_lymphoma
    >>> load_lymphoma().data.shape  # doctest: +SKIP
    (62, 4026)
    """
    data = _standardized(np.loadtxt(_file("lymphoma.x.txt", folder)).T)
    target = np.loadtxt(_file("lymphoma.y.txt", folder)).astype(int)
    return Bunch(
        data=data, target=target, target_names=np.array(["DLBCL", "FL", "CLL"]),
        feature_names=[f"gene{j}" for j in range(data.shape[1])],
        DESCR="Lymphoma microarray: 42 DLBCL, 9 FL and 11 CLL samples, 4026 genes",
    )  # fmt: skip


def load_usoskin(
    folder: str | os.PathLike[str] | None = None,
    *,
    preparation: str = "paper",
    max_missing: int | None = 600,
) -> Bunch:
    """Usoskin: 622 mouse neurons of 4 kinds, expression of 452 genes, in which zeros are missing.

    Parameters
    ----------
    folder : path, optional
        Where GSE59739_cleardata_significant.txt lies; otherwise as for `load_lymphoma`.
    preparation : {"paper", "log1p", "counts"}
        "paper": zeros are missing, and the observed values of a gene have mean 0 and standard
        deviation 1. "log1p": zeros are missing, and others become log(1 + x), so that the reference
        0 still means "not expressed". "counts": expression as measured, zeros included.
    max_missing : int or None
        Leave out genes with more zeros than this (389 genes stay at 600); None keeps all.

    Returns
    -------
    Bunch
        ``data`` (622, genes), ``target``, ``target_names``, ``feature_names``, ``sample_names``,
        ``DESCR``.

    References
    ----------
    Usoskin et al., Unbiased classification of sensory neuron types by large-scale single-cell RNA
    sequencing, Nature Neuroscience 2015 (GSE59739).

    Examples
    --------
    >>> from mnarkmeans.datasets import load_usoskin
    >>> load_usoskin(preparation="log1p").data.shape  # doctest: +SKIP
    (622, 389)
    """
    check_choice("preparation", preparation, ("paper", "log1p", "counts"))
    path = _file("GSE59739_cleardata_significant.txt", folder)
    header, *cells = (line.split("\t") for line in path.read_text().splitlines())
    genes, data = np.array(header[2:]), np.array([cell[2:] for cell in cells], dtype=float)
    if max_missing is not None:
        kept = (data == 0).sum(axis=0) <= max_missing
        data, genes = data[:, kept], genes[kept]
    if preparation != "counts":
        data = np.where(data == 0, np.nan, data)
    if preparation == "paper":
        data = _standardized(data)
    elif preparation == "log1p":
        data = np.log1p(data)
    kinds, target = np.unique([cell[1] for cell in cells], return_inverse=True)
    return Bunch(
        data=data, target=target, target_names=kinds, feature_names=list(genes),
        sample_names=[cell[0] for cell in cells],
        DESCR=f"Usoskin scRNA-seq, {len(genes)} genes, prepared as {preparation!r}",
    )  # fmt: skip


def _standardized(data: np.ndarray) -> np.ndarray:
    """Mean 0 and sd 1 (n - 1 in the denominator, as R) of the observed values of each feature."""
    spread = np.nanstd(data, axis=0, ddof=1)
    return (data - np.nanmean(data, axis=0)) / np.where(spread > 0, spread, 1.0)


def _file(name: str, folder: str | os.PathLike[str] | None) -> Path:
    """The file: from the folder named, from MNARKMEANS_DATA, or downloaded once and checked."""
    folder = folder if folder is not None else os.environ.get("MNARKMEANS_DATA")
    if folder is not None:
        path = Path(folder) / name
        if not path.is_file():
            raise FileNotFoundError(
                f"{name} is not in {Path(folder)}. Give the folder that holds it, or neither a "
                "folder nor MNARKMEANS_DATA to download it once."
            )
        return path
    pooch = require("pooch", "datasets")
    sha256, cache = f"sha256:{SHA256[name]}", pooch.os_cache("mnarkmeans")
    try:
        return Path(pooch.retrieve(SOURCE + name, known_hash=sha256, fname=name, path=cache))
    except OSError as error:  # no network, or no space
        raise RuntimeError(
            f"{name} could not be downloaded ({type(error).__name__}). Fetch it from {SOURCE} and "
            "give the folder that holds it, or name it in MNARKMEANS_DATA."
        ) from error
