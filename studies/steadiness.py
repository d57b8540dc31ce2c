"""python -m studies steadiness [--seeds ...] [--draws N]

How far lam="auto" moves when 5 % of the rows are left out at random, in steps of the grid of
candidates, and whether a jitter of 1e-9 of every feature's spread moves it at all.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from mnarkmeans import MNARKMeans
from studies import designs, tables
from studies.summary import markdown

GRID = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
GROUPS = ("figure2", "figure3", "own", "limit", "chance", "families", "correlated")


def position(lam: float) -> float:
    """Where on the grid, in steps."""
    return float(np.interp(lam, GRID, np.arange(len(GRID))))


def lam_of(X: np.ndarray, k: int) -> float:
    return float(np.max(MNARKMeans(k, random_state=0, n_jobs=1).fit(X).lam_))


def moves(X: np.ndarray, k: int, draws: int, seed: int) -> dict:
    rng = np.random.default_rng(seed)
    whole = lam_of(X, k)
    noise = 1e-9 * np.nanstd(X, axis=0) * rng.standard_normal(X.shape)
    found = []
    for _ in range(draws):
        rows = np.sort(rng.permutation(len(X))[: round(0.95 * len(X))])
        part = X[rows][:, ~np.isnan(X[rows]).all(axis=0)]
        found.append(abs(position(lam_of(part, k)) - position(whole)))
    jitter = abs(position(lam_of(X + noise, k)) - position(whole))
    return {"lam": whole, "moved": np.mean(np.array(found) > 1), "by jitter": jitter > 1e-3}


def run(seeds, draws: int, every: int) -> pd.DataFrame:
    rows = []
    for group in GROUPS:
        for number, design in enumerate(designs.GROUPS[group]()):
            for seed in seeds if number % every == 0 else ():
                X = design.make(1000 * seed + number).X
                rows.append({"group": group, **moves(X, design.k, draws, seed)})
    try:
        for design in tables.real():
            rows.append({"group": "real", **moves(design.make(0).X, design.k, draws, seeds[0])})
    except FileNotFoundError as missing:
        print(f"real tables left out: {missing}")
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[101])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--every", type=int, default=6, help="only every so many designs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = run(options.seeds, options.draws, options.every)
    means = rows.groupby("group", sort=False).mean()
    means.insert(0, "tables", rows.groupby("group", sort=False).size())
    print(markdown(means.rename(columns={"moved": "moved by more than a step"})))
    print(f"\nAll tables: {rows.moved.mean():.1%} of draws; by jitter: {rows['by jitter'].sum()}")
