"""`mnarkmeans fit`: a table in; clusters, centres, markers, model and report out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .. import MNARKMeans
from .._io import require
from ..dask._files import needs_blocks
from ._console import UserError
from ._job import fit_with_progress, open_job
from ._main import verb
from ._options import Fitting, Folder, Source, option
from ._outputs import Claim, claimed
from ._results import Results, print_results, result_files, results_of, write_results

H5AD_KEY = "mnar_kmeans"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where a table in blocks is fitted."""

    scheduler: str | None = option(
        None,
        "A running Dask cluster to fit on, such as tcp://host:8786; its workers must see the table "
        "under the same path.",
        panel="Model",
        metavar="ADDRESS",
    )


@verb("fit cells.csv -k 4 -o result")
def fit(fitting: Fitting, output: Folder, source: Source, cluster: Cluster) -> None:
    """Cluster a table; write labels, centres, markers, model and report."""
    console = output.console
    with claimed_folder(source, output) as (claim, copy):
        if cluster.scheduler is not None or needs_blocks(source.data, source.layer):
            from ._blocks import fit_blocks

            results = fit_blocks(console, source, fitting, output, claim, cluster.scheduler)
        else:
            job = open_job(console, source, fitting.n_clusters)
            model = MNARKMeans(reference=job.reference, **vars(fitting))
            fit_with_progress(console, job, model)
            results = results_of(console, job, model, output)
            with claim.writing() as folder:
                write_results(folder, results)
                write_h5ad(copy, results)
    print_results(console, results, output)


@contextmanager
def claimed_folder(
    source: Source, output: Folder, *more: str
) -> Iterator[tuple[Claim, Claim | None]]:
    """Claim the folder and the copy of the input, if one was asked for; what writing needs is
    asked for before the work begins rather than after it."""
    require("jinja2", "cli")
    if output.embedding == "umap":
        require("umap", "umap")
    files, copy = result_files(source, *more), output.write_h5ad
    with claimed(output.out, files, force=output.force, inputs=source.inputs) as claim:
        if copy is None:
            yield claim, None
            return
        require("anndata", "anndata")
        if {source.data.suffix.lower(), copy.suffix.lower()} != {".h5ad"}:
            raise UserError(
                "--write-h5ad writes a copy of an .h5ad file; both names must end in .h5ad"
            )
        if source.transpose:
            raise UserError("--write-h5ad labels the rows of the file; leave --transpose out")
        with claimed(copy, force=output.force, inputs=source.inputs) as second:
            yield claim, second


def write_h5ad(claim: Claim | None, results: Results) -> None:
    """A copy of the .h5ad input with the results where `mnarkmeans.tl.mnar_kmeans` puts them; rows
    that were left out have none."""
    if claim is None:
        return
    from ..tl import store_results

    job = results.job
    adata = require("anndata", "anndata").read_h5ad(job.source.data)
    features = [str(name) for name in job.table.features]
    used = np.isin(adata.var_names.to_numpy(dtype=str), features)
    if adata.var_names[used].tolist() != features:
        raise UserError("--write-h5ad needs every feature of the model in the file, in its order")
    whole = len(job.table.ids) == adata.n_obs
    if not whole and not adata.obs_names.is_unique:
        raise UserError("--write-h5ad needs rows with different names where some are left out")
    part = adata if whole else adata[job.table.ids.astype(str)].copy()
    params = {
        "command": results.summary["command"],
        "preparation": "; ".join(job.preparation.describe()),
    }
    fitted = results.fitted
    store_results(part, H5AD_KEY, fitted.model, job.X, used, params, fitted.verdict)
    if part is not adata:
        for name in (H5AD_KEY, f"{H5AD_KEY}_distance", f"{H5AD_KEY}_confidence"):
            adata.obs[name] = part.obs[name].reindex(adata.obs_names)
        adata.varm[H5AD_KEY] = part.varm[H5AD_KEY]
        adata.uns.update({n: v for n, v in part.uns.items() if n.startswith(H5AD_KEY)})
    with claim.writing() as path:
        adata.write_h5ad(path)
