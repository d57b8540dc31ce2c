"""python -m studies batch [--seeds 20]

Simulated proteomics tables: 4 groups in 2 to 6 runs, a detection limit, and a shift of every
protein in every run, or none. Adjusted Rand index with the groups without correction, with each
run's observed means subtracted, with `BatchCenter`, and of k-means on the complete table without
shifts.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans
from mnarkmeans.tables import BatchCenter
from studies.summary import markdown

N_GROUPS, N_PROTEINS, PER_RUN = 4, 300, 16
LIMIT = 0.3  # the share of the values below the detection limit


class Runs(NamedTuple):
    table: np.ndarray
    complete: np.ndarray  # without shifts, nothing missing
    groups: np.ndarray
    run: np.ndarray


def draw(seed: int, shift: float) -> Runs:
    """Groups are spread unevenly over the runs; ``shift`` is the spread of the shifts of a run."""
    rng = np.random.default_rng(seed)
    n_runs = 2 + seed % 5
    run = np.repeat(np.arange(n_runs), PER_RUN)
    shares = rng.dirichlet(np.full(N_GROUPS, 3.0), n_runs)
    groups = np.concatenate([rng.choice(N_GROUPS, PER_RUN, p=share) for share in shares])
    centers = rng.normal(25.0, 2.0, N_PROTEINS) + rng.normal(0.0, 0.5, (N_GROUPS, N_PROTEINS))
    complete = centers[groups] + rng.normal(0.0, 0.7, (len(run), N_PROTEINS))
    table = complete + rng.normal(0.0, shift, (n_runs, N_PROTEINS))[run]
    table[table < np.quantile(table, LIMIT)] = np.nan
    seen = np.isfinite(table).any(axis=0)
    return Runs(table[:, seen], complete, groups, run)


def subtract_means(data: Runs) -> np.ndarray:
    table = data.table.copy()
    overall = np.nanmean(table, axis=0)
    for run in np.unique(data.run):
        mean = np.nanmean(table[data.run == run], axis=0)
        table[data.run == run] -= np.where(np.isnan(mean), 0.0, mean - overall)
    return table


def compare(seed: int, shift: float) -> dict[str, float]:
    data = draw(seed, shift)
    center = BatchCenter(N_GROUPS, random_state=seed)
    tables = {
        "no correction": data.table,
        "observed means": subtract_means(data),
        "BatchCenter": center.fit_transform(data.table, batch=data.run),
    }
    found = {
        name: MNARKMeans(N_GROUPS, random_state=seed).fit_predict(table)
        for name, table in tables.items()
    }
    found["complete, no shifts"] = KMeans(N_GROUPS, n_init=10, random_state=seed).fit_predict(
        data.complete
    )
    return {name: adjusted_rand_score(data.groups, labels) for name, labels in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, shift in {"runs differ": 1.0, "runs do not differ": 0.0}.items():
        each = pd.DataFrame([compare(seed, shift) for seed in range(options.seeds)])
        kept = each[each["complete, no shifts"] >= 0.9]
        if shift:
            reached = f"{(kept['BatchCenter'] >= 0.9).sum()} of {len(kept)}"
            print(f"{reached} tables that complete data solve (>= .9): BatchCenter does too")
        worst = (each["BatchCenter"] - each["no correction"]).min()
        print(f"{name}: BatchCenter less no correction, worst table: {worst:+.3f}", flush=True)
        for what in ("mean", "min"):
            rows.append({"tables": name, "of 20": what, **each.agg(what)})
    print(markdown(pd.DataFrame(rows).set_index("tables")))
