"""`mnarkmeans select`: choose lam and the number of clusters, then fit with the choice.

The search is that of MNARKMeansCV. Each number of clusters is kept when it is done, so that an
interrupted run continues with the next.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from .. import MNARKMeansCV, MNARMixture
from .._cv import Trial, Trials
from .._model_files import as_kmeans
from ..metrics import Verdict, describe_choice
from ..report._flow import flows_of
from ._app import app
from ._console import Console, Step, estimator_errors, plain
from ._files import Parts, claimed, write_csv
from ._options import Folder, Searching, Source, grouped
from ._results import lam_words, print_results, result_files, results_of, write_results
from ._source import Course, Prepared, open_source, table_key
from .fit import check_output, h5ad_copy, write_h5ad


@app.command(epilog="Example: [bold]mnarkmeans select cells.csv -k 2:8 -o result[/bold]")
@grouped
def select(searching: Searching, output: Folder, source: Source) -> None:
    """Choose the number of clusters and lam; an interrupted run continues where it stopped."""
    console = output.console
    check_output(source, output)
    files = result_files(source, "selection.csv")
    with (
        claimed(output.out, files, force=output.force, inputs=source.inputs) as claim,
        h5ad_copy(source, output) as copy,
    ):
        job = open_source(console, source, clusters=searching.clusters[-1])
        params = {n: v for n, v in searching.params().items() if n not in ("n_clusters", "n_jobs")}
        parts = Parts(claim, table_key(source) | {"params": params})
        search, course = _search(console, job, searching, parts)
        model = as_kmeans(search)
        mixtures = mixture_criteria(console, job, searching, model)
        found = search.cv_results_
        facts = {
            "choice": {
                "lam": found["param_lam"], "k": found["param_n_clusters"],
                "mean": found["mean_instability"], "std": found["std_instability"],
                "best_index": search.best_index_,
            },
            "mixture": mixtures,
            "flow": flows_of(search, job.X),
        }  # fmt: skip
        selection = {
            "criterion": searching.criterion, "candidates": found,
            "best_index": search.best_index_, "cluster_stability": search.stability_,
            "mixture": mixtures,
        }  # fmt: skip
        results = results_of(
            console, source, job, model, course, output, plain(facts), seed=searching.seed,
            selection=selection,
        )  # fmt: skip
        text = _choice_text(search, searching, mixtures, results.fitted.verdict)
        results.facts["lam_text"] = results.summary["selection"]["sentence"] = text
        with claim.writing() as folder:
            write_results(folder, results)
            columns = _candidate_columns(search, mixtures)
            rows = zip(*map(plain, columns.values()), strict=True)
            write_csv(folder / "selection.csv", columns, rows)
            write_h5ad(copy, results)
        parts.clear()
    console.say(text)
    print_results(console, results, output)


class KeptTrials(Trials):
    """The numbers of clusters an earlier run has finished, and progress with each new one."""

    def __init__(self, parts: Parts, step: Step) -> None:
        self._parts, self._step = parts, step

    def load(self, k: int) -> Trial | None:
        stored = self._parts.load(f"k{k}")
        try:
            return None if stored is None else Trial.from_plain(stored)
        except (KeyError, TypeError):  # of another version
            return None

    def done(self, k: int, trial: Trial) -> None:
        self._parts.save(f"k{k}", trial.to_plain())
        self._step(f"k = {k}: lam = {trial.lam:.4g}")


def _search(
    console: Console, job: Prepared, searching: Searching, parts: Parts
) -> tuple[MNARKMeansCV, Course]:
    search = MNARKMeansCV(reference=job.reference, **searching.params())
    begin = time.perf_counter()
    with (
        estimator_errors(),
        console.warnings_as_notes() as notes,
        console.progress("choosing", len(searching.clusters)) as step,
    ):
        search._known = KeptTrials(parts, step)
        search.fit(job.X)
    return search, Course(notes, time.perf_counter() - begin)


def mixture_criteria(
    console: Console, job: Prepared, searching: Searching, chosen: Any
) -> list[dict[str, Any]]:
    """BIC and ICL of MNARMixture for each number of clusters; smaller is better.

    The missingness mechanism is chosen at the chosen k and kept for the others, so that the
    criteria differ by k alone.
    """
    n, p = job.X.shape
    if len(searching.clusters) < 2 or p > n:  # more parameters than rows
        return []
    found, mechanism = [], "auto"
    with console.progress("mixture models", len(searching.clusters), brief=True) as step:
        for k in sorted(searching.clusters, key=lambda k: k != chosen.n_clusters):
            model = MNARMixture(
                k, mechanism=mechanism, temper=1.0, reference=chosen.reference_,
                random_state=searching.seed,
            )  # fmt: skip
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the search has said what there is to say
                    model.fit(job.X)
            except ValueError:  # fewer rows than clusters, and the like
                continue
            mechanism = model.mechanism_
            step(f"k = {k}")
            found.append({"k": k, "bic": model.bic(job.X), "icl": model.icl(job.X),
                          "mechanism": mechanism})  # fmt: skip
    return sorted(found, key=lambda one: one["k"])


def _choice_text(
    search: MNARKMeansCV, searching: Searching, mixtures: list[dict[str, Any]], found: Verdict
) -> str:
    """What was chosen, and from what."""
    lam = f"lam = {lam_words(search.lam_)}"
    several = len(searching.clusters) > 1
    what = f"k = {search.n_clusters_} and {lam} were" if several else f"{lam} was"
    count = len(search.cv_results_["param_lam"])
    text = f'{what} chosen from {count} candidates (criterion "{searching.criterion}").'
    text = " ".join(filter(None, [text, describe_choice(search, found)]))
    if mixtures:
        bic, icl = (min((one[name], one["k"]) for one in mixtures)[1] for name in ("bic", "icl"))
        text += f" A Gaussian mixture model prefers k = {bic} by BIC and k = {icl} by ICL."
    return text


def _candidate_columns(
    search: MNARKMeansCV, mixtures: list[dict[str, Any]]
) -> dict[str, np.ndarray]:
    """selection.csv: one row per candidate."""
    columns = dict(search.cv_results_)
    ks = columns["param_n_clusters"]
    for name in ("bic", "icl") if mixtures else ():
        by_k = {one["k"]: one[name] for one in mixtures}
        columns[f"mixture_{name}"] = np.array([by_k.get(k, np.nan) for k in ks])
    return columns | {"chosen": np.arange(len(ks)) == search.best_index_}
