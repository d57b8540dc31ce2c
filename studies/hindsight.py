"""python -m studies hindsight [--groups ...] [--seeds ...] [--every N]

How much better the best candidate in hindsight is than one that somebody takes who knows how the
tables are made, but not the table: the candidate with the best mean adjusted Rand index on the
other tables of the same design. A choice that sees the table can hardly be expected to have less
regret than that, since most of it is luck.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from studies import designs
from studies.choice import GROUPS, models
from studies.summary import markdown


def regrets(design: designs.Design, number: int, seeds: list[int]) -> np.ndarray:
    """(tables,) best less taken."""
    index = np.empty((len(seeds), len(models("best", design, 0))))
    for row, seed in enumerate(seeds):
        data = design.make(1000 * seed + number)
        labels = [model.fit_predict(data.X) for model in models("best", design, seed)]
        index[row] = [adjusted_rand_score(data.classes, each) for each in labels]
    others = index.sum(axis=0) - index
    return index.max(axis=1) - index[np.arange(len(seeds)), others.argmax(axis=1)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    groups = list(designs.GROUPS)
    parser.add_argument("--groups", nargs="+", choices=groups, default=groups)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(151, 159)))
    parser.add_argument("--every", type=int, default=1, help="only every so many designs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = {}
    with threadpool_limits(1):
        for group in options.groups:
            chosen = list(enumerate(GROUPS[group]()))[:: options.every]
            each = [regrets(design, number, options.seeds) for number, design in chosen]
            lines[group] = np.concatenate(each)
    lines["all tables"] = np.concatenate(list(lines.values()))
    frame = pd.DataFrame({
        name: {"tables": len(part), "regret": part.mean(), "90 %": np.quantile(part, 0.9)}
        for name, part in lines.items()
    }).T  # fmt: skip
    frame.index.name = "group"
    print(markdown(frame))
