"""`mnarkmeans select`: choose lam and the number of clusters, then fit with the choice.

The search is MNARKMeansCV's own. Each number of clusters is one trial of it and is kept when it is
done, so that an interrupted run goes on with the next.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .. import MNARKMeansCV, MNARMixture
from .._cv import Trial, Trials
from .._model_files import as_kmeans
from ..report._flow import flows_of
from ._console import Console, Step, plain
from ._csv import write_csv
from ._fit import check_page, tell_fit
from ._h5ad import maybe_claimed_copy, write_copy
from ._job import Course, Prepared, open_source
from ._options import FitOutput, Page, Searching, Source
from ._output import claimed_folder
from ._results import Results, lam_words, result_files, summarise, table_key, write_results
from ._resume import Parts
from ._spoken import as_told


class KeptTrials(Trials):
    """Trials of an earlier run, as far as it had got, and news of each one."""

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
        self._step(f"k = {k}: lam = {trial.evidence.lams[trial.verdict.choice]:.4g}")


def select(
    console: Console, source: Source, searching: Searching, page: Page, output: FitOutput
) -> None:
    """Judge every candidate, fit with the best, write the results."""
    check_page(page)
    files = result_files(source, "selection.csv")
    with (
        claimed_folder(output.out, files, force=output.force, inputs=source.inputs) as claim,
        maybe_claimed_copy(source, output) as copy,
    ):
        job = open_source(console, source, clusters=searching.clusters[-1])
        parts = Parts(claim, _key(source, searching))
        search, course = _search(console, job, searching, parts)
        estimator = as_kmeans(search)
        likelihoods = mixtures(console, job, searching, estimator)
        summary = summarise(
            job, source.data, estimator, course, seed=searching.seed,
            selection=_account(search, searching) | {"mixture": likelihoods},
        )  # fmt: skip
        text = choice_text(search, searching) + mixture_text(likelihoods)
        facts = plain(
            {"lam_text": text, "choice": choice_page(search), "stability": search.stability_,
             "mixture": likelihoods, "flow": flows_of(search, job.X)}
        )  # fmt: skip
        title = page.title or source.data.name
        results = Results(
            job, estimator, summary, source.reading, title, page.embedding, facts, output.safe
        )
        with claim.files() as folder:
            write_results(folder, results)
            candidates = search.cv_results_ | by_candidate(search, likelihoods)
            write_selection(folder / "selection.csv", candidates, int(search.best_index_))
            write_copy(copy, source.data, results)
        parts.clear()
    console.say(text)
    tell_fit(console, summary, output)


def _key(source: Source, searching: Searching) -> dict[str, Any]:
    """What the trial of one number of clusters depends on."""
    params = {
        name: v for name, v in searching.params().items() if name not in ("n_clusters", "n_jobs")
    }
    return table_key(source) | {"params": params}


def _search(
    console: Console, job: Prepared, searching: Searching, parts: Parts
) -> tuple[MNARKMeansCV, Course]:
    search = MNARKMeansCV(reference=job.reference, **searching.params())
    begin = time.perf_counter()
    try:
        with (
            console.warnings_as_notes() as notes,
            console.steps("choosing", len(searching.clusters)) as step,
        ):
            search._known = KeptTrials(parts, step)
            search.fit(job.X)
    except ValueError as error:
        raise as_told(error) from error
    return search, Course(notes, time.perf_counter() - begin)


def _account(search: MNARKMeansCV, searching: Searching) -> dict[str, Any]:
    """What summary.json tells of the choice."""
    return {
        "criterion": str(searching.criterion),
        "candidates": search.cv_results_,
        "best_index": search.best_index_,
        "cluster_stability": search.stability_,
    }


def choice_text(search: MNARKMeansCV, searching: Searching) -> str:
    """What was chosen, and from what."""
    lam = f"lam = {lam_words(search.lam_)}"
    what = f"{lam} was"
    if len(searching.clusters) > 1:
        what = f"k = {search.n_clusters_} and {lam} were"
    candidates = len(search.cv_results_["param_lam"])
    return f'{what} chosen from {candidates} candidates (criterion "{searching.criterion}").'


def mixtures(
    console: Console, job: Prepared, searching: Searching, chosen: Any
) -> list[dict[str, Any]]:
    """BIC and ICL of MNARMixture for each number of clusters; smaller is better.

    They ask another question: whether normal clusters explain the table, not whether a partition
    comes out again. How values get lost is found at the k that was chosen and is then the same for
    all, so that the numbers differ by k alone.
    """
    n, p = job.X.shape
    if len(searching.clusters) < 2 or p > n:  # a mixture with more numbers than rows says nothing
        return []
    found, mechanism = [], "auto"
    with console.steps("judging k by a mixture", len(searching.clusters), brief=True) as step:
        for k in sorted(searching.clusters, key=lambda k: k != chosen.n_clusters):
            model = MNARMixture(
                k, mechanism=mechanism, temper=1.0, reference=chosen.reference_,
                random_state=searching.seed,
            )  # fmt: skip
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # told of the search itself
                    model.fit(job.X)
            except ValueError:  # fewer rows than clusters, and the like
                continue
            mechanism = model.mechanism_
            step(f"k = {k}")
            found.append({"k": k, "bic": model.bic(job.X), "icl": model.icl(job.X),
                          "mechanism": mechanism})  # fmt: skip
    return sorted(found, key=lambda one: one["k"])


def mixture_text(found: list[dict[str, Any]]) -> str:
    """What the mixtures would have chosen, in a sentence."""
    if not found:
        return ""
    bic, icl = (min((one[name], one["k"]) for one in found)[1] for name in ("bic", "icl"))
    return f" The likelihood of a mixture prefers k = {bic} (BIC) and k = {icl} (ICL)."


def choice_page(search: MNARKMeansCV) -> dict[str, Any]:
    """The numbers of the report's plot."""
    results = search.cv_results_
    return {
        "lam": results["param_lam"],
        "k": results["param_n_clusters"],
        "mean": results["mean_instability"],
        "std": results["std_instability"],
        "best_index": search.best_index_,
    }


def by_candidate(search: MNARKMeansCV, likelihoods: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """BIC and ICL of the mixture with as many clusters as each candidate has."""
    if not likelihoods:
        return {}
    of_k = {one["k"]: one for one in likelihoods}
    ks = search.cv_results_["param_n_clusters"]
    return {
        f"mixture_{name}": np.array([of_k[k][name] if k in of_k else np.nan for k in ks])
        for name in ("bic", "icl")
    }


def write_selection(path: Path, results: dict[str, np.ndarray], best_index: int) -> None:
    """selection.csv: one row per candidate."""
    columns = [plain(values) for values in results.values()]
    rows = ([*row, i == best_index] for i, row in enumerate(zip(*columns, strict=True)))
    write_csv(path, [*results, "chosen"], rows)
