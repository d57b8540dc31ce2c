"""`mnarkmeans compare`: our k-means, our mixture and other methods on the same rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from .. import MNARKMeans, MNARMixture
from ..baselines import BASELINES
from ..metrics import clustering_error_rate
from ..tables._table import unknown_name
from ._claims import Parts
from ._console import UserError, in_options, one_line
from ._fitting import Job, claimed_folder, job_key, open_job
from ._options import FittingOptions, ResultOptions, SourceOptions, option
from ._outputs import write_results

OURS, MIXTURE = "mnarkmeans", "mixture"
WORDS = {
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
COLUMNS = ("method", "cer", "ari", "clusters", "seconds", "note")


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    methods: list[str] | None = option(
        None, f"Methods to run, separated by commas: {', '.join(WORDS)}. Default: all.",
        metavar="NAMES",
    )  # fmt: skip
    without: list[str] | None = option(
        None, "Methods to leave out, such as mice,fwpd.", metavar="NAMES"
    )

    def names(self) -> list[str]:
        """The methods to run beside ours."""
        wanted, unwanted = (
            [name.strip() for text in texts or [] for name in text.split(",")]
            for texts in (self.methods, self.without)
        )
        for name in (*wanted, *unwanted):
            if name not in WORDS:
                raise unknown_name("method", name, WORDS)
        return [name for name in dict.fromkeys(wanted or WORDS) if name not in unwanted]


def compare(
    comparing: CompareOptions,
    fitting: FittingOptions,
    output: ResultOptions,
    source: SourceOptions,
) -> None:
    """Run other methods on the same table. With -o, the same command resumes an interrupted run.

    Example: mnarkmeans compare cells.csv -k 4 --labels celltype
    """
    names, out = comparing.names(), output.out
    with claimed_folder(source, output) as claim:
        job = open_job(output, source, fitting.n_clusters)
        comparison = Comparison(_true_labels(job, source.labels))
        model = MNARKMeans(reference=job.reference, **vars(fitting))
        key = job_key(source, clusters=fitting.n_clusters, seed=fitting.random_state)
        parts: Any = Parts(claim, key) if claim else {}
        comparison.run(job, model, names, parts)
        if claim:
            with claim.writing() as folder:
                comparison.write(folder, job, model)
        parts.clear()
    known = comparison.truth is not None
    title = "error against the known classes" if known else "agreement with mnarkmeans"
    console = output.console
    console.table(title, *comparison.table())
    console.note(*comparison.notes())
    job.print_place()
    console.result({"methods": comparison.results, "output": out and str(out)})


def _true_labels(job: Job, columns: list[str] | None) -> np.ndarray | None:
    """The known classes as numbers, -1 where unknown."""
    if not columns:
        return None
    codes, names = pd.factorize(job.table.labels[columns[0]])
    if len(names) < 2:
        raise UserError(
            f"column {columns[0]!r} has {'only one class' if len(names) else 'no classes'}; a "
            "comparison needs at least two"
        )
    return codes


def make(name: str, model: MNARKMeans) -> Any:
    """A method with the number of clusters and the seed of our k-means, the mixture with more."""
    if name != MIXTURE:
        return BASELINES[name](model.n_clusters, random_state=model.random_state)
    # temper=1: calibrated probabilities take more fits and change no label.
    params = {name: getattr(model, name) for name in ("reference", "random_state", "n_jobs")}
    return MNARMixture(model.n_clusters, temper=1.0, **params)


def run_one(make: Callable[[], Any], X: Any) -> dict[str, Any]:
    """Labels, seconds and a note; a method that cannot handle the table has no labels."""
    begin, labels, note = time.perf_counter(), None, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = np.asarray(make().fit_predict(X))
    except ImportError as error:
        note = f"not installed: run {one_line(error).rpartition(': ')[2]}"
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
        note = f"failed: {in_options(one_line(error))}"
    return {"labels": labels, "seconds": time.perf_counter() - begin, "note": note}


@dataclass
class Comparison:
    """The results of the methods, ours first."""

    truth: np.ndarray | None  # known classes, -1 where unknown
    about: str = ""  # what the caption says of the table
    results: list[dict[str, Any]] = field(default_factory=list)  # COLUMNS of each method
    labels: dict[str, np.ndarray] = field(default_factory=dict)  # of the methods that succeeded

    def run(self, job: Job, model: MNARKMeans, names: list[str], parts: Any) -> None:
        """Our k-means, then other methods, except for the parts finished by an earlier run."""
        job.fit(model)
        self.add(OURS, model.labels_, job.seconds)
        finished = {name: part for name in names if (part := parts.get(name))}
        with job.output.console.progress("comparing", len(names) - len(finished)) as step:
            for name in names:
                if name not in finished:
                    finished[name] = parts[name] = run_one(partial(make, name, model), job.X)
                    step(f"other methods ({WORDS[name]})")
                self.add(name, **finished[name])

    def add(self, method: str, labels: Any, seconds: float, note: str = "") -> None:
        """With error and adjusted Rand index against the known classes, or agreement with ours."""
        result = dict.fromkeys(COLUMNS) | {"method": method, "seconds": seconds, "note": note}
        self.results.append(result)
        if labels is None:
            return
        self.labels[method] = labels
        result["clusters"] = int(np.unique(labels).size)
        if self.truth is not None:
            known = self.truth >= 0
            result["cer"] = float(clustering_error_rate(self.truth[known], labels[known]))
            result["ari"] = float(adjusted_rand_score(self.truth[known], labels[known]))
        elif method != OURS:  # our own labels would only agree with themselves
            result["ari"] = float(adjusted_rand_score(self.labels[OURS], labels))

    def notes(self) -> list[str]:
        """Why methods have no result."""
        return [f"{WORDS[r['method']]}: {r['note']}" for r in self.results if r["note"]]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows, as text."""
        shown = {"error": "cer", "adjusted Rand index": "ari"}
        if self.truth is None:
            shown = {"agreement": "ari"}
        rows = []
        for result in self.results:
            cells = [
                "" if result[name] is None else f"{result[name]:.3f}" for name in shown.values()
            ]
            if result["note"]:
                cells[0] = result["note"].partition(":")[0]  # failed, not installed
            method = WORDS.get(result["method"], result["method"])
            rows.append([method, *cells, f"{result['seconds']:.2f}"])
        return ["method", *shown, "seconds"], rows

    def write(self, folder: Path, job: Job, model: MNARKMeans) -> None:
        """The files of our fit with a section of the report, comparison.csv (a line for each
        method) and comparison_labels.csv (a line for each row)."""
        header, rows = self.table()
        job.sections["comparison"] = {
            "known": self.truth is not None,
            "caption": " ".join([self.about, *(f"{note}." for note in self.notes())]),
            "columns": [name[0].upper() + name[1:] for name in header], "rows": rows,
        }  # fmt: skip
        job.assess(model)
        job.summary["comparison"] = self.results
        write_results(folder, job)
        methods = pd.DataFrame(self.results).astype({"clusters": "Int64"}).round(4)
        methods.to_csv(folder / "comparison.csv", index=False)
        classes = {} if self.truth is None else {"class": self.truth}
        labels = pd.DataFrame({"id": job.table.ids} | classes | self.labels)
        labels.to_csv(folder / "comparison_labels.csv", index=False)
