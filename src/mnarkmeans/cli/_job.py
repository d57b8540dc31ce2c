"""What the verbs share: read and prepare a table, fit with progress."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._annotations import Annotations, read_annotations
from ._command import quoted
from ._console import Console
from ._errors import UserError
from ._formats import read_file
from ._options import Source, Steps, as_number
from ._prepare import Preparation, learn
from ._spoken import as_told
from ._suggest import sample_hints, structure_hints, value_hints
from ._table import Table

MOST_NAMED = 8  # columns in a line
ASKED_FOR = {"not among --columns", "dropped as asked", "unknown to the model"}


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
    annotations: Annotations = field(default_factory=Annotations)


def tell_table(console: Console, path: Path, table: Table) -> None:
    """Say what was taken and what was left out."""
    n, p = table.shape
    size = f"{n:,} row{'s' * (n != 1)}, {p:,} feature{'s' * (p != 1)}"
    console.say(f"{path.name}: {size}, {table.missing_share():.1%} missing")
    if table.id_name != "id" or not str(table.ids[0]).isdigit():
        by = "" if table.id_name == "id" else f" by {table.id_name!r}"
        console.note(f"rows are named{by}, such as {str(table.ids[0])!r}")
    for text in [*told_left_out(table.left_out), *table.notes]:
        console.note(text)


def told_left_out(left_out: list[tuple[str, str]]) -> list[str]:
    """A line for each reason, with the names; what the user asked for is only counted.

    Examples
    --------
    >>> told_left_out([("note", "text, such as 'x'"), ("a", "dropped as asked")])
    ["left out 'note': text, such as 'x'", 'left out 1: dropped as asked']
    """
    lines = [f"left out {name!r}: {why}" for name, why in left_out if _in_general(why) == "text"]
    if len(lines) > MOST_NAMED:
        lines = []
    groups: dict[str, list[str]] = {}
    for name, why in left_out:
        groups.setdefault(_in_general(why), []).append(name)
    for why, names in groups.items():
        if why in ASKED_FOR:
            lines.append(f"left out {len(names):,}: {why}")
        elif why != "text" or len(names) > MOST_NAMED:
            shown = ", ".join(map(repr, names[:MOST_NAMED]))
            more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
            lines.append(f"left out {shown}{more}: {why}")
    return lines


def _in_general(reason: str) -> str:
    """Reasons that differ in a number or an example only are one reason."""
    if reason.endswith("% missing"):
        return "more gaps than --max-missing allows"
    return reason.split(", such as")[0]


def open_source(
    console: Console, source: Source, *, clusters: int = 1, labels: tuple[str, ...] = ()
) -> Prepared:
    """Read and prepare a table with rows for so many clusters, and say what was taken."""
    job = prepare(read_file(source.data, source.reading, labels=labels), source.steps)
    rows = job.table.shape[0]
    if clusters > rows:
        raise UserError(f"-k is {clusters}, but the table has only {rows} rows")
    known = read_annotations(source.annotations, job.table.ids)
    job.table.notes.extend([*known.notes, *hints_told(source, job.table)])
    tell_table(console, source.data, job.table)
    return replace(job, annotations=known)


def hints_told(source: Source, table: Table) -> list[str]:
    """What the names and the range of a table suggest, as options to add."""
    found = [
        *structure_hints(table, source.reading),
        *sample_hints(table, source.reading),
        *value_hints(table, source.reading, source.steps),
    ]
    told = [f"{hint.why}: if so, add {hint.typed()}" for hint in found if hint.typed()]
    whole = f"mnarkmeans diagnose {quoted(str(source.data))} names the whole command"
    others = [hint.why for hint in found if not hint.typed()]
    return others + ([*told, whole] if told else [])


def prepare(table: Table, steps: Steps) -> Prepared:
    """Learn and apply the preparation; the reference goes with it."""
    if steps.center and steps.reference is not None:
        raise UserError(
            "--center makes each feature's mean the reference, so --reference cannot be given too; "
            "choose one of them"
        )
    table, preparation = learn(table, steps)
    where = 0.0 if steps.center else reference_of(steps.reference, preparation, table)
    return Prepared(table, preparation, preparation.apply(table), where)


def reference_of(text: str | None, preparation: Preparation, table: Table | None = None) -> Any:
    """The reference that was asked for, where it lies after preparation.

    INOUT table: gets a note of names that it does not have.
    """
    if text is None:
        return "auto"
    if text.strip().lower() in ("auto", "min"):
        return text.strip().lower()
    value = as_number(text)
    given = _reference_file(Path(text), preparation.features, table) if value is None else value
    least = -1.0 if preparation.log1p else 0.0 if preparation.log2 else -np.inf
    if not np.isfinite(given).all() or np.min(given) <= least:
        above = {-1.0: " (above -1 with --log1p)", 0.0: " (above 0 with --log2)"}.get(least, "")
        raise UserError(f"--reference must be a finite number{above}, not {text!r}")
    return preparation.reference(given)


def _reference_file(path: Path, features: tuple[str, ...], table: Table | None) -> np.ndarray:
    if not path.is_file():
        raise UserError(
            f"--reference must be auto, min, a number, or a CSV file, not {str(path)!r}"
        )
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if row]
        texts = {row[0]: row[1] for row in rows[1:]}
    except (ValueError, IndexError, OSError, csv.Error) as error:
        raise UserError(
            f"{path} must have two columns, feature and value, with a header"
        ) from error
    given = {name: as_number(text) for name, text in texts.items()}
    wrong = next((name for name, value in given.items() if value is None), None)
    if wrong is not None:
        raise UserError(
            f"{path} has {texts[wrong]!r} as the reference of {wrong!r}, which is no number"
        )
    known = {*features, *(name for name, _ in (table.left_out if table else ()))}
    strange = [name for name in given if name not in known]
    if strange and table:
        some = ", ".join(map(repr, strange[:3])) + (" ..." if strange[3:] else "")
        table.notes.append(f"{path.name} names what is no feature of the table: {some}")
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
        raise as_told(error) from error
    finally:
        if counted:
            estimator.set_callbacks()
    return Course(notes, time.perf_counter() - begin)
