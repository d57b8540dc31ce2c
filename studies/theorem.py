"""python -m studies theorem [--seeds ...]

The setting of the paper's Theorem 3.2: normal clusters N(mu, s I), well apart and away from zero,
values lost with probability exp(-t x^2). There lam = 1 - 1/(2 s t + 1) recovers the centres. The
error is the mean squared distance of a centre's coordinate from the truth; shown for that lam, the
default, lam=1 and k-POD, and as ratios to the theorem's.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from mnarkmeans import MNARKMeans
from mnarkmeans.missingness import ampute
from studies.summary import markdown

DESIGNS = {  # name -> (k, rows, features, s, t, centres)
    "k=3, 1500 x 2, s=0.25, t=0.1": (3, 1500, 2, 0.25, 0.1),
    "k=3, 1500 x 4, s=0.5, t=0.1": (3, 1500, 4, 0.5, 0.1),
    "k=4, 2000 x 4, s=0.5, t=0.05": (4, 2000, 4, 0.5, 0.05),
    "k=3, 900 x 6, s=1, t=0.1": (3, 900, 6, 1.0, 0.1),
    "k=5, 2500 x 8, s=1, t=0.05": (5, 2500, 8, 1.0, 0.05),
    "k=3, 600 x 10, s=1, t=0.2": (3, 600, 10, 1.0, 0.2),
}


def draw(k: int, n: int, p: int, s: float, t: float, seed: int):
    """Centres 2 to 5 from zero in every feature, at least 6 standard deviations apart."""
    rng = np.random.default_rng(seed)
    while True:
        centers = rng.uniform(2, 5, (k, p)) * rng.choice((-1, 1), (k, p))
        if cdist(centers, centers)[np.triu_indices(k, 1)].min() > 6 * np.sqrt(s):
            break
    X = centers[rng.integers(k, size=n)] + np.sqrt(s) * rng.normal(size=(n, p))
    X = ampute(X, "mnar0", strength=t, rng=rng)
    return X[~np.isnan(X).all(axis=1)], centers


def error(centers: np.ndarray, found: np.ndarray) -> float:
    distances = cdist(centers, found, "sqeuclidean")
    return float(distances[linear_sum_assignment(distances)].mean() / centers.shape[1])


def run(seeds) -> pd.DataFrame:
    rows = []
    for number, (name, (k, n, p, s, t)) in enumerate(DESIGNS.items()):
        theory = 1 - 1 / (2 * s * t + 1)
        for seed in seeds:
            X, centers = draw(k, n, p, s, t, 1000 * seed + number)
            row = {"design": name, "seed": seed, "lam of theorem": theory}
            for method, lam in {
                "theorem": theory,
                "auto": "auto",
                "filled": 1.0,
                "k-POD": 0.0,
            }.items():
                model = MNARKMeans(k, lam=lam, random_state=seed, n_jobs=1).fit(X)
                row[method] = error(centers, model.cluster_centers_)
                if method == "auto":
                    row["lam of auto"] = float(np.max(model.lam_))
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[101, 102, 103, 104, 105])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    means = run(options.seeds).drop(columns="seed").groupby("design", sort=False).mean()
    for method in ("auto", "filled", "k-POD"):
        means[f"{method} / theorem"] = means[method] / means["theorem"]
    print(markdown(means, 4))
    print(f"\nMedian of auto / theorem: {means['auto / theorem'].median():.2f}")
