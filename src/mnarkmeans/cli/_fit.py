"""`mnarkmeans fit`: a table in, clusters, centres, model and report out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import MNARKMeans
from ..dask._out_of_core import needs_blocks
from . import _output
from ._console import Console
from ._errors import UserError
from ._job import Prepared, Reading, fit_with_progress, prepare, tell_table
from ._results import RESULT_FILES, summarise, write_results


def fit(
    console: Console,
    data: Path,
    out: Path,
    reading: Reading,
    *,
    steps: dict[str, Any],
    params: dict[str, Any],
    embedding: str,
    title: str | None,
    force: bool,
    scheduler: str | None = None,
) -> None:
    """Cluster a table and write the results; in blocks if it is too large for memory."""
    check_embedding(embedding)
    _output.check_folder(out, RESULT_FILES, force)
    if scheduler is not None or needs_blocks(data, reading.layer):
        from ._fit_blocks import fit_blocks

        summary = fit_blocks(
            console, data, out, reading, steps=steps, params=params, embedding=embedding,
            title=title, force=force, scheduler=scheduler,
        )  # fmt: skip
        tell_fit(console, summary, out)
        return
    table = reading.read(data)
    job = prepare(table, **steps)
    check_clusters(params["n_clusters"], job)
    tell_table(console, data, job.table)
    estimator = MNARKMeans(reference=job.reference, **params)
    notes, seconds = fit_with_progress(console, estimator, job.X)
    summary = summarise(job, data, estimator, notes, seconds)
    with _output.folder(out, RESULT_FILES, force=force) as hidden:
        heading = title or data.name
        write_results(hidden, job, estimator, summary, reading, embedding=embedding, title=heading)
    tell_fit(console, summary, out)


def tell_fit(console: Console, summary: dict[str, Any], out: Path) -> None:
    """What was found and where it is."""
    console.say(
        f"{summary['n_clusters']} clusters, lam = {summary['lam']:.4g}, "
        f"loss = {summary['inertia']:.6g}, {summary['seconds']:.1f} s"
    )
    sizes, rows = summary["cluster_sizes"], summary["data"]["rows"]
    told = [[str(i), f"{size:,}", f"{size / rows:.1%}"] for i, size in enumerate(sizes)]
    console.table("clusters", ["cluster", "rows", "share"], told)
    console.say(f"written to {out}; open {out / 'report.html'}")
    console.result(summary | {"output": str(out)})


def check_clusters(k: int, job: Prepared) -> None:
    """More clusters than rows cannot be."""
    rows = job.table.shape[0]
    if k < 1:
        raise UserError(f"-k must be at least 1, not {k}")
    if k > rows:
        raise UserError(f"-k is {k}, but the table has only {rows} rows")


def check_embedding(embedding: str) -> None:
    """Before the work begins rather than after it."""
    if embedding not in ("pca", "umap"):
        raise UserError(f"--embedding must be pca or umap, not {embedding!r}")
    if embedding == "umap":
        from .._io.optional import require

        require("umap", "umap")
