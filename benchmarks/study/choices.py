"""python -m benchmarks.study.choices: what the choices of lam gain over the lam of the gaps.

Every draw of a design is fitted by MNARKMeans with the lam that the gaps alone ask for ("gaps"), by
MNARKMeans(lam="auto") ("auto"), by MNARKMeansCV ("cv"), and with fixed lam; 1 is zero filling.
Differences of CER from "gaps" are paired over the draws and come with the half width of their 95 %
interval (Student's t); below 0 is a gain. "best" is the one fixed lam of a design that does best on
average over its draws, in hindsight.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from mnarkmeans._penalty.choice import choose_penalty
from scipy.stats import t as student

from benchmarks.study.designs import GROUPS, Data, Design
from mnarkmeans import MNARKMeans, MNARKMeansCV
from mnarkmeans._solver import STARTS
from mnarkmeans._validation import observe
from mnarkmeans.metrics import clustering_error_rate

FIXED = (0.0, 0.05, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
METHODS = ("auto", "cv", "lam=1")


def lam_of_gaps(data: Data, design: Design, seed: int) -> float | np.ndarray:
    observed = observe(data.X, reference=design.reference)
    starts = STARTS["k-means++"](observed, 10, design.k, np.random.RandomState(seed), 2)
    settings = dict(max_iter=300, tol=1e-5, threads=2)
    return choose_penalty(observed, starts, **settings, whole=False).missingness.penalty


def row_of(design: Design, data: Data, seed: int, methods: list[str], fixed) -> dict:
    """CER of every method on one draw, and the lam it took."""
    given = dict(reference=design.reference, random_state=seed)
    models = {"gaps": MNARKMeans(design.k, lam=lam_of_gaps(data, design, seed), **given)}
    if "auto" in methods:
        models["auto"] = MNARKMeans(design.k, **given)
    if "cv" in methods:
        models["cv"] = MNARKMeansCV(design.k, **given)
    models |= {f"lam={lam:g}": MNARKMeans(design.k, lam=lam, **given) for lam in fixed}
    row: dict = {"group": design.group, "design": design.name, "seed": seed}
    for name, model in models.items():
        row[name] = clustering_error_rate(data.classes, model.fit_predict(data.X))
        row[f"lam of {name}"] = float(np.max(model.lam_))
    return row


def paired(differences: np.ndarray) -> str:
    half = student.ppf(0.975, len(differences) - 1) * differences.std(ddof=1)
    return f"{differences.mean():+.3f} +- {half / np.sqrt(len(differences)):.3f}"


def report(table: pd.DataFrame, name: str) -> str:
    """One line: CER with the lam of the gaps, and what the others differ by."""
    parts = [f"{name}: {len(table)} draws, gaps {table.gaps.mean():.3f}"]
    parts[0] += f" (lam {table['lam of gaps'].median():.2g})"
    for method in METHODS:
        if method in table and len(table) > 1:
            taken = table[f"lam of {method}"].median()
            difference = (table[method] - table.gaps).to_numpy()
            parts.append(f"{method} {paired(difference)} ({taken:.2g})")
    fixed = [c for c in table if c.startswith("lam=")]
    if len(fixed) > 1:
        by_design = table.groupby("design")[fixed].mean()
        parts.append(f"best {by_design.min(axis=1).mean():.3f}")
    return ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study.choices", description=__doc__)
    parser.add_argument("--groups", nargs="*", choices=list(GROUPS), default=["wide", "cells"])
    parser.add_argument("--methods", nargs="*", default=["auto", "cv"])
    parser.add_argument("--fixed", nargs="*", type=float, default=list(FIXED))
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for group in options.groups:
        rows = []
        for number, design in enumerate(GROUPS[group]()):
            for seed in range(options.seed, options.seed + options.repetitions):
                data = design.make(1000 * seed + number)
                rows.append(row_of(design, data, seed, options.methods, options.fixed))
            own = pd.DataFrame(rows[-options.repetitions :])
            print("   ", report(own, design.name), flush=True)
        print(report(pd.DataFrame(rows), group), flush=True)


if __name__ == "__main__":
    main()
