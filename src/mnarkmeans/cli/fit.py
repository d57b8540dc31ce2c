"""`mnarkmeans fit`: a table in; clusters, centres, markers, model and report out.

A table larger than memory is read in blocks by Dask, which can do less with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import MNARKMeans
from .._model_files import as_kmeans
from ..dask._files import needs_blocks
from ..tables import Table
from ._console import Console, UserError, estimator_errors
from ._fitting import Job, claimed_folder, open_job, reference_of
from ._main import verb
from ._options import FittingOptions, FolderOptions, SourceOptions, as_number, option
from ._outputs import Claim

ROWS_IN_REPORT = 5_000  # of a table read in blocks
POSSIBLE_IN_BLOCKS = {"data", "missing_value", "log1p", "reference", "layer", "id_column", "as_is"}


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    scheduler: str | None = option(
        None, "A running Dask cluster to fit on, such as tcp://host:8786; its workers must see the "
        "table under the same path.", panel="Model", metavar="ADDRESS",
    )  # fmt: skip


@verb("fit cells.csv -k 4 -o result")
def fit(
    fitting: FittingOptions, output: FolderOptions, source: SourceOptions, cluster: ClusterOptions
) -> None:
    """Cluster a table; write labels, centres, markers, model and report."""
    console = output.console
    with claimed_folder(source, output) as claim:
        if cluster.scheduler is not None or needs_blocks(source.data, source.layer):
            job = fit_blocks(console, source, fitting, output, claim, cluster.scheduler)
        else:
            job = open_job(console, source, fitting.n_clusters)
            model = MNARKMeans(reference=job.reference, **vars(fitting))
            job.fit(console, model)
            job.judge(console, model)
            with claim.writing() as folder:
                job.write(folder, output)
    job.print(console, output.out)


def fit_blocks(
    console: Console,
    source: SourceOptions,
    fitting: FittingOptions,
    output: FolderOptions,
    claim: Claim,
    scheduler: str | None,
) -> Job:
    """Cluster a table that is read in blocks and write the results."""
    from ..dask import MNARKMeans as DaskKMeans
    from ..dask import _files, open_table

    code = _code_for_missing(source)
    with estimator_errors(), _files.connect(scheduler) as where:
        file = open_table(source.data, layer=source.layer, id_column=source.id_column)
        X = _files.prepare_blocks(file.X, code, source.log1p)
        n, p = file.shape
        console.note(
            f"{source.data.name} has {n:,} rows and {p:,} features in {X.numblocks[0]} blocks, "
            f"{file.n_bytes / 1e9:.1f} GB; it is read in blocks, which are fitted by {where}",
            *(f"left out {name!r}: {reason}" for name, reason in file.left_out[:5]),
        )
        names, values = _files.sample(X, file, ROWS_IN_REPORT, seed=0)
        table = Table(values, np.array(names, dtype=object), file.features, left_out=file.left_out)
        table.notes.append(f"the table was read in blocks, fitted by {where}")
        if len(names) < n:
            table.notes.append(f"the report shows {len(names):,} of {n:,} rows, drawn at random")
        preparation = replace(source.preparation, features=tuple(file.features))
        job = Job(source, table, preparation, values, reference_of(source, preparation))
        with job.working(console, "fitting") as step:
            model = DaskKMeans(
                reference=job.reference,
                callback=lambda done: step(
                    f"iteration {done.number}, loss {done.loss:.6g}, {done.n_active} "
                    f"initialisations still running ({done.seconds:.1f} s)"
                ),
                **{name: value for name, value in vars(fitting).items() if name != "n_jobs"},
            ).fit(X)
        blocks = {
            "file": source.data.name, "format": "blocks", "sha256": None, "rows": n,
            "blocks": len(X.chunks[0]), "missing_share": model.missing_share_,
            "missing_codes": source.missing_value or [], "id_column": source.id_column or "id",
        }  # fmt: skip
        job.judge(console, as_kmeans(model), blocks, cluster_sizes=model.cluster_sizes_)
        labels = (
            [name, int(label), float(distance)]
            for block in _files.labelled(model, X, file)
            for name, label, distance in zip(*block, strict=True)
        )
        with claim.writing() as folder:
            job.write(folder, output, labels)
    return job


def _code_for_missing(source: SourceOptions) -> float | None:
    """The one code a table in blocks may have; options that need the whole table are refused."""
    for name, value in vars(source).items():
        if name not in POSSIBLE_IN_BLOCKS and value not in (None, False, "none"):
            raise UserError(
                f"--{name.replace('_', '-')} needs the whole table in memory, and this one is read "
                "in blocks; prepare the file beforehand"
            )
    codes = [as_number(text) for text in source.missing_value or []]
    if len(codes) > 1 or None in codes:
        raise UserError("a table that is read in blocks takes one number as --missing-value")
    return codes[0] if codes else None
