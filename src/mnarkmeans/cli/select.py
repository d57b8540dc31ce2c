"""`mnarkmeans select`: choose lam and the number of clusters, then fit with the choice.

The search is that of MNARKMeansCV. Each number of clusters is kept when it is done, so that the
same command resumes an interrupted run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .. import MNARKMeansCV
from .._cv import Trial
from .._model_files import as_kmeans
from .._report import search_facts
from ._claims import Parts
from ._fitting import claimed_folder, job_key, open_job
from ._options import FolderOptions, SearchOptions, SourceOptions
from ._outputs import write_results


def select(searching: SearchOptions, output: FolderOptions, source: SourceOptions) -> None:
    """Choose the number of clusters and lam. The same command resumes an interrupted run.

    Example: mnarkmeans select cells.csv -k 2:8 -o result
    """
    with claimed_folder(source, output) as claim:
        job = open_job(output, source, searching.n_clusters[-1])
        params = {n: v for n, v in vars(searching).items() if n not in ("n_clusters", "n_jobs")}
        parts = Parts(claim, job_key(source, params=params))
        search = MNARKMeansCV(reference=job.reference, **vars(searching))

        with job.working("choosing", len(searching.n_clusters)) as step:
            search._known = KeptTrials(parts, step)
            search.fit(job.X)
        job.assess(as_kmeans(search))
        job.sections = search_facts(search, job.X, job.fitted.verdict)
        results = search.cv_results_
        job.summary["selection"] = {
            "criterion": searching.criterion, "candidates": results,
            "best_index": search.best_index_, "cluster_stability": search.stability_,
            "sentence": job.sections["lam_text"],
        }  # fmt: skip
        with claim.writing() as folder:
            write_results(folder, job)
            chosen = np.arange(len(results["param_lam"])) == search.best_index_
            candidates = pd.DataFrame(results | {"chosen": chosen})
            candidates.to_csv(folder / "selection.csv", index=False)
        parts.clear()
    job.print()


class KeptTrials:
    """The numbers of clusters an earlier run has finished, and progress with each new one."""

    def __init__(self, parts: Parts, step: Any) -> None:
        self._parts, self._step = parts, step

    def get(self, k: int) -> Trial | None:
        stored = self._parts.get(f"k{k}")
        return stored and Trial.from_plain(stored)

    def __setitem__(self, k: int, trial: Trial) -> None:
        self._parts[f"k{k}"] = trial.to_plain()
        self._step(f"numbers of clusters (k = {k}: lam = {np.max(trial.penalty):.4g})")
