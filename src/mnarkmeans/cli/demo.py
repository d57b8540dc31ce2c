"""`mnarkmeans demo`: the whole job on built-in data.

600 simulated cells of four types and 60 genes. A gene is measured unless its value is small or the
cell was sequenced too shallowly: P(observed) = depth_i (1 - exp(-0.3 x^2)). Zero imputation then
sorts cells by depth, mean imputation blurs the types, and k-POD takes the remaining values for all
there is. The design was chosen to show this; how often it matters elsewhere is shown by the
studies in the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from .. import MNARKMeans
from ._job import describe, prepared, read
from ._main import verb
from ._options import Folder, Source, Talking, option
from ._outputs import Parts, claimed, write_csv
from ._results import FILES, results_of, write_results
from .compare import FILES as COMPARISON
from .compare import (
    OURS,
    WORDS,
    comparison_page,
    few_threads,
    run_all,
    score,
    without_labels,
    write_comparison,
)

TYPES, CELLS, GENES = 4, 600, 60
TABLE = "cells.csv"
COMPLETE = "k-means on the complete table (not available in practice)"


@dataclass(frozen=True, kw_only=True)
class Shown(Talking):
    """Where the results go."""

    out: Path = option(
        Path("mnarkmeans-demo"), "Folder to write to.", "-o", "--output", metavar="OUT",
        panel="Output",
    )  # fmt: skip
    force: bool = option(False, "Replace existing files.", "--force", panel="Output")


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


@verb("demo -o demo")
def demo(shown: Shown) -> None:
    """Cluster built-in data and compare with other methods; takes under a minute. Start here."""
    console, out = shown.console, shown.out
    X, complete, types = simulate()
    files = [*FILES, *COMPARISON, "annotations.csv", TABLE]
    with claimed(out, files, force=shown.force) as claim, claim.writing() as folder:
        header = ["cell", *(f"gene{j + 1:02d}" for j in range(GENES)), "type"]
        rows = (
            [f"cell{i + 1:03d}", *("" if np.isnan(v) else v for v in row), f"type {'ABCD'[kind]}"]
            for i, (row, kind) in enumerate(zip(X, types, strict=True))
        )
        write_csv(folder / TABLE, header, rows)
        source = Source(data=folder / TABLE, labels=["type"])
        job = prepared(source, read(source), TYPES)
        describe(console, job.table)
        model = MNARKMeans(TYPES, n_init=20, random_state=0)
        found = run_all(console, job, model, ["zero", "mean", "kpod"], Parts(None, {}), types)
        with few_threads(complete):
            labels = KMeans(TYPES, n_init=20, random_state=0).fit_predict(complete)
        found.append({"method": COMPLETE, "labels": labels, "seconds": 0.0, "note": ""})
        score(found[-1], types, labels)
        output = Folder(out=out, title="mnarkmeans demo: 600 simulated cells")
        results = results_of(console, job, model, output, comparison=without_labels(found))
        page = results.facts["comparison"] = comparison_page(found, types)
        page["text"] = (
            "600 simulated cells of four types. Small values are the most likely to be missing, "
            f"and each cell has its own sequencing depth. {page['text']}"
        )
        write_results(folder, results)
        write_comparison(folder, results, found, types)
    order = sorted(found, key=lambda r: (r["method"] == COMPLETE, -r["cer"]))
    names = WORDS | {OURS: "mnarkmeans <- this package", COMPLETE: COMPLETE}
    bar = 24 / (max(r["cer"] for r in found) or 1.0)
    lines = [[names[r["method"]], f"{r['cer']:.1%}", "#" * round(bar * r["cer"])] for r in order]
    console.table("pairs of cells grouped wrongly", ["method", "error", ""], lines)
    console.say(f"open {out / 'report.html'} in a browser")
    console.say(f"the same for a table of yours: mnarkmeans fit {out / TABLE} -k 4 -o my-result")
    console.result({"methods": without_labels(found), "lam": model.lam_, "output": str(out)})
