"""`mnarkmeans compare`: our k-means, our mixture and other methods on the same rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from .. import MNARKMeans, MNARMixture
from .._io import require
from ..baselines import BASELINES
from ..metrics import clustering_error_rate
from ..metrics._annotations import agreement
from ..tables._table import unknown_name
from ._console import Console, UserError, duration, in_options, one_line
from ._job import Job, fit_with_progress, job_key, open_job
from ._main import verb
from ._options import Fitting, OptionalFolder, Source, option
from ._outputs import Parts, claimed, write_csv
from ._results import Results, print_agreement, result_files, results_of, write_results

OURS, MIXTURE = "mnarkmeans", "mixture"
OTHERS = (MIXTURE, *BASELINES)
WORDS = {
    OURS: "mnarkmeans",
    MIXTURE: "Gaussian mixture with missing values (MNARMixture)",
    "zero": "k-means, zero imputation",
    "mean": "k-means, mean imputation",
    "knn": "k-means, KNN imputation",
    "mice": "k-means, MICE imputation",
    "kpod": "k-POD",
    "fwpd": "FWPD k-means",
    "scimpute": "k-means, scImpute",
    "qrilc": "k-means, QRILC imputation",
    "minprob": "k-means, MinProb imputation",
    "rkpod": "regularised k-POD",
    "pca": "k-means on 50 principal components",
    "gmm": "Gaussian mixture (StepMix)",
    "gmm_mask": "Gaussian mixture with missingness indicators (StepMix)",
}
FILES = ("comparison.csv", "comparison_labels.csv")
SMALL = 1_000_000  # entries of a table that one thread clusters fastest
TRIAL_ROWS = 200  # to estimate how long a method takes

Maker = Callable[[], Any]  # of an estimator
Result = dict[str, Any]  # method, labels (None: no result), seconds, note, cer, ari, clusters


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """What is compared."""

    methods: list[str] | None = option(None, "Methods to run, such as mixture,kpod. Default: all.")
    without: list[str] | None = option(None, "Methods to leave out, such as mice,fwpd.")

    def names(self) -> list[str]:
        """The methods to run beside ours."""
        wanted, unwanted = (
            [name.strip() for text in given or [] for name in text.split(",")]
            for given in (self.methods, self.without)
        )
        for name in (*wanted, *unwanted):
            if name not in OTHERS:
                raise unknown_name("method", name, OTHERS)
        return [name for name in wanted or OTHERS if name not in unwanted]


@verb("compare cells.csv -k 4 --labels celltype")
def compare(comparing: Comparing, fitting: Fitting, output: OptionalFolder, source: Source) -> None:
    """Run other clustering methods on the same table; with -o, an interrupted run continues."""
    console, names, out = output.console, comparing.names(), output.out
    files = result_files(source, *FILES)
    with (
        nullcontext() if out is None
        else claimed(out, files, force=output.force, inputs=source.inputs)
    ) as claim:  # fmt: skip
        job = open_job(console, source, fitting.n_clusters)
        truth = _true_labels(job, source.labels)
        parts = Parts(
            claim, job_key(source, clusters=fitting.n_clusters, seed=fitting.random_state)
        )
        model = MNARKMeans(reference=job.reference, **vars(fitting))
        found = run_all(console, job, model, names, parts, truth)
        if claim is not None:
            results = results_of(console, job, model, output, comparison=without_labels(found))
            results.facts["comparison"] = comparison_page(found, truth)
            with claim.writing() as folder:
                write_results(folder, results)
                write_comparison(folder, results, found, truth)
            parts.clear()
    title = "agreement with mnarkmeans" if truth is None else "error against the known classes"
    console.table(title, *comparison_table(found, truth))
    for text in _notes(found):
        console.note(text)
    print_agreement(console, agreement(job.table.annotations, model.labels_))
    if out is not None:
        console.say(f"written to {out}; open {out / 'report.html'}")
    console.result({"methods": without_labels(found), "output": out and str(out)})


def _true_labels(job: Job, columns: list[str] | None) -> np.ndarray | None:
    """The known classes as numbers, -1 where unknown."""
    if not columns:
        return None
    pandas = require("pandas", "cli")
    codes, names = pandas.factorize(pandas.Series(job.table.labels[columns[0]]))
    if len(names) < 2:
        raise UserError(
            f"column {columns[0]!r} has {len(names) or 'no'} class; a comparison needs two"
        )
    return np.asarray(codes)


# --- running the methods ----------------------------------------------------------------------


def run_all(
    console: Console,
    job: Job,
    model: MNARKMeans,
    names: list[str],
    parts: Parts,
    truth: np.ndarray | None,
) -> list[Result]:
    """Our k-means, then the other methods; those finished by an earlier run are not run again."""
    fit_with_progress(console, job, model)
    ours: Result = {"method": OURS, "labels": model.labels_, "seconds": job.seconds, "note": ""}
    makers = makers_of(model, job.reference)
    done = {name: parts.load(name) for name in names}
    ahead = [name for name in names if done[name] is None]
    with console.progress("comparing") as step:
        expected = {name: _expected_seconds(makers[name], job.X) for name in ahead}
        for number, name in enumerate(names, start=1):
            if done[name] is not None:
                continue
            seconds = sum(expected[n] for n in ahead)
            left = f", about {duration(seconds)} left" if np.isfinite(seconds) else ""
            step(f"{number} of {len(names)}, {WORDS[name]}{left}")
            done[name] = run_one(name, makers[name], job.X)
            ahead.remove(name)
            parts.save(name, done[name])
    found = [ours, *done.values()]
    for result in found:
        score(result, truth, ours["labels"])
    return found


def makers_of(model: MNARKMeans, reference: Any) -> dict[str, Maker]:
    """What makes each method that is run beside our k-means."""
    k, seed = model.n_clusters, model.random_state
    # temper=1: calibrated probabilities take more fits and change no label.
    mixture = partial(
        MNARMixture, k, reference=reference, temper=1.0, random_state=seed, n_jobs=model.n_jobs
    )
    others = {name: partial(make, k, random_state=seed) for name, make in BASELINES.items()}
    return {MIXTURE: mixture, **others}


def _expected_seconds(make: Maker, X: Any) -> float:
    """Seconds a method may take, from a trial on a few rows of a large table."""
    n = X.shape[0]
    if n < 10 * TRIAL_ROWS:
        return np.inf
    few = X[np.linspace(0, n - 1, TRIAL_ROWS).astype(int)]
    return run_one("", make, few)["seconds"] * n / TRIAL_ROWS


def run_one(name: str, make: Maker, X: Any) -> Result:
    """One method; one that cannot handle the table is a result, not an error."""
    begin, labels, note = time.perf_counter(), None, ""
    try:
        with warnings.catch_warnings(), few_threads(X):
            warnings.simplefilter("ignore")
            labels = np.asarray(make().fit_predict(X))
    except ImportError as error:
        note = f"not installed: run {one_line(error).rpartition(': ')[2]}"
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
        note = f"failed: {in_options(one_line(error))}"
    seconds = time.perf_counter() - begin
    return {"method": name, "labels": labels, "note": note, "seconds": seconds}


def few_threads(X: Any) -> AbstractContextManager[Any]:
    """One thread for a small table: on a busy machine threads wait longer than they work."""
    return threadpool_limits(1 if np.prod(X.shape) < SMALL else None, "openmp")


# --- what is shown ----------------------------------------------------------------------------


def score(result: Result, truth: np.ndarray | None, ours: np.ndarray) -> None:
    """Error and adjusted Rand index against the known classes, or agreement with our labels."""
    labels = result["labels"]
    result.update(cer=None, ari=None, clusters=None)
    if labels is None:
        return
    result["clusters"] = int(np.unique(labels).size)
    if truth is not None:
        known = truth >= 0
        result["cer"] = float(clustering_error_rate(truth[known], labels[known]))
        result["ari"] = float(adjusted_rand_score(truth[known], labels[known]))
    elif result["method"] != OURS:  # our own labels would only agree with themselves
        result["ari"] = float(adjusted_rand_score(ours, labels))


def without_labels(found: list[Result]) -> list[Result]:
    """The results without the label of every row."""
    return [{k: v for k, v in result.items() if k != "labels"} for result in found]


def _notes(found: list[Result]) -> list[str]:
    return [f"{WORDS[r['method']]}: {r['note']}" for r in found if r["note"]]


def comparison_table(found: list[Result], truth: np.ndarray | None) -> tuple[list, list[list]]:
    """Header and rows, as text."""
    header = ["method", "agreement"] if truth is None else ["method", "error", "adjusted Rand"]
    rows = []
    for r in found:
        numbers = (r["ari"],) if truth is None else (r["cer"], r["ari"])
        cells = ["" if v is None else f"{v:.3f}" for v in numbers]
        if r["labels"] is None:
            cells[0] = r["note"].partition(":")[0]  # failed, not installed
        rows.append([WORDS.get(r["method"], r["method"]), *cells, f"{r['seconds']:.2f}"])
    return [*header, "seconds"], rows


def comparison_page(found: list[Result], truth: np.ndarray | None) -> dict[str, Any]:
    """The section of the report."""
    header, rows = comparison_table(found, truth)
    if truth is None:
        text = (
            "No classes are known. Agreement is the adjusted Rand index between the clusters of "
            "each method and those of mnarkmeans: it says how much they differ, not which is right."
        )
    else:
        text = (
            "How well each method recovers the known classes, which none of them was given. The "
            "error is the share of pairs of rows on which the clusters and the classes disagree."
        )
    columns = [name[0].upper() + name[1:] for name in header]
    caption = " ".join(f"{note}." for note in _notes(found))
    return {"text": text, "caption": caption, "columns": columns, "rows": rows,
            "ours": [WORDS[OURS]]}  # fmt: skip


def write_comparison(
    folder: Path, results: Results, found: list[Result], truth: np.ndarray | None
) -> None:
    """comparison.csv (one row per method) and comparison_labels.csv (one row per row)."""
    columns = ("method", "cer", "ari", "clusters", "seconds", "note")
    lines = ([round(r[n], 4) if isinstance(r[n], float) else r[n] for n in columns] for r in found)
    write_csv(folder / "comparison.csv", columns, lines)
    done = [r for r in found if r["labels"] is not None]
    labels = {} if truth is None else {"class": truth}
    labels |= {r["method"]: r["labels"] for r in done}
    rows = zip(results.job.table.ids, *(v.tolist() for v in labels.values()), strict=True)
    write_csv(folder / FILES[1], ["id", *labels], rows, safe=results.output.safe)
