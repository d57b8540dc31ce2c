"""`mnarkmeans compare`: k-means, the mixture and the rivals on the same rows, side by side."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from .. import MNARKMeans, MNARMixture
from ..baselines import BASELINES
from ..metrics import clustering_error_rate
from ._annotations import agreements, tell_annotations
from ._console import Console
from ._csv import write_csv
from ._errors import UserError, one_line, unknown_name
from ._forecast import forecast
from ._job import Course, Prepared, fit_with_progress, open_source
from ._options import Fitting, OptionalOutput, Source
from ._output import maybe_claimed_folder
from ._results import Results, result_files, summarise, table_key, write_results
from ._resume import Parts
from ._spoken import spoken
from ._within import within

OURS, MIXTURE = "mnarkmeans", "mixture"
BESIDE = (MIXTURE, *BASELINES)  # what is run beside ours, by name
WORDS = {
    OURS: "mnarkmeans",
    MIXTURE: "Gaussian mixture with gaps (MNARMixture)",
    "zero": "k-means, gaps filled with zero",
    "mean": "k-means, gaps filled with means",
    "knn": "k-means after KNN imputation",
    "mice": "k-means after MICE imputation",
    "kpod": "k-POD",
    "fwpd": "FWPD k-means",
    "scimpute": "k-means after scImpute",
    "qrilc": "k-means after QRILC imputation",
    "minprob": "k-means after MinProb imputation",
    "rkpod": "regularised k-POD",
    "pca": "k-means on 50 principal components",
    "gmm": "Gaussian mixture (StepMix)",
    "gmm_mask": "Gaussian mixture with the pattern of gaps (StepMix)",
}
SMALL = 1_000_000  # entries
FILES = ("comparison.csv", "comparison_labels.csv")

Maker = Callable[[], Any]  # of an estimator; it may travel to another process


def compare(
    console: Console,
    source: Source,
    fitting: Fitting,
    output: OptionalOutput,
    labels: str | None,
    methods: list[str],
    without: list[str],
    limit: float | None,
) -> None:
    """Run every method, resuming where an earlier run stopped."""
    for name in (*methods, *without):
        if name not in BESIDE:
            raise unknown_name("method", name, BESIDE)
    files = result_files(source, *FILES)
    with maybe_claimed_folder(output.out, files, force=output.force, inputs=source.inputs) as claim:
        known = (labels,) if labels else ()
        job = open_source(console, source, clusters=fitting.clusters, labels=known)
        truth = true_labels(job, labels)
        parts = Parts(claim, _key(source, fitting))
        estimator = MNARKMeans(reference=job.reference, **fitting.params())
        rivals = [name for name in methods or BESIDE if name not in without]
        results, course = run_all(console, job, estimator, rivals, parts, truth, limit)
        if claim is not None:
            summary = summarise(job, source.data, estimator, course, comparison=strip(results))
            facts = {"comparison": comparison_page(results, truth)}
            written = Results(
                job, estimator, summary, source.reading, source.data.name, facts=facts,
                safe=output.safe,
            )  # fmt: skip
            with claim.files() as folder:
                write_results(folder, written)
                write_comparison(folder, written, results, truth)
            parts.clear()
    tell(console, results, truth)
    tell_annotations(console, agreements(job.annotations, estimator.labels_))
    if output.out is not None:
        console.say(f"written to {output.out}; open {output.out / 'report.html'}")
    console.result({"methods": strip(results), "output": output.out and str(output.out)})


def _key(source: Source, fitting: Fitting) -> dict[str, Any]:
    """What the labels of the methods beside ours depend on."""
    return table_key(source) | {"clusters": fitting.clusters, "seed": fitting.seed}


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
    limit: float | None = None,
) -> tuple[list[dict[str, Any]], Course]:
    """Ours first (it is also what the results folder holds), then the others."""
    course = fit_with_progress(console, estimator, job.X)
    results: list[dict[str, Any]] = [
        {"method": OURS, "labels": estimator.labels_, "seconds": course.seconds, "note": ""}
    ]
    k = estimator.n_clusters
    makers = makers_of(estimator, job.reference)
    done = {name: parts.load(name) for name in rivals}
    ahead = [name for name in rivals if done[name] is None]
    with console.steps("comparing", None) as step:
        if ahead:
            step("trying each method on a few rows")
        guess = forecast(ahead, job.X, k, lambda name, few: _labels(makers[name], few), limit)
        for number, name in enumerate(rivals, start=1):
            found = done[name]
            if found is None:
                told = f"{number} of {len(rivals)}, {WORDS[name]}"
                left = guess.left(ahead)
                step(f"{told}, {left}" if left else told)
                begin = time.perf_counter()
                found = run_one(name, makers[name], job.X, limit)
                whole = time.perf_counter() - begin
                guess.finished(name, found["seconds"], whole)
                ahead.remove(name)
                parts.save(name, found)
            results.append(found)
    for result in results:
        score(result, truth, results[0]["labels"])
    return results, course


def makers_of(estimator: MNARKMeans, reference: Any) -> dict[str, Maker]:
    """What makes each method that is run beside this one."""
    k, seed = estimator.n_clusters, estimator.random_state
    # How sure it may be of its labels (`temper`) takes more fits, and changes none of them.
    mixture = partial(
        MNARMixture, k, reference=reference, temper=1.0, random_state=seed, n_jobs=estimator.n_jobs
    )
    rivals = {name: partial(make, k, random_state=seed) for name, make in BASELINES.items()}
    return {MIXTURE: mixture, **rivals}


def run_one(name: str, make: Maker, X: Any, limit: float | None = None) -> dict[str, Any]:
    """One method; one that cannot handle the table is a result, not an error."""
    if limit is None:
        begin = time.perf_counter()
        labels, note = _labels(make, X)
        seconds = time.perf_counter() - begin
    else:
        try:
            (labels, note), seconds = within(limit, _labels, make, X)
        except (TimeoutError, ChildProcessError) as error:
            labels, note, seconds = None, str(error), limit
    return {"method": name, "labels": labels, "seconds": seconds, "note": note}


def _labels(make: Maker, X: Any) -> tuple[np.ndarray | None, str]:
    try:
        with warnings.catch_warnings(), few_threads(X):
            warnings.simplefilter("ignore")  # rivals' convergence is theirs to tell, in the table
            return np.asarray(make().fit_predict(X)), ""
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError, ImportError) as error:
        return None, spoken(one_line(error))


def few_threads(X: Any) -> AbstractContextManager[Any]:
    """One thread for a small table: on a busy machine threads wait longer than they work."""
    return threadpool_limits(1 if np.prod(X.shape) < SMALL else None, "openmp")


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
    folder: Path, written: Results, results: list[dict[str, Any]], truth: np.ndarray | None
) -> None:
    """comparison.csv (one row per method) and comparison_labels.csv (one row per row)."""
    numbers = ("method", "cer", "ari", "clusters")
    write_csv(
        folder / "comparison.csv",
        [*numbers, "seconds", "note"],
        ([*(r[name] for name in numbers), round(r["seconds"], 4), r["note"]] for r in results),
    )
    done = [r for r in results if r["labels"] is not None]
    known = [] if truth is None else [truth.tolist()]
    columns = [*known, *(r["labels"].tolist() for r in done)]
    write_csv(
        folder / "comparison_labels.csv",
        ["id", *(["class"] if known else []), *(r["method"] for r in done)],
        zip(written.job.table.ids, *columns, strict=True),
        safe=written.safe,
    )


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
