"""`mnarkmeans fit` for a table larger than memory: read in blocks by Dask."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from .._model_files import as_kmeans
from .._report import FittedTable
from ..dask import ClusterLostError, MNARKMeans, _files, open_table
from ..tables import Table
from ._console import Console, UserError, estimator_errors, in_options
from ._job import Job, reference_of
from ._options import Fitting, Folder, Source, as_number
from ._outputs import Claim
from ._results import Results, summary_of, write_results

ROWS_IN_REPORT = 5_000
NEEDS_THE_WHOLE_TABLE = (
    "columns", "drop", "drop_rows", "transpose", "annotations", "labels", "scale", "center", "log2",
    "normalize", "max_missing", "center_rows", "zscore_rows", "batch", "encoding", "delimiter",
    "decimal", "sheet", "header",
)  # fmt: skip


def fit_blocks(
    console: Console,
    source: Source,
    fitting: Fitting,
    output: Folder,
    claim: Claim,
    scheduler: str | None,
) -> Results:
    """Cluster a table that is read in blocks and write the results."""
    code = _check(source, output)
    with estimator_errors():
        table = open_table(source.data, layer=source.layer, id_column=source.id_column)
        X = _files.prepare_blocks(table.X, code, source.log1p)
    n, p = table.shape
    preparation = replace(source.preparation, features=tuple(table.features))
    reference = reference_of(source, preparation)
    with estimator_errors(), _files.connect(scheduler) as where:
        console.note(
            f"{source.data.name} has {n:,} rows and {p:,} features in {X.numblocks[0]} blocks, "
            f"{table.n_bytes / 1e9:.1f} GB; it is not read whole: blocks are fitted by {where}"
        )
        for name, reason in table.left_out[:5]:
            console.note(f"left out {name!r}: {reason}")
        begin = time.perf_counter()
        with console.warnings_as_notes() as notes, console.progress("fitting") as step:
            model = MNARKMeans(
                reference=reference,
                callback=lambda done: step(
                    f"iteration {done.number}, loss {done.loss:.6g}, {done.n_active} "
                    f"initialisations still running ({done.seconds:.1f} s)"
                ),
                **{name: value for name, value in vars(fitting).items() if name != "n_jobs"},
            )
            try:
                model.fit(X)
            except ClusterLostError as error:
                raise UserError(in_options(str(error))) from error
        seconds = time.perf_counter() - begin
        names, values = _files.sample(X, table, ROWS_IN_REPORT, seed=0)
        sample = Table(values, np.array(names, dtype=object), list(table.features))
        notes = [f"the table was read in blocks, fitted by {where}", *notes]
        job = Job(source, sample, preparation, values, reference, notes, seconds)
        data = {
            "file": source.data.name, "format": "blocks", "sha256": None, "rows": n, "features": p,
            "blocks": len(table.X.chunks[0]), "missing_share": model.missing_share_,
            "missing_codes": source.missing_value or [], "id_column": source.id_column or "id",
        }  # fmt: skip
        summary = summary_of(job, model, model.cluster_sizes_, data, table.left_out)
        fitted = FittedTable(values, as_kmeans(model), ids=names, features=table.features)
        results = Results(job, fitted, summary, output)
        if len(names) < n:
            shown = f"this page shows {len(names):,} of {n:,} rows, drawn at random"
            results.facts["notes"] = [*notes, shown]
        labels = (
            [name, int(label), float(distance)]
            for block in _files.labelled(model, X, table)
            for name, label, distance in zip(*block, strict=True)
        )
        with claim.writing() as folder:
            write_results(folder, results, labels)
    return results


def _check(source: Source, output: Folder) -> float | None:
    """Refuse what needs the whole table in memory; returns the code for missing values."""
    for name in NEEDS_THE_WHOLE_TABLE:
        if getattr(source, name) not in (None, False, "none"):
            raise UserError(
                f"--{name.replace('_', '-')} needs the whole table in memory, and this one is read "
                "in blocks; prepare the file beforehand"
            )
    if output.write_h5ad is not None:
        raise UserError("--write-h5ad needs a table that fits into memory")
    codes = [as_number(text) for text in source.missing_value or []]
    if len(codes) > 1 or None in codes:
        raise UserError("a table that is read in blocks takes one number as --missing-value")
    return codes[0] if codes else None
