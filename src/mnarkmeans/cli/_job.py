"""What the verbs share: read and prepare a table, fit with progress."""

from __future__ import annotations

import csv
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mnarkmeans._compiling import seconds_spent

from ._console import Console
from ._errors import UserError, one_line
from ._frames import ColumnChoice, Table
from ._options import _number
from ._prepare import Preparation, learn
from ._tables import read_table


@dataclass(frozen=True)
class Reading:
    """How a table is read; stored in the model so that new tables are read the same way."""

    missing_codes: tuple[str, ...] = ()
    id_column: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    transpose: bool = False
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    layer: str | None = None

    @classmethod
    def of(cls, missing_value, columns, drop, **rest: Any) -> Reading:
        """From the options, whose lists may be None."""
        return cls(
            tuple(missing_value or ()), columns=tuple(columns or ()), drop=tuple(drop or ()), **rest
        )

    def read(self, path: Path, *, labels: tuple[str, ...] = (), only: Any = None) -> Table:
        """Read a table; with `only`, nothing but these features, as far as they are there."""
        choice = ColumnChoice(
            self.id_column,
            () if only else self.columns,
            () if only else self.drop,
            labels,
            self.transpose,
            frozenset(only) if only and not self.transpose else None,
        )
        return read_table(
            path,
            choice,
            missing_codes=self.missing_codes,
            encoding=self.encoding,
            delimiter=self.delimiter,
            header=self.header,
            layer=self.layer,
        )


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


def prepare(
    table: Table,
    *,
    log1p: bool,
    scale: str,
    center: bool,
    max_missing: float | None,
    reference: str | None,
) -> Prepared:
    """Learn and apply the preparation; the reference goes with it."""
    if center and reference is not None:
        raise UserError(
            "--center makes each feature's mean the reference, so --reference cannot be given too; "
            "choose one of them"
        )
    table, preparation = learn(
        table, log1p=log1p, scale=scale, center=center, max_missing=max_missing
    )
    where = 0.0 if center else _reference(reference, preparation)
    return Prepared(table, preparation, preparation.apply(table), where)


def _reference(text: str | None, preparation: Preparation) -> Any:
    if text is None:
        return preparation.reference(0.0)
    if text.strip().lower() == "min":
        return "min"
    value = _number(text)
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


def fit_with_progress(console: Console, estimator: Any, X: Any) -> tuple[list[str], float]:
    """Fit; returns the warnings as texts and the seconds it took, compilation not counted."""
    counted = hasattr(estimator, "set_callbacks") and console.talks
    total = estimator.n_init if counted else None
    begin = time.perf_counter() - seconds_spent()
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
    return notes, time.perf_counter() - seconds_spent() - begin
