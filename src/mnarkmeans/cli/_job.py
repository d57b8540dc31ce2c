"""What the verbs share: read and prepare a table, fit with progress."""

from __future__ import annotations

import csv
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._console import Console
from ._errors import UserError, one_line
from ._frames import Table
from ._options import Source, Steps, as_number
from ._prepare import Preparation, learn
from ._tables import read_table


class Course(NamedTuple):
    """How a fit went: what was noted, and the seconds it took."""

    notes: list[str]
    seconds: float


@dataclass(frozen=True)
class Prepared:
    """A table ready to be clustered."""

    table: Table
    preparation: Preparation
    X: Any
    reference: Any


def tell_table(console: Console, path: Path, table: Table) -> None:
    """Say what was taken and what was left out."""
    n, p = table.shape
    console.say(f"{path.name}: {n:,} rows, {p:,} features, {table.missing_share():.1%} missing")
    if table.id_name != "id" or not str(table.ids[0]).isdigit():
        console.note(f"rows are named by {table.id_name!r}, such as {str(table.ids[0])!r}")
    reasons = Counter(_in_general(reason) for _, reason in table.left_out)
    shown = table.left_out if len(table.left_out) <= 5 else []
    for name, reason in shown:
        console.note(f"left out {name!r}: {reason}")
    if not shown and table.left_out:
        common = ", ".join(f"{reason}: {times}" for reason, times in reasons.most_common(3))
        console.note(f"left out {len(table.left_out)} columns or features ({common})")
    for text in table.notes:
        console.note(text)


def _in_general(reason: str) -> str:
    """Reasons that differ in a number or an example only are one reason."""
    if reason.endswith("% missing"):
        return "more gaps than --max-missing allows"
    return reason.split(", such as")[0]


def open_source(
    console: Console, source: Source, *, clusters: int = 1, labels: tuple[str, ...] = ()
) -> Prepared:
    """Read and prepare a table with rows for so many clusters, and say what was taken."""
    job = prepare(read_table(source.data, source.reading, labels=labels), source.steps)
    rows = job.table.shape[0]
    if clusters > rows:
        raise UserError(f"-k is {clusters}, but the table has only {rows} rows")
    tell_table(console, source.data, job.table)
    return job


def prepare(table: Table, steps: Steps) -> Prepared:
    """Learn and apply the preparation; the reference goes with it."""
    if steps.center and steps.reference is not None:
        raise UserError(
            "--center makes each feature's mean the reference, so --reference cannot be given too; "
            "choose one of them"
        )
    table, preparation = learn(table, steps)
    where = 0.0 if steps.center else reference_of(steps.reference, preparation)
    return Prepared(table, preparation, preparation.apply(table), where)


def reference_of(text: str | None, preparation: Preparation) -> Any:
    """The reference that was asked for, where it lies after preparation."""
    if text is None:
        return preparation.reference(0.0)
    if text.strip().lower() == "min":
        return "min"
    value = as_number(text)
    if value is None:
        return preparation.reference(_reference_file(Path(text), preparation.features))
    if not np.isfinite(value) or (preparation.log1p and value <= -1):
        raise UserError(
            f"--reference must be a finite number (above -1 with --log1p), not {text!r}"
        )
    return preparation.reference(value)


def _reference_file(path: Path, features: tuple[str, ...]) -> np.ndarray:
    if not path.is_file():
        raise UserError(f"--reference must be a number, min, or a CSV file, not {str(path)!r}")
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if row]
        given = {row[0]: float(row[1]) for row in rows[1:]}
    except (ValueError, IndexError, OSError, csv.Error) as error:
        raise UserError(
            f"{path} must have two columns, feature and value, with a header"
        ) from error
    absent = [name for name in features if name not in given]
    if absent:
        raise UserError(f"{path} has no reference for feature {absent[0]!r}")
    return np.array([given[name] for name in features])


class _StepPerStart:
    """A scikit-learn callback that moves the progress on with every finished start."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def setup(self, estimator: Any, context: Any) -> None: ...
    def teardown(self, estimator: Any, context: Any) -> None: ...
    def on_fit_task_begin(self, estimator: Any, context: Any, **kwargs: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, **kwargs: Any) -> None:
        if context.task_name == "start":
            self.step("starts done")


def fit_with_progress(console: Console, estimator: Any, X: Any) -> Course:
    """Fit; warnings become notes."""
    counted = hasattr(estimator, "set_callbacks") and console.talks
    total = estimator.n_init if counted else None
    begin = time.perf_counter()
    try:
        with (
            console.warnings_as_notes() as notes,
            console.steps("fitting", total, brief=True) as step,
        ):
            if counted:
                estimator.set_callbacks(_StepPerStart(step))
            estimator.fit(X)
    except ValueError as error:
        raise UserError(one_line(error)) from error
    finally:
        if counted:
            estimator.set_callbacks()
    return Course(notes, time.perf_counter() - begin)
