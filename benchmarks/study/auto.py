"""python -m benchmarks.study.auto: how close lam="auto" comes to the best fixed lam.

The best fixed lam of a design is the one of FIXED with the least CER on average over the
repetitions, so one number for all its data sets, picked in hindsight. A design counts as close when
the mean CER of "auto" is within .01 of it. Designs: Figure 2 and its MNAR1-2 twins.

For comparison the same is said of each lam kept for all designs, and of the hindsight itself: a lam
picked on every second repetition and judged on the others loses what had only been luck.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from benchmarks.study.designs import GROUPS, Design
from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import clustering_error_rate

FIXED = (0.0, 0.2, 0.5, 0.8, 1.0, 1.5, 2.0)
CLOSE = 0.01


def errors_of(design: Design, number: int, seeds: range) -> tuple[np.ndarray, list[float]]:
    """CER (seeds, 1 + lams), "auto" first; and the lam it took for each seed."""
    rows, taken = [], []
    for seed in seeds:
        data = design.make(1000 * seed + number)
        models = [
            MNARKMeans(design.k, lam=lam, random_state=seed, algorithm="lloyd")
            for lam in ("auto", *FIXED)
        ]
        rows.append([clustering_error_rate(data.classes, m.fit_predict(data.X)) for m in models])
        taken.append(models[0].lam_)
    return np.array(rows), taken


def luck(fixed: np.ndarray) -> float:
    """Mean CER of a lam picked on the other half of the repetitions, above the hindsight."""
    halves = fixed[::2].mean(axis=0), fixed[1::2].mean(axis=0)
    honest = np.mean([halves[0][halves[1].argmin()], halves[1][halves[0].argmin()]])
    return float(honest - fixed.mean(axis=0).min())


def spread(errors: np.ndarray) -> str:
    """Mean CER of the repetitions, and half the width of its interval."""
    half = 1.96 * errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
    return f"{errors.mean():.4f} +- {half:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study.auto", description=__doc__)
    parser.add_argument("--groups", nargs="*", default=["figure2", "figure2-others"])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.seed, options.seed + options.repetitions)
    everything: list[np.ndarray] = []
    for group in options.groups:
        designs = list(GROUPS[group]())
        found = [errors_of(design, number, seeds) for number, design in enumerate(designs)]
        errors, taken = [each[0] for each in found], np.array([each[1] for each in found])
        report(group, errors)
        print(f"    auto takes {taken.mean():.3f} on average, ", end="")
        print(f"less than .05 for {np.mean(taken < 0.05):.0%} of the data sets")
        for design, error in zip(designs, errors, strict=True):
            excess = error[:, 0].mean() - error[:, 1:].mean(axis=0).min()
            if excess > CLOSE:
                print(f"    not close: {design.name}, {excess:.4f} above; ", end="")
                print(f"auto {spread(error[:, 0])}, lam = 0 {spread(error[:, 1])}", flush=True)
        everything += errors
    if len(options.groups) > 1:
        report("all", everything)


def report(group: str, errors: list[np.ndarray]) -> None:
    mean = np.array([found.mean(axis=0) for found in errors])
    above = mean - mean[:, 1:].min(axis=1, keepdims=True)
    close = np.mean(above <= CLOSE, axis=0)
    print(
        f"{group}: auto within .01 of the best fixed lam in {close[0]:.0%} of {len(errors)} "
        f"designs, {above[:, 0].mean():.4f} above it on average"
    )
    constants = ", ".join(
        f"{lam:g} {share:.0%}" for lam, share in zip(FIXED, close[1:], strict=True)
    )
    print(f"    the same lam for all designs: {constants}")
    if len(errors[0]) > 1:
        lost = np.mean([luck(found[:, 1:]) for found in errors])
        print(f"    luck in the hindsight: {lost:.4f}", flush=True)


if __name__ == "__main__":
    main()
