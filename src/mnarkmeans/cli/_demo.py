"""`mnarkmeans demo`: the whole job on built-in data, in under a minute.

600 simulated cells of four kinds and 60 genes. A gene is measured unless its value is small or the
cell was read too shallowly: P(observed) = depth_i (1 - exp(-0.3 x^2)). Filling the gaps with zero
sorts cells by depth, filling with means blurs the kinds, and k-POD takes what is left for all there
is. The design and its numbers were chosen to show this effect; how often it occurs elsewhere is
what the study and the reproduction in the docs are for. The table is written with the results, so
that every step can be repeated with `fit`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from .. import MNARKMeans
from ._compare import (
    FILES,
    OURS,
    WORDS,
    comparison_page,
    few_threads,
    run_all,
    score,
    strip,
    write_comparison,
)
from ._console import Console
from ._csv import write_csv
from ._formats import read_file
from ._job import prepare, tell_table
from ._options import Reading, Steps
from ._output import claimed_folder
from ._results import RESULT_FILES, Results, summarise, write_results
from ._resume import Parts

KINDS, CELLS, GENES = 4, 600, 60
TABLE = "cells.csv"
COMPLETE = "complete"


def simulate(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(table with gaps, the same without, kind of every cell).

    Examples
    --------
    >>> X, complete, kind = simulate()
    >>> X.shape, round(float(np.isnan(X).mean()), 1)
    ((600, 60), 0.8)
    """
    rng = np.random.default_rng(seed)
    levels = np.where(rng.random((KINDS, GENES)) < 0.35, 2.5, 0.0)
    kind = rng.integers(0, KINDS, CELLS)
    complete = np.abs(levels[kind] + rng.normal(size=(CELLS, GENES)))
    depth = rng.uniform(0.2, 0.9, size=(CELLS, 1))
    observed = rng.random(complete.shape) < depth * (1 - np.exp(-0.3 * complete**2))
    return np.where(observed, complete, np.nan).round(4), complete, kind


def demo(console: Console, out: Path, force: bool) -> None:
    """Simulate, compare, report."""
    X, complete, kind = simulate()
    files = [*RESULT_FILES, *FILES, TABLE]
    with claimed_folder(out, files, force=force) as claim, claim.files() as folder:
        write_table(folder / TABLE, X, kind)
        # Read as any table, without hints: they would name a file that is about to move.
        job = prepare(read_file(folder / TABLE, Reading(), labels=("kind",)), Steps())
        tell_table(console, out / TABLE, job.table)
        estimator = MNARKMeans(KINDS, n_init=20, random_state=0)
        rivals = ["zero", "mean", "kpod"]
        results, course = run_all(console, job, estimator, rivals, Parts(None, {}), kind)
        results.append(_without_gaps(complete, kind))
        summary = summarise(job, folder / TABLE, estimator, course, comparison=strip(results))
        facts = {"comparison": _section(results, kind)}
        title = "mnarkmeans demo: 600 simulated cells"
        written = Results(job, estimator, summary, Reading(drop=["kind"]), title, facts=facts)
        write_results(folder, written)
        write_comparison(folder, written, results, kind)
    _tell(console, results, out)
    console.result({"methods": strip(results), "lam": estimator.lam_, "output": str(out)})


def _without_gaps(complete: np.ndarray, kind: np.ndarray) -> dict[str, Any]:
    """What k-means would find on the table that nobody has."""
    with few_threads(complete):
        labels = KMeans(KINDS, n_init=20, random_state=0).fit_predict(complete)
    result = {"method": COMPLETE, "labels": labels, "seconds": 0.0, "note": ""}
    score(result, kind, labels)
    return result


def _section(results: list[dict[str, Any]], kind: np.ndarray) -> dict[str, Any]:
    """The comparison of the report, with what nobody has as its last row."""
    page = comparison_page(results[:-1], kind)
    numbers = [round(results[-1][name], 4) for name in ("cer", "ari")]
    page["rows"].append(["k-means on the complete table, which nobody has", *numbers, ""])
    page["text"] = (
        "600 simulated cells of four kinds. Small values are the likeliest to be missing, and each "
        "cell is read to its own depth. " + page["text"]
    )
    return page


def write_table(path: Path, X: np.ndarray, kind: np.ndarray) -> None:
    """The simulated table as people have theirs: ids, numbers, gaps, a column of classes."""
    rows = (
        [f"cell{i + 1:03d}", *("" if np.isnan(v) else f"{v:g}" for v in row),
         f"kind {'ABCD'[kind[i]]}"]
        for i, row in enumerate(X)
    )  # fmt: skip
    write_csv(path, ["cell", *(f"gene{j + 1:02d}" for j in range(GENES)), "kind"], rows)


def _tell(console: Console, results: list[dict[str, Any]], out: Path) -> None:
    words = WORDS | {COMPLETE: "(k-means on the complete table, which nobody has)"}
    order = sorted(results, key=lambda r: (r["method"] == COMPLETE, -r["cer"]))
    widest = max(r["cer"] for r in results) or 1.0
    rows = [
        [words[r["method"]] + (" <- this package" if r["method"] == OURS else ""),
         f"{r['cer']:.1%}", "#" * round(24 * r["cer"] / widest) or "."]
        for r in order
    ]  # fmt: skip
    console.table("pairs of cells sorted wrongly", ["method", "error", ""], rows)
    console.say(f"open {out / 'report.html'} in a browser")
    console.say(f"the same on a table of yours: mnarkmeans fit {out / TABLE} -k 4 -o my-result/")
