"""`mnarkmeans fit` beyond memory: the table is read in blocks, by Dask."""

from __future__ import annotations

import csv
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._io.model_files import save_model
from ..dask import _out_of_core as outofcore
from . import _output
from ._console import Console, plain
from ._errors import UserError, one_line
from ._frames import Table
from ._job import Prepared, Reading, _reference
from ._options import _number
from ._prepare import Preparation
from ._results import RESULT_FILES, _write_json, command_line, make_page, write_centers, write_page

ROWS_IN_REPORT = 5_000


def fit_blocks(
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
    scheduler: str | None,
) -> dict[str, Any]:
    """Cluster a table that is read in blocks and write the results; returns the summary."""
    from ..dask import MNARKMeans

    _refuse_unsupported(reading, steps)
    table = _open(data, reading)
    X = outofcore.prepare_blocks(table.X, _missing_code(reading), steps["log1p"])
    preparation = Preparation(tuple(table.features), steps["log1p"])
    reference = _reference(steps["reference"], preparation)
    n, p = table.shape
    begin = time.perf_counter()
    with _cluster(scheduler) as where, console.warnings_as_notes() as notes:
        console.note(
            f"{data.name} has {n:,} rows and {p:,} features in {X.numblocks[0]} blocks, "
            f"{table.n_bytes / 1e9:.1f} GB; it is not read whole: blocks are fitted by {where}"
        )
        for name, reason in table.left_out[:5]:
            console.note(f"left out {name!r}: {reason}")
        options = {name: value for name, value in params.items() if name != "n_jobs"}
        with console.steps("fitting", None) as step:
            model = MNARKMeans(
                reference=reference, callback=lambda done: step(_words(done)), **options
            )
            _fit(model, X)
        plain_model = outofcore.in_memory(model)
        seconds = time.perf_counter() - begin
        summary = _summarise(data, table, reading, model, preparation, notes, seconds, where)
        with _output.folder(out, RESULT_FILES, force=force) as folder:
            _write_labels(folder / "labels.csv", model, X, table)
            _write_rest(folder, table, X, preparation, plain_model, summary, reading,
                        embedding, title or data.name, reference)  # fmt: skip
    return summary


def _words(done: Any) -> str:
    return (
        f"iteration {done.number}, loss {done.loss:.6g}, {done.n_active} starts go on "
        f"({done.seconds:.1f} s)"
    )


def _fit(model: Any, X: Any) -> None:
    from ..dask import ClusterLostError

    try:
        model.fit(X)
    except (ValueError, TypeError, ClusterLostError) as error:
        raise UserError(one_line(error)) from error


def _open(data: Path, reading: Reading) -> outofcore.TableFile:
    try:
        return outofcore.open_table(data, layer=reading.layer, id_column=reading.id_column)
    except (ValueError, OSError) as error:
        raise UserError(one_line(error)) from error


def _cluster(scheduler: str | None):
    from contextlib import contextmanager

    @contextmanager
    def connected():
        try:
            with outofcore.connect(scheduler) as where:
                yield where
        except ConnectionError as error:
            raise UserError(one_line(error)) from error

    return connected()


def _refuse_unsupported(reading: Reading, steps: dict[str, Any]) -> None:
    """What needs the whole table in memory."""
    asked = {
        "--columns": reading.columns, "--drop": reading.drop, "--transpose": reading.transpose,
        "--scale": steps["scale"] != "none", "--center": steps["center"],
        "--max-missing": steps["max_missing"] is not None,
        "--encoding": reading.encoding, "--delimiter": reading.delimiter,
        "--header": reading.header is not None,
    }  # fmt: skip
    for option, given in asked.items():
        if given:
            raise UserError(
                f"{option} needs the whole table in memory, and this one is read in blocks; "
                "prepare the file beforehand"
            )


def _missing_code(reading: Reading) -> float | None:
    codes = [_number(text) for text in reading.missing_codes]
    if len(codes) > 1 or None in codes:
        raise UserError("a table that is read in blocks takes one number as --missing-value")
    return codes[0] if codes else None


def _summarise(data, table, reading, model, preparation, notes, seconds, where) -> dict[str, Any]:
    n, p = table.shape
    return plain(
        {
            "mnarkmeans": __version__,
            "command": command_line(),
            "data": {
                "file": data.name,
                "format": "blocks",
                "missing_codes": list(reading.missing_codes),
                "sha256": None,
                "rows": n,
                "features": p,
                "blocks": len(table.X.chunks[0]),
                "missing_share": model.missing_share_,
                "id_column": reading.id_column or "id",
                "left_out": [{"column": c, "reason": r} for c, r in table.left_out],
            },
            "preparation": preparation.describe(),
            "n_clusters": model.n_clusters,
            "lam": model.lam_,
            "inertia": model.inertia_,
            "n_iter": model.n_iter_,
            "cluster_sizes": model.cluster_sizes_,
            "loss_path": model.loss_path_,
            "start_losses": model.start_losses_,
            "seconds": round(seconds, 3),
            "notes": [f"the table was read in blocks, fitted by {where}", *notes],
        }
    )


def _write_labels(path: Path, model: Any, X: Any, table: outofcore.TableFile) -> None:
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "cluster", "distance"])
        for names, labels, distances in outofcore.labelled(model, X, table):
            for name, label, distance in zip(names, labels, distances, strict=True):
                writer.writerow([name, int(label), repr(float(distance))])


def _write_rest(
    folder, file, X, preparation, model, summary, reading, embedding, title, reference
) -> None:
    """Centres, summary and model; the report shows a sample of the rows."""
    names, values = outofcore.sample(X, file, ROWS_IN_REPORT, seed=0)
    seen = Table(values, np.array(names, dtype=object), list(file.features))
    write_centers(folder / "centers.csv", preparation.undo(model.cluster_centers_), seen)
    _write_json(folder / "summary.json", summary)
    extra = {
        "preparation": preparation.to_dict(), "reading": asdict(reading),
        "id_column": summary["data"]["id_column"], "command": summary["command"],
    }  # fmt: skip
    save_model(model, folder, feature_names=list(file.features), extra=extra)
    model.labels_ = model.predict(values)
    told = dict(summary)
    if len(names) < summary["data"]["rows"]:
        told["notes"] = [
            *summary["notes"],
            f"this page shows {len(names):,} rows drawn at random of {summary['data']['rows']:,}",
        ]
    job = Prepared(seen, preparation, values, reference)
    page = make_page(job, model, told, embedding=embedding, title=title, facts=None)
    write_page(folder, page)
