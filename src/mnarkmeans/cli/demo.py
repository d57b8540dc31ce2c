"""`mnarkmeans demo`: the whole job on built-in data.

600 simulated cells of four types and 60 genes. A gene is measured unless its value is small or the
cell was sequenced too shallowly: P(observed) = depth_i (1 - exp(-0.3 x^2)). Zero imputation then
sorts cells by depth, mean imputation blurs the types, and k-POD takes the remaining values for all
there is. The design was chosen to show this; how often it matters elsewhere is shown by the
studies in the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from .. import MNARKMeans
from ._claims import claimed
from ._fitting import open_job
from ._options import ResultOptions, SourceOptions, option
from ._outputs import FILES
from .compare import Comparison, run_one

TYPES, CELLS, GENES = 4, 600, 60
TABLE = "cells.csv"
COMPLETE = "k-means on the complete table (not available in practice)"
DESIGN = (
    "600 simulated cells of four types, made to suit the method: small values are the most likely "
    "to be missing, and each cell has its own sequencing depth."
)


@dataclass(frozen=True, kw_only=True)
class DemoOptions(ResultOptions):
    out: Path = option(
        Path("mnarkmeans-demo"), "Folder to write to.", "-o", "--output", metavar="OUT",
        panel="Output",
    )  # fmt: skip
    title: str = option(
        "mnarkmeans demo: 600 simulated cells", "Title of the report.", panel="Output",
        show_default=False,
    )  # fmt: skip


def simulate(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(table with missing values, the same without, type of every cell).

    Examples
    --------
    >>> X, complete, types = simulate()
    >>> X.shape, round(float(np.isnan(X).mean()), 1)
    ((600, 60), 0.8)
    """
    rng = np.random.default_rng(seed)
    levels = np.where(rng.random((TYPES, GENES)) < 0.35, 2.5, 0.0)
    types = rng.integers(0, TYPES, CELLS)
    complete = np.abs(levels[types] + rng.normal(size=(CELLS, GENES)))
    depth = rng.uniform(0.2, 0.9, size=(CELLS, 1))
    observed = rng.random(complete.shape) < depth * (1 - np.exp(-0.3 * complete**2))
    return np.where(observed, complete, np.nan).round(4), complete, types


def demo(output: DemoOptions) -> None:
    """Start here: cluster built-in data and compare with other methods.

    Example: mnarkmeans demo -o demo
    """
    out = output.out
    X, complete, types = simulate()
    with claimed(out, [*FILES, TABLE], force=output.force) as claim, claim.writing() as folder:
        table = pd.DataFrame(X, columns=[f"gene{j + 1:02d}" for j in range(GENES)])
        table.insert(0, "cell", [f"cell{i + 1:03d}" for i in range(CELLS)])
        table["type"] = [f"type {'ABCD'[kind]}" for kind in types]
        table.to_csv(folder / TABLE, index=False)
        source = SourceOptions(data=folder / TABLE, labels=["type"], as_is=True)
        job = open_job(output, source, TYPES)
        model = MNARKMeans(TYPES, n_init=20, random_state=0)
        comparison = Comparison(types, DESIGN)
        comparison.run(job, model, ["zero", "mean", "kpod"], {})
        best = partial(KMeans, TYPES, n_init=20, random_state=0)
        comparison.add(COMPLETE, **run_one(best, complete))
        comparison.write(folder, job, model)
    console = output.console
    console.say(DESIGN)
    console.say("error: the share of pairs of cells grouped wrongly")
    console.table("comparison with the known types", *comparison.table())
    console.say(f"open {out / 'report.html'} in a browser")
    console.say(
        "for your own table, replace the file name and -k in: "
        f"mnarkmeans fit {out / TABLE} -k 4 -o my-result"
    )
    console.result({"methods": comparison.results, "lam": model.lam_, "output": str(out)})
