"""python -m studies cells [--cells 5000] [--genes 8000] [--seeds ...] [--starts 1]

Simulated single cells of 8 types (2 to 30 % of the cells each), about 80 % zeros, all genes: the
adjusted Rand index by default, with lam = 0.25, and without a penalty. The table is sparse: what is
not stored is missing. With several starts, also the least agreement (adjusted Rand index) of two.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans
from studies.summary import markdown

SHARES = (0.30, 0.22, 0.16, 0.12, 0.08, 0.06, 0.04, 0.02)
METHODS = {"default": {}, "lam=0.25": {"lam": 0.25}, "lam=1": {"lam": 1.0}, "k-POD": {"lam": 0.0}}


def draw(n: int, p: int, seed: int, depth: float = 0.16, markers: float = 0.1, fold: float = 1.2):
    """log(1 + counts scaled to the median total) as CSR, and the types."""
    rng = np.random.default_rng(seed)
    types = rng.choice(len(SHARES), size=n, p=SHARES)
    level = rng.normal(size=p) + np.where(
        rng.random((len(SHARES), p)) < markers, rng.normal(scale=fold, size=(len(SHARES), p)), 0.0
    )
    depths = depth * np.exp(0.4 * rng.normal(size=n))
    parts = []
    for rows in np.array_split(np.arange(n), max(n // 500, 1)):
        mean = depths[rows, None] * np.exp(level)[types[rows]]
        parts.append(sparse.csr_matrix(rng.poisson(rng.gamma(2.0, mean / 2.0)).astype(float)))
    counts = sparse.vstack(parts, format="csr")
    total = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    scaled = sparse.diags(np.median(total) / total) @ counts
    return scaled.log1p().tocsr(), types


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=5000)
    parser.add_argument("--genes", type=int, default=8000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[101])
    parser.add_argument("--starts", type=int, default=1, help="seeds of the fit for each table")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for seed in options.seeds:
        X, types = draw(options.cells, options.genes, seed)
        print(f"seed {seed}: {1 - X.nnz / np.prod(X.shape):.0%} zeros", flush=True)
        for name, settings in METHODS.items():
            begin = time.perf_counter()
            models = [
                MNARKMeans(len(SHARES), random_state=seed + start, **settings).fit(X)
                for start in range(options.starts)
            ]
            spent = (time.perf_counter() - begin) / options.starts
            row = {"method": name, "ari": np.mean([
                adjusted_rand_score(types, model.labels_) for model in models
            ])}  # fmt: skip
            if options.starts > 1:
                row["least agreement"] = min(
                    adjusted_rand_score(one.labels_, other.labels_)
                    for one, other in combinations(models, 2)
                )
            rows.append({**row, "lam": float(np.max(models[0].lam_)), "seconds": spent})
    print(markdown(pd.DataFrame(rows).groupby("method", sort=False).mean()))
