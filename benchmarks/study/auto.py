"""python -m benchmarks.study.auto: how close lam="auto" comes to the best fixed lam.

Mean CER per design of Figure 2 (and its MNAR1-2 twins) over the repetitions, for "auto" and for a
grid of fixed penalties; a design counts as close when auto is within .01 of the best of them.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from benchmarks.study.designs import GROUPS
from mnarkmeans import MNARKMeans
from mnarkmeans.metrics import clustering_error_rate

LAMS = ("auto", 0.0, 0.2, 0.5, 0.8, 1.0, 1.5, 2.0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study.auto", description=__doc__)
    parser.add_argument("--groups", nargs="*", default=["figure2", "figure2-others"])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for group in options.groups:
        excess, zero = [], []
        for number, design in enumerate(GROUPS[group]()):
            errors = np.zeros((options.repetitions, len(LAMS)))
            for repetition in range(options.repetitions):
                seed = options.seed + repetition
                data = design.make(1000 * seed + number)
                for column, lam in enumerate(LAMS):
                    model = MNARKMeans(design.k, lam=lam, random_state=seed, algorithm="lloyd")
                    errors[repetition, column] = clustering_error_rate(
                        data.classes, model.fit_predict(data.X)
                    )
            mean = errors.mean(axis=0)
            excess.append(mean[0] - mean[1:].min())
            zero.append(mean[1] - mean[1:].min())
        print(
            f"{group}: auto within .01 of the best fixed lam in "
            f"{np.mean(np.array(excess) <= 0.01):.0%} of {len(excess)} designs, "
            f"{np.mean(excess):.4f} above it on average (k-POD: {np.mean(zero):.4f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
