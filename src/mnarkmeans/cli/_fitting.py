"""What fit, select, compare and demo share: a table is read, prepared, fitted and assessed."""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._io import require
from .._report import FittedTable
from ..metrics._verdict import FOLDS
from ..missingness._paragraph import lam_words
from ..tables import Preparation, Table, read_table
from ..tables._table import counted
from ._claims import claimed
from ._console import Step, UserError, estimator_errors, typed_command
from ._options import ResultOptions, SourceOptions, as_number
from ._outputs import FILES

FITTED = ("lam", "inertia", "n_iter", "loss_path", "start_losses")  # of the model, in the summary


def claimed_folder(source: SourceOptions, output: ResultOptions) -> AbstractContextManager[Any]:
    """Claim the folder; fail early if an optional package is missing."""
    if output.embedding == "umap":
        require("umap", "umap")
    return claimed(output.out, FILES, force=output.force, inputs=source.inputs)


def open_job(output: ResultOptions, source: SourceOptions, clusters: int) -> Job:
    """Read and prepare a table for this number of clusters; say what is used and what is left out.

    A table that certainly has to be read in another way is refused, with the command to run.
    """
    row_columns = [*(source.labels or ()), *([source.batch] if source.batch else ())]
    table = read_table(
        source.data, labels=row_columns, annotations=source.annotations, **source.options.to_dict()
    )
    for name in row_columns:
        if name not in table.labels:
            raise UserError(f"with --transpose, column {name!r} does not describe the rows to be "
                            "clustered; give it in a file with --annotations")  # fmt: skip
    table.annotations |= {name: list(values) for name, values in table.labels.items()}
    if not source.as_is:
        _check_advice(source, table)
    if source.center and source.reference is not None:
        raise UserError(
            "--center makes each feature's mean the reference, so it cannot be combined with "
            "--reference; choose one of them"
        )
    preparation, table, X = source.preparation.fit_apply(table, clusters)
    if clusters > len(table.ids):
        raise UserError(
            f"-k is {clusters}, but the table has only {counted(len(table.ids), 'row')}"
        )
    job = Job(output, source, table, preparation, X, reference_of(source, preparation))
    output.console.note(*table.summary())
    return job


def _check_advice(source: SourceOptions, table: Table) -> None:
    """Refuse where the advice is certain; otherwise it becomes notes of the table."""
    suggestions = [
        suggestion
        for suggestion in table.advise(source.preparation).suggestions
        if suggestion.changes.keys() != {"drop"}  # of columns that are kept aside in any case
        or not {*suggestion.changes["drop"]} <= {*table.labels}
    ]
    if reasons := [suggestion.reason for suggestion in suggestions if suggestion.certain]:
        command = " ".join([typed_command(), *(suggestion.typed() for suggestion in suggestions)])
        raise UserError(
            f"{source.data.name} is probably not ready for clustering: {'; '.join(reasons)}. Run: "
            f"{command} (or add --as-is to cluster it anyway)"
        )
    table.notes.extend(f"consider {suggestion}" for suggestion in suggestions)


def reference_of(source: SourceOptions, preparation: Preparation) -> Any:
    """The reference asked for, after preparation."""
    if source.center:
        return 0.0
    word = (source.reference or "auto").strip()
    if word.lower() in ("auto", "min"):
        return word.lower()
    number = as_number(word)
    if number is not None:
        return preparation.reference(number)
    if not Path(word).is_file():
        raise UserError(f"--reference must be auto, min, a number, or a CSV file, not '{word}'")
    try:
        with open(word, newline="", encoding="utf-8-sig") as stream:
            numbers = {row[0]: as_number(row[1]) for row in list(csv.reader(stream))[1:] if row}
    except (ValueError, IndexError, OSError, csv.Error) as error:
        raise UserError(f"{word} must have a header and the columns feature and value") from error
    for feature in preparation.features:
        if numbers.get(feature) is None:
            raise UserError(f"{word} has no number for the feature {feature!r}")
    return preparation.reference(np.array([numbers[name] for name in preparation.features]))


def job_key(source: SourceOptions, **more: Any) -> dict[str, Any]:
    """What a result depends on, so that finished work is reused for the same job only."""
    files = [file_sum(path) for path in source.inputs]
    return more | {"version": __version__, "source": vars(source), "files": files}


def file_sum(path: Path) -> str:
    """SHA-256 of a file, or of the files of a Zarr store."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        sums = "".join(f"{file.relative_to(path)} {file_sum(file)}\n" for file in files)
        return hashlib.sha256(sums.encode()).hexdigest()
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass
class Job:
    """A table on its way from being read, by `fit` and `assess`, to the files of its fit."""

    output: ResultOptions
    source: SourceOptions
    table: Table  # the features that are used, in their own units
    preparation: Preparation
    X: Any  # the values as they are clustered
    reference: Any
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)  # summary.json
    sections: dict[str, Any] = field(default_factory=dict)  # further ones of the report

    def fit(self, model: Any) -> None:
        """Fit k-means, with progress by starts."""
        with self.working("fitting", model.n_init) as step:
            model._progress = lambda done: step("starts", done)
            model.fit(self.X)
        del model._progress

    @contextmanager
    def working(self, what: str, steps: int) -> Iterator[Step]:
        """Time the work and show its progress; warnings become notes."""
        begin = time.perf_counter()
        with (
            estimator_errors(),
            self.output.console.warnings_as_notes() as self.notes,
            self.output.console.progress(what, steps) as step,
        ):
            yield step
        self.seconds = time.perf_counter() - begin

    def assess(self, model: Any) -> None:
        """How certain the clusters are, and the summary."""
        source, table = self.source, self.table
        with self.output.console.progress("assessing the clusters", FOLDS) as step:
            self.fitted = fitted = FittedTable(
                self.X, model, model.labels_,
                ids=table.short_ids, features=table.features, annotations=table.annotations,
                classes=table.labels, progress=lambda done, _: step("fits", done),
            )  # fmt: skip
        self.output.console.note(*fitted.batch_warnings)
        missingness = getattr(model, "missingness_", None)
        self.summary = {
            "mnarkmeans": __version__,
            "command": typed_command(),
            "data": table.source | {
                "sha256": file_sum(source.data),
                "rows": table.shape[0],
                "features": table.shape[1],
                "missing_share": table.missing_share(),
                "id_column": table.id_name,
                "left_out": [{"column": name, "reason": why} for name, why in table.left_out],
            },
            "preparation": self.preparation.describe(),
            "n_clusters": fitted.n_clusters,
            **{name: getattr(model, f"{name}_") for name in FITTED},
            "missingness": None if missingness is None else missingness.to_plain(),
            "cluster_sizes": fitted.cells.sizes,
            "seconds": round(self.seconds, 3),
            "notes": [*fitted.batch_warnings, *table.notes, *self.notes],
            "annotations": [annotation.to_dict() for annotation in fitted.annotations],
        }  # fmt: skip

    def print(self) -> None:
        """What was found, the verdict first, and where it is."""
        console, summary = self.output.console, self.summary
        console.say(" ".join([summary["sure"]["headline"], *summary["sure"]["reasons"]]))
        if "selection" in summary:
            console.say(summary["selection"]["sentence"])
        console.say(
            f"{counted(summary['n_clusters'], 'cluster')}, lam = {lam_words(summary['lam'])}, "
            f"loss = {summary['inertia']:.6g}, {summary['seconds']:.1f} s"
        )
        sizes, rows = summary["cluster_sizes"], summary["data"]["rows"]
        lines = [[str(i), f"{size:,}", f"{size / rows:.1%}"] for i, size in enumerate(sizes)]
        console.table("clusters", ["cluster", "rows", "share"], lines)
        lines = [
            [note.name, "" if np.isnan(note.ari) else f"{note.ari:.2f}", f"{note.unknown:,}"]
            for note in self.fitted.annotations
        ]
        header = ["annotation", "adjusted Rand index", "rows without it"]
        console.table("agreement with the clusters", header, lines)
        self.print_place()
        console.result(summary | {"output": str(self.output.out)})

    def print_place(self) -> None:
        """Where the results are."""
        if self.output.out is not None:
            report = self.output.out / "report.html"
            self.output.console.say(f"written to {self.output.out}; open {report}")
