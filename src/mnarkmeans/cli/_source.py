"""The table of a verb: read, checked against the advice, prepared; and the fit with progress."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..tables import Preparation, Table, read_table
from ._console import Console, UserError, command_line, estimator_errors
from ._files import file_sum
from ._options import Source, as_number


@dataclass(frozen=True)
class Prepared:
    """A table ready to be clustered: with the features used, in its own units, and as X."""

    table: Table
    preparation: Preparation
    X: Any
    reference: Any


@dataclass(frozen=True)
class Course:
    """How a fit went."""

    notes: list[str]
    seconds: float


def open_source(console: Console, source: Source, *, clusters: int = 1) -> Prepared:
    """Read and prepare a table with rows for so many clusters; say what was used and left out.

    A table that certainly must be read in another way is refused, with the command to run.
    """
    table = read(source)
    if not source.as_is:
        _check_advice(source, table)
    prepared = prepare(table, source, clusters)
    rows = table.shape[0]
    if clusters > rows:
        raise UserError(f"-k is {clusters}, but the table has only {rows} rows")
    describe(console, prepared.table)
    return prepared


def read(source: Source) -> Table:
    """The table with its annotations; known classes and the batch are kept out of the features."""
    kept_aside = tuple(source.labels or ())
    while True:
        table = read_table(
            source.data,
            labels=kept_aside,
            annotations=source.annotations,
            **source.options.to_dict(),
        )
        table.annotations |= {name: list(values) for name, values in table.labels.items()}
        if source.batch is None or source.batch in table.annotations:
            return table
        kept_aside += (source.batch,)  # a column of the table itself


def describe(console: Console, table: Table) -> None:
    """Print what was read and what was left out."""
    first, *others = table.summary()
    console.say(first)
    for text in others:
        console.note(text)


def _check_advice(source: Source, table: Table) -> None:
    """Refuse where the advice is certain; otherwise it becomes notes of the table."""
    advice = table.advise(source.preparation)
    kept_aside = {*(source.labels or ()), source.batch}
    suggestions = [
        one for one in advice.suggestions
        if not one.options.get("drop") or {*one.options["drop"]} - kept_aside
    ]  # fmt: skip
    options = [one.typed() for one in suggestions if one.typed()]
    certain = [one.reason for one in suggestions if one.certain]
    if certain:
        raise UserError(
            f"{source.data.name} should not be clustered as it is: {'; '.join(certain)}. Run: "
            f"{' '.join([command_line(), *options])} (or add --as-is to cluster it nevertheless)"
        )
    for one in suggestions:
        typed = one.typed()
        table.notes.append(f"consider {typed}: {one.reason}" if typed else one.reason)


def prepare(table: Table, source: Source, clusters: int) -> Prepared:
    """Learn and apply the preparation; the reference goes with it."""
    if source.center and source.reference is not None:
        raise UserError(
            "--center makes each feature's mean the reference, so it cannot be combined with "
            "--reference; choose one of them"
        )
    preparation, table, X = source.preparation.fit_apply(table, clusters)
    reference = 0.0 if source.center else reference_of(source.reference, preparation, table)
    return Prepared(table, preparation, X, reference)


def reference_of(text: str | None, preparation: Preparation, table: Table | None = None) -> Any:
    """The reference asked for, after preparation; a name that is no feature becomes a note."""
    word = (text or "auto").strip().lower()
    if word in ("auto", "min"):
        return word
    value = as_number(word)
    if value is None:
        return preparation.reference(_reference_file(Path(text or ""), preparation, table))
    return preparation.reference(value)


def _reference_file(path: Path, preparation: Preparation, table: Table | None) -> np.ndarray:
    if not path.is_file():
        raise UserError(
            f"--reference must be auto, min, a number, or a CSV file, not {str(path)!r}"
        )
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            given = {row[0]: row[1] for row in list(csv.reader(stream))[1:] if row}
    except (ValueError, IndexError, OSError, csv.Error) as error:
        raise UserError(f"{path} must have a header and two columns, feature,value") from error
    numbers = {name: as_number(text) for name, text in given.items()}
    wrong = next((name for name, number in numbers.items() if number is None), None)
    if wrong is not None:
        raise UserError(
            f"{path} has {given[wrong]!r} as the reference of {wrong!r}, which is not a number"
        )
    features = preparation.features
    absent = next((name for name in features if name not in numbers), None)
    if absent is not None:
        raise UserError(f"{path} has no reference for the feature {absent!r}")
    if table is not None:
        known = {*features, *(name for name, _ in table.left_out)}
        unknown = [name for name in numbers if name not in known]
        if unknown:
            some = ", ".join(map(repr, unknown[:3])) + (" ..." if unknown[3:] else "")
            table.notes.append(f"{path.name} names features that the table does not have: {some}")
    return np.array([numbers[name] for name in features], dtype=float)


def table_key(source: Source) -> dict[str, Any]:
    """What a prepared table depends on, so that finished work is used for the same job only."""
    files = [path for path in (source.data, source.reference_file) if path is not None]
    return {
        "data": [file_sum(path) for path in files],
        "reading": source.options.to_dict(),
        "preparation": source.preparation.typed(),
        "reference": source.reference,
    }


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


def fit_with_progress(console: Console, estimator: Any, X: Any) -> Course:
    """Fit; warnings become notes."""
    counted = hasattr(estimator, "set_callbacks") and console.talks
    begin = time.perf_counter()
    try:
        with (
            estimator_errors(),
            console.warnings_as_notes() as notes,
            console.progress("fitting", estimator.n_init if counted else None, brief=True) as step,
        ):
            if counted:
                estimator.set_callbacks(_Callback(step))
            estimator.fit(X)
    finally:
        if counted:
            estimator.set_callbacks()
    return Course(notes, time.perf_counter() - begin)
