"""`mnarkmeans select`: choose lam and the number of clusters, then fit with the choice.

Each number of clusters is one part of the work and is kept when it is done, so that an interrupted
run goes on with the next. The parts together are what MNARKMeansCV gives for all numbers at once,
because it judges every number with the same seed.
"""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .. import MNARKMeans, MNARKMeansCV
from .._selection.search import CRITERIA, _choose_k
from . import _output
from ._console import Console
from ._errors import UserError, one_line, unknown_name
from ._fit import check_clusters, check_embedding, tell_fit
from ._job import Prepared, Reading, fit_with_progress, prepare, tell_table
from ._results import RESULT_FILES, file_sum, summarise, write_results
from ._resume import Parts

FILES = [*RESULT_FILES, "selection.csv"]
FITTED = ("cluster_centers_", "n_iter_", "loss_path_", "start_losses_")


def select(
    console: Console,
    data: Path,
    out: Path,
    reading: Reading,
    *,
    clusters: list[int],
    steps: dict[str, Any],
    params: dict[str, Any],
    embedding: str,
    title: str | None,
    force: bool,
) -> None:
    """Judge every candidate, fit with the best, write the results."""
    check_embedding(embedding)
    if params.get("criterion", "heldout") not in CRITERIA:
        raise unknown_name("criterion", params["criterion"], CRITERIA)
    _output.check_folder(out, FILES, force)
    job = prepare(reading.read(data), **steps)
    check_clusters(clusters[-1], job)
    tell_table(console, data, job.table)
    key = {"data": file_sum(data), "reading": asdict(reading), "steps": steps, "params": params}
    parts = Parts(out, key)
    trials = judge(console, job, clusters, params, parts)
    best = _choose_k([_stability(trial) for trial in trials])
    results, best_index = joined(trials, best)
    estimator, notes, seconds = refit(console, job, trials[best], params)
    text = choice_text(estimator, params, len(results["param_lam"]), clusters)
    summary = summarise(
        job, data, estimator, [*trials[best]["notes"], *notes], seconds,
        seed=params["random_state"],
        selection={"criterion": params.get("criterion", "default"), "candidates": results,
                   "best_index": best_index, "cluster_stability": trials[best]["stability"]},
    )  # fmt: skip
    facts = {
        "lam_text": text,
        "choice": choice_page(results, best_index),
        "stability": trials[best]["stability"],
    }
    with _output.folder(out, FILES, force=force) as hidden:
        heading = title or data.name
        write_results(
            hidden, job, estimator, summary, reading, embedding=embedding, title=heading,
            facts=facts,
        )  # fmt: skip
        write_selection(hidden / "selection.csv", results, best_index)
    parts.clear()
    console.say(text)
    tell_fit(console, summary, out)


def judge(
    console: Console, job: Prepared, clusters: list[int], params: dict[str, Any], parts: Parts
) -> list[dict[str, Any]]:
    """Results for every number of clusters, from an earlier run where it had got so far."""
    trials = []
    with console.steps("choosing", len(clusters)) as step:
        for k in clusters:
            trial = parts.load(f"k{k}")
            if trial is None:
                trial = parts.save(f"k{k}", judge_one(console, job, k, params))
            trials.append(trial)
            step(f"k = {k}: lam = {trial['results']['param_lam'][trial['choice']]:.4g}")
    return trials


def judge_one(console: Console, job: Prepared, k: int, params: dict[str, Any]) -> dict[str, Any]:
    """One number of clusters."""
    search = MNARKMeansCV(k, reference=job.reference, **params)
    try:
        with console.warnings_as_notes() as notes:
            search.fit(job.X)
    except ValueError as error:
        raise UserError(one_line(error)) from error
    return {
        "k": k,
        "results": search.cv_results_,
        "choice": int(search.best_index_),
        "stability": search.stability_,
        "fitted": {name: getattr(search, name) for name in FITTED},
        "notes": notes,
    }


def _stability(trial: dict[str, Any]) -> float:
    if trial["k"] == 1:  # one cluster is trivially stable and says nothing
        return -np.inf
    return 1.0 - trial["results"]["mean_instability"][trial["choice"]]


def joined(trials: list[dict[str, Any]], best: int) -> tuple[dict[str, list], int]:
    """cv_results_ of all numbers together, and the row of the choice."""
    names = [name for name in trials[0]["results"] if name != "rank_instability"]
    results = {name: [v for t in trials for v in t["results"][name]] for name in names}
    before = sum(len(t["results"]["param_lam"]) for t in trials[:best])
    return results, before + trials[best]["choice"]


def refit(
    console: Console, job: Prepared, trial: dict[str, Any], params: dict[str, Any]
) -> tuple[MNARKMeans, list[str], float]:
    """The fit that the search ended with, as a model of its own.

    It is fitted again from its own centres, where it stays, and keeps the search's account of how
    it got there.
    """
    lam = trial["results"]["param_lam"][trial["choice"]]
    found = {name: np.asarray(value) for name, value in trial["fitted"].items()}
    shared = {name: params[name] for name in ("random_state", "n_jobs") if name in params}
    estimator = MNARKMeans(
        trial["k"], lam=lam, reference=job.reference, init=found["cluster_centers_"], n_init=1,
        **shared,
    )  # fmt: skip
    notes, seconds = fit_with_progress(console, estimator, job.X)
    estimator.set_params(init="k-means++", n_init=len(found["start_losses_"]))
    estimator.n_iter_ = int(found["n_iter_"])
    estimator.loss_path_, estimator.start_losses_ = found["loss_path_"], found["start_losses_"]
    return estimator, notes, seconds


def choice_text(estimator: MNARKMeans, params: dict, candidates: int, clusters: list[int]) -> str:
    """What was chosen, and from what."""
    what = f"lam = {estimator.lam_:.4g} was"
    if len(clusters) > 1:
        what = f"lam = {estimator.lam_:.4g} and k = {estimator.n_clusters} were"
    rule = f' (criterion "{params["criterion"]}")' if "criterion" in params else ""
    return f"{what} chosen from {candidates} candidates{rule}."


def choice_page(results: dict[str, list], best_index: int) -> dict[str, Any]:
    """The numbers of the report's plot."""
    return {
        "lam": results["param_lam"],
        "k": results["param_n_clusters"],
        "mean": results["mean_instability"],
        "std": results["std_instability"],
        "best_index": best_index,
    }


def write_selection(path: Path, results: dict[str, list], best_index: int) -> None:
    """selection.csv: one row per candidate."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*results, "chosen"])
        for i, row in enumerate(zip(*results.values(), strict=True)):
            writer.writerow([*("" if v is None else v for v in row), i == best_index])
