"""`mnarkmeans fit`: a table in, clusters, centres, model and report out."""

from __future__ import annotations

from typing import Any

from .. import MNARKMeans
from .._io import require
from ._annotations import tell_annotations
from ._console import Console
from ._errors import UserError
from ._h5ad import maybe_claimed_copy, write_copy
from ._job import fit_with_progress, open_source
from ._options import FitOutput, Fitting, Page, Picture, Source
from ._output import FolderClaim, claimed_folder
from ._results import Results, lam_words, result_files, summarise, write_results


def fit(
    console: Console,
    source: Source,
    fitting: Fitting,
    page: Page,
    output: FitOutput,
    scheduler: str | None,
) -> None:
    """Cluster a table and write the results; in blocks if it is too large for memory."""
    from ._blocks import fit_blocks, needs_blocks

    check_page(page)
    files = result_files(source)
    with claimed_folder(output.out, files, force=output.force, inputs=source.inputs) as claim:
        if scheduler is not None or needs_blocks(source.data, source.reading.layer):
            if output.h5ad is not None:
                raise UserError("--write-h5ad needs a table that fits into memory")
            summary = fit_blocks(console, source, fitting, page, claim, output.safe, scheduler)
        else:
            summary = _fit_whole(console, source, fitting, page, claim, output)
    tell_fit(console, summary, output)


def _fit_whole(
    console: Console,
    source: Source,
    fitting: Fitting,
    page: Page,
    claim: FolderClaim,
    output: FitOutput,
) -> dict[str, Any]:
    with maybe_claimed_copy(source, output) as copy:
        job = open_source(console, source, clusters=fitting.clusters)
        estimator = MNARKMeans(reference=job.reference, **fitting.params())
        course = fit_with_progress(console, estimator, job.X)
        summary = summarise(job, source.data, estimator, course)
        title = page.title or source.data.name
        results = Results(
            job, estimator, summary, source.reading, title, page.embedding, safe=output.safe
        )
        with claim.files() as folder:
            write_results(folder, results)
            write_copy(copy, source.data, results)
    return summary


def tell_fit(console: Console, summary: dict[str, Any], output: FitOutput) -> None:
    """What was found and where it is."""
    out = output.out
    console.say(
        f"{summary['n_clusters']} clusters, lam = {lam_words(summary['lam'])}, "
        f"loss = {summary['inertia']:.6g}, {summary['seconds']:.1f} s"
    )
    sizes, rows = summary["cluster_sizes"], summary["data"]["rows"]
    told = [[str(i), f"{size:,}", f"{size / rows:.1%}"] for i, size in enumerate(sizes)]
    console.table("clusters", ["cluster", "rows", "share"], told)
    console.say(" ".join([summary["sure"]["headline"], *summary["sure"]["reasons"][:2]]))
    tell_annotations(console, summary.get("annotations", []))
    console.say(f"written to {out}; open {out / 'report.html'}")
    if output.h5ad is not None:
        console.say(f"a copy of the input with the labels is {output.h5ad}")
    console.result(summary | {"output": str(out)})


def check_page(page: Page) -> None:
    """What the report needs is asked for before the work begins rather than after it."""
    require("jinja2", "cli")
    if page.embedding == Picture.umap:
        require("umap", "umap")
