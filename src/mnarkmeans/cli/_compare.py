"""`mnarkmeans compare`: our method and its rivals on the same rows, side by side."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from .. import MNARKMeans
from ..baselines import BASELINES
from ..metrics import clustering_error_rate
from . import _output
from ._console import Console
from ._errors import UserError, one_line, unknown_name
from ._fit import check_clusters
from ._job import Prepared, Reading, fit_with_progress, prepare, tell_table
from ._results import RESULT_FILES, file_sum, summarise, write_results
from ._resume import Parts

OURS = "mnarkmeans"
WORDS = {
    OURS: "mnarkmeans",
    "zero": "k-means, gaps filled with zero",
    "mean": "k-means, gaps filled with means",
    "knn": "k-means after KNN imputation",
    "mice": "k-means after MICE imputation",
    "kpod": "k-POD",
    "fwpd": "FWPD k-means",
    "scimpute": "k-means after scImpute",
}
FILES = [*RESULT_FILES, "comparison.csv", "comparison_labels.csv"]


def compare(
    console: Console,
    data: Path,
    out: Path | None,
    reading: Reading,
    *,
    labels: str | None,
    methods: list[str],
    steps: dict[str, Any],
    params: dict[str, Any],
    force: bool,
) -> None:
    """Run every method, resuming where an earlier run stopped."""
    for name in methods:
        if name not in BASELINES:
            raise unknown_name("method", name, BASELINES)
    if out is not None:
        _output.check_folder(out, FILES, force)
    table = reading.read(data, labels=(labels,) if labels else ())
    job = prepare(table, **steps)
    check_clusters(params["n_clusters"], job)
    tell_table(console, data, job.table)
    truth = true_labels(job, labels)
    key = {"data": file_sum(data), "reading": reading.__dict__, "steps": steps, "params": params}
    parts = Parts(out, key)
    estimator = MNARKMeans(reference=job.reference, **params)
    rivals = methods or list(BASELINES)
    results, notes, seconds = run_all(console, job, estimator, rivals, parts, truth)
    page = comparison_page(results, truth)
    if out is not None:
        summary = summarise(job, data, estimator, notes, seconds, comparison=strip(results))
        with _output.folder(out, FILES, force=force) as hidden:
            write_results(
                hidden, job, estimator, summary, reading, title=data.name,
                facts={"comparison": page},
            )  # fmt: skip
            write_comparison(hidden, job, results, truth)
        parts.clear()
    tell(console, results, truth)
    if out is not None:
        console.say(f"written to {out}; open {out / 'report.html'}")
    console.result({"methods": strip(results), "output": str(out) if out else None})


def true_labels(job: Prepared, column: str | None) -> np.ndarray | None:
    """The known classes as numbers, -1 where unknown."""
    if column is None:
        return None
    import pandas as pd

    values = job.table.labels[column]
    codes, names = pd.factorize(pd.Series(values), use_na_sentinel=True)
    if len(names) < 2:
        raise UserError(f"column {column!r} has {len(names)} class; two are needed to compare with")
    return np.asarray(codes)


def run_all(
    console: Console,
    job: Prepared,
    estimator: MNARKMeans,
    rivals: list[str],
    parts: Parts,
    truth: np.ndarray | None,
) -> tuple[list[dict[str, Any]], list[str], float]:
    """Ours first (it is also what the results folder holds), then the rivals."""
    notes, seconds = fit_with_progress(console, estimator, job.X)
    results: list[dict[str, Any]] = [
        {"method": OURS, "labels": estimator.labels_, "seconds": seconds, "note": ""}
    ]
    k, seed = estimator.n_clusters, estimator.random_state
    with console.steps("comparing", len(rivals)) as step:
        for name in rivals:
            found = parts.load(name)
            if found is None:
                found = parts.save(name, run_one(name, k, seed, job.X))
            results.append(found | {"labels": _as_labels(found["labels"])})
            step(WORDS[name] + (" failed" if found["note"] else ""))
    for result in results:
        score(result, truth, results[0]["labels"])
    return results, notes, seconds


def _as_labels(labels: list[int] | None) -> np.ndarray | None:
    return None if labels is None else np.asarray(labels, dtype=int)


def run_one(name: str, k: int, seed: Any, X: Any) -> dict[str, Any]:
    """One rival; a method that cannot handle the table is a result, not an error."""
    import warnings

    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rivals' convergence is theirs to tell, in the table
            labels = np.asarray(BASELINES[name](k, random_state=seed).fit_predict(X))
        note = ""
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
        labels, note = None, one_line(error)
    return {"method": name, "labels": labels, "seconds": time.perf_counter() - begin, "note": note}


def score(result: dict[str, Any], truth: np.ndarray | None, ours: np.ndarray) -> None:
    """Error against the known classes, or without them the disagreement with our labels."""
    labels = result["labels"]
    if labels is None:
        result.update(cer=None, ari=None, clusters=None)
        return
    known = np.ones(labels.size, bool) if truth is None else truth >= 0
    against = ours if truth is None else truth
    result.update(
        cer=float(clustering_error_rate(against[known], labels[known])),
        ari=float(adjusted_rand_score(against[known], labels[known])),
        clusters=int(np.unique(labels).size),
    )


def strip(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the labels of every row."""
    return [{k: v for k, v in result.items() if k != "labels"} for result in results]


def comparison_page(results: list[dict[str, Any]], truth: np.ndarray | None) -> dict[str, Any]:
    """The section of the report."""
    if truth is None:
        text = "No classes are known: the numbers tell how far each method is from mnarkmeans."
    else:
        text = "How well each method finds the known classes, which none of them has seen."
    rows = [
        [WORDS[r["method"]], *(_cell(r[name]) for name in ("cer", "ari")), round(r["seconds"], 2)]
        if r["labels"] is not None
        else [f"{WORDS[r['method']]}: {r['note']}", "failed", "failed", round(r["seconds"], 2)]
        for r in results
    ]
    return {
        "text": text,
        "caption": "Error: share of pairs of rows on which two partitions disagree.",
        "columns": ["Method", "Error", "Adjusted Rand", "Seconds"],
        "rows": rows,
        "ours": [WORDS[OURS]],
    }


def _cell(value: float) -> float:
    return round(value, 4)


def write_comparison(
    folder: Path, job: Prepared, results: list[dict[str, Any]], truth: np.ndarray | None
) -> None:
    """comparison.csv (one row per method) and comparison_labels.csv (one row per row)."""
    with open(folder / "comparison.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["method", "cer", "ari", "clusters", "seconds", "note"])
        for r in results:
            cells = [r["cer"], r["ari"], r["clusters"], round(r["seconds"], 4)]
            told = ["" if c is None else c for c in cells]
            writer.writerow([r["method"], *told, r["note"]])
    with open(folder / "comparison_labels.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        done = [r for r in results if r["labels"] is not None]
        writer.writerow(
            ["id", *(["class"] if truth is not None else []), *(r["method"] for r in done)]
        )
        for i, name in enumerate(job.table.ids):
            known = [int(truth[i])] if truth is not None else []
            writer.writerow([name, *known, *(int(r["labels"][i]) for r in done)])


def tell(console: Console, results: list[dict[str, Any]], truth: np.ndarray | None) -> None:
    """The table of results."""
    title = "error against the known classes" if truth is not None else "disagreement with ours"
    rows = []
    for r in results:
        if r["labels"] is None:
            rows.append([f"{WORDS[r['method']]}: {r['note']}", "failed", "", ""])
        else:
            numbers = [f"{r['cer']:.3f}", f"{r['ari']:.3f}", f"{r['seconds']:.2f}"]
            rows.append([WORDS[r["method"]], *numbers])
    console.table(title, ["method", "error", "adjusted Rand", "seconds"], rows)
