"""`mnarkmeans fit` beyond memory: the table is read in blocks, by Dask."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._model_files import as_kmeans
from ._console import Console
from ._errors import UserError
from ._job import Course, Prepared, reference_of
from ._options import Fitting, Normalize, Page, Reading, Scale, Source, as_number
from ._output import FolderClaim
from ._prepare import Preparation
from ._results import Results, summary_of, write_labels, write_rest
from ._spoken import as_told
from ._table import Table

if TYPE_CHECKING:
    from ..dask._files import TableFile

ROWS_IN_REPORT = 5_000
FORMATS = (".npy", ".parquet", ".pq", ".h5ad", ".zarr")


def needs_blocks(path: Path, layer: str | None = None) -> bool:
    """Whether a table comes in parts (a folder, Zarr) or is too large for memory."""
    if not path.exists() or (path.suffix.lower() not in FORMATS and not path.is_dir()):
        return False
    from ..dask._files import needs_blocks as too_large  # Dask is slow to import

    return too_large(path, layer)


@dataclass(frozen=True)
class Blocks:
    """A table in blocks, ready to be clustered."""

    table: TableFile
    X: Any  # its prepared values
    preparation: Preparation
    reference: Any


def fit_blocks(
    console: Console,
    source: Source,
    fitting: Fitting,
    page: Page,
    claim: FolderClaim,
    safe: bool,
    scheduler: str | None,
) -> dict[str, Any]:
    """Cluster a table that is read in blocks and write the results; returns the summary."""
    from ..dask import _files as outofcore

    blocks = _open(source)
    begin = time.perf_counter()
    with _cluster(scheduler) as where, console.warnings_as_notes() as notes:
        _tell(console, source.data, blocks, where)
        model = _fit(console, blocks, fitting)
        told = [f"the table was read in blocks, fitted by {where}", *notes]
        course = Course(told, time.perf_counter() - begin)
        data = _data(source, blocks.table, model)
        steps = blocks.preparation.describe()
        summary = summary_of(model, data, steps, model.cluster_sizes_, course)
        plain_model = as_kmeans(model)
        with claim.files() as folder:
            rows = (
                row
                for names, labels, distances in outofcore.labelled(model, blocks.X, blocks.table)
                for row in zip(names, labels, distances, strict=True)
            )
            write_labels(folder / "labels.csv", rows, safe)
            title = page.title or source.data.name
            job = _sample(blocks, plain_model)
            results = Results(
                job, plain_model, summary, source.reading, title, page.embedding, safe=safe
            )
            write_rest(folder, _with_note(results))
    return summary


def _open(source: Source) -> Blocks:
    """Open the table; nothing is read yet."""
    from ..dask import _files as outofcore
    from ..dask import open_table

    _refuse_unsupported(source)
    reading, steps = source.reading, source.steps
    code = _missing_code(reading)
    try:
        table = open_table(source.data, layer=reading.layer, id_column=reading.id_column)
    except (ValueError, OSError) as error:
        raise as_told(error) from error
    preparation = Preparation(tuple(table.features), steps.log1p)
    X = outofcore.prepare_blocks(table.X, code, steps.log1p)
    return Blocks(table, X, preparation, reference_of(steps.reference, preparation))


def _refuse_unsupported(source: Source) -> None:
    """What needs the whole table in memory."""
    reading, steps = source.reading, source.steps
    asked = {
        "--columns": reading.columns, "--drop": reading.drop, "--transpose": reading.transpose,
        "--drop-rows": reading.drop_rows, "--annotations": source.annotations,
        "--scale": steps.scale != Scale.none, "--center": steps.center, "--log2": steps.log2,
        "--normalize": steps.normalize != Normalize.none,
        "--max-missing": steps.max_missing is not None,
        "--encoding": reading.encoding, "--delimiter": reading.delimiter,
        "--decimal": reading.decimal, "--sheet": reading.sheet,
        "--header": reading.header is not None,
    }  # fmt: skip
    for option, given in asked.items():
        if given:
            raise UserError(
                f"{option} needs the whole table in memory, and this one is read in blocks; "
                "prepare the file beforehand"
            )


def _missing_code(reading: Reading) -> float | None:
    codes = [as_number(text) for text in reading.codes]
    if len(codes) > 1 or None in codes:
        raise UserError("a table that is read in blocks takes one number as --missing-value")
    return codes[0] if codes else None


@contextmanager
def _cluster(scheduler: str | None) -> Iterator[str]:
    from ..dask import _files as outofcore

    try:
        with outofcore.connect(scheduler) as where:
            yield where
    except ConnectionError as error:
        raise as_told(error) from error


def _tell(console: Console, data: Path, blocks: Blocks, where: str) -> None:
    n, p = blocks.table.shape
    console.note(
        f"{data.name} has {n:,} rows and {p:,} features in {blocks.X.numblocks[0]} blocks, "
        f"{blocks.table.n_bytes / 1e9:.1f} GB; it is not read whole: blocks are fitted by {where}"
    )
    for name, reason in blocks.table.left_out[:5]:
        console.note(f"left out {name!r}: {reason}")


def _fit(console: Console, blocks: Blocks, fitting: Fitting) -> Any:
    from ..dask import ClusterLostError, MNARKMeans

    params = {name: value for name, value in fitting.params().items() if name != "n_jobs"}
    with console.steps("fitting", None) as step:
        model = MNARKMeans(
            reference=blocks.reference, callback=lambda done: step(_words(done)), **params
        )
        try:
            return model.fit(blocks.X)
        except (ValueError, TypeError, ClusterLostError) as error:
            raise as_told(error) from error


def _words(done: Any) -> str:
    return (
        f"iteration {done.number}, loss {done.loss:.6g}, {done.n_active} starts go on "
        f"({done.seconds:.1f} s)"
    )


def _data(source: Source, table: TableFile, model: Any) -> dict[str, Any]:
    n, p = table.shape
    return {
        "file": source.data.name,
        "format": "blocks",
        "missing_codes": list(source.reading.codes),
        "sha256": None,
        "rows": n,
        "features": p,
        "blocks": len(table.X.chunks[0]),
        "missing_share": model.missing_share_,
        "id_column": source.reading.id_column or "id",
        "left_out": [{"column": c, "reason": r} for c, r in table.left_out],
    }


def _sample(blocks: Blocks, model: Any) -> Prepared:
    """Rows for the report, in memory; the model takes their labels."""
    from ..dask import _files as outofcore

    names, values = outofcore.sample(blocks.X, blocks.table, ROWS_IN_REPORT, seed=0)
    model.labels_ = model.predict(values)
    table = Table(values, np.array(names, dtype=object), list(blocks.table.features))
    return Prepared(table, blocks.preparation, values, blocks.reference)


def _with_note(results: Results) -> Results:
    """The page says that it shows a part of the rows; summary.json is about all of them."""
    shown, rows = len(results.job.table.ids), results.summary["data"]["rows"]
    if shown == rows:
        return results
    note = f"this page shows {shown:,} rows drawn at random of {rows:,}"
    return replace(results, facts={"notes": [*results.summary["notes"], note]})
