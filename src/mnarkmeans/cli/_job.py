"""The table of a verb: read, checked against the advice, prepared; and the fit with progress."""

from __future__ import annotations

import csv
import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..tables import Preparation, Table, read_table
from ._console import Console, UserError, command_line, counted, estimator_errors
from ._options import Source, as_number


@dataclass
class Job:
    """A table ready to be clustered, and how its fit went."""

    source: Source
    table: Table  # the features that are used, in their own units
    preparation: Preparation
    X: Any  # the values as they are clustered
    reference: Any
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def open_job(console: Console, source: Source, clusters: int) -> Job:
    """Read and prepare a table with rows for so many clusters; say what was used and left out.

    A table that certainly must be read in another way is refused, with the command to run.
    """
    table = read(source)
    if not source.as_is:
        _check_advice(source, table)
    job = prepared(source, table, clusters)
    rows = table.shape[0]
    if clusters > rows:
        raise UserError(f"-k is {clusters}, but the table has only {counted(rows, 'row')}")
    describe(console, job.table)
    return job


def read(source: Source) -> Table:
    """The table with its annotations; known classes and the batch are kept out of the features."""
    options = source.options.to_dict() | {"annotations": source.annotations}
    classes = tuple(source.labels or ())
    table = read_table(source.data, labels=classes, **options)
    batch = source.batch
    if batch is not None and batch not in (*classes, *table.annotations):  # a column of the table
        table = read_table(source.data, labels=(*classes, batch), **options)
    table.annotations |= {name: list(values) for name, values in table.labels.items()}
    return table


def describe(console: Console, table: Table) -> None:
    """Print what was read and what was left out."""
    for text in table.summary():
        console.note(text)


def _check_advice(source: Source, table: Table) -> None:
    """Refuse where the advice is certain; otherwise it becomes notes of the table."""
    kept_aside = {*(source.labels or ()), source.batch}
    suggestions = [
        one for one in table.advise(source.preparation).suggestions
        if not one.options.get("drop") or {*one.options["drop"]} - kept_aside
    ]  # fmt: skip
    certain = [one.reason for one in suggestions if one.certain]
    if certain:
        options = [one.typed() for one in suggestions if one.typed()]
        raise UserError(
            f"{source.data.name} should not be clustered as it is: {'; '.join(certain)}. Run: "
            f"{' '.join([command_line(), *options])} (or add --as-is to cluster it nevertheless)"
        )
    for one in suggestions:
        typed = one.typed()
        table.notes.append(f"consider {typed}: {one.reason}" if typed else one.reason)


def prepared(source: Source, table: Table, clusters: int) -> Job:
    """Learn and apply the preparation; the reference goes with it."""
    if source.center and source.reference is not None:
        raise UserError(
            "--center makes each feature's mean the reference, so it cannot be combined with "
            "--reference; choose one of them"
        )
    preparation, table, X = source.preparation.fit_apply(table, clusters)
    return Job(source, table, preparation, X, reference_of(source, preparation))


def reference_of(source: Source, preparation: Preparation) -> Any:
    """The reference asked for, after preparation."""
    if source.center:
        return 0.0
    word = (source.reference or "auto").strip()
    if word.lower() in ("auto", "min"):
        return word.lower()
    value = as_number(word)
    return preparation.reference(_by_feature(word, preparation) if value is None else value)


def _by_feature(name: str, preparation: Preparation) -> np.ndarray:
    """The references in a CSV file, in the order of the features."""
    path = Path(name)
    if not path.is_file():
        raise UserError(f"--reference must be auto, min, a number, or a CSV file, not {name!r}")
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            given = {row[0]: as_number(row[1]) for row in list(csv.reader(stream))[1:] if row}
    except (ValueError, IndexError, OSError, csv.Error) as error:
        raise UserError(f"{path} must have a header and two columns, feature,value") from error
    for feature in preparation.features:
        if given.get(feature) is None:
            raise UserError(f"{path} has no number as the reference of the feature {feature!r}")
    return np.array([given[feature] for feature in preparation.features], dtype=float)


def job_key(source: Source, **more: Any) -> dict[str, Any]:
    """What a result depends on, so that finished work is used for the same job only."""
    return more | {
        "files": [file_sum(path) for path in source.inputs],
        "reading": source.options.to_dict(),
        "preparation": source.preparation.typed(),
        "reference": source.reference,
    }


def file_sum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _Callback:
    """Moves the progress on with every finished initialisation (scikit-learn 1.9 and newer)."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def setup(self, estimator: Any, context: Any) -> None: ...
    def teardown(self, estimator: Any, context: Any) -> None: ...
    def on_fit_task_begin(self, estimator: Any, context: Any, **kwargs: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, **kwargs: Any) -> None:
        if context.task_name == "start":
            self.step("initialisations")


def fit_with_progress(console: Console, job: Job, estimator: Any) -> None:
    """Fit; warnings become notes."""
    counted = hasattr(estimator, "set_callbacks") and console.talks
    begin = time.perf_counter()
    try:
        with (
            estimator_errors(),
            console.warnings_as_notes() as job.notes,
            console.progress("fitting", estimator.n_init if counted else None) as step,
        ):
            if counted:
                estimator.set_callbacks(_Callback(step))
            estimator.fit(job.X)
    finally:
        if counted:
            estimator.set_callbacks()
    job.seconds = time.perf_counter() - begin
