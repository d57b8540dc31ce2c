"""`mnarkmeans diagnose`: what is missing, how that depends on the values, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import require
from ..missingness import diagnose as look
from ._annotations import read_annotations
from ._console import Console, plain
from ._csv import without_formulas
from ._formats import read_file
from ._job import Prepared, prepare, tell_table
from ._options import OptionalOutput, Source
from ._output import maybe_claimed_folder
from ._results import write_json
from ._spoken import as_told, spoken
from ._suggest import Hint, advised, command_for

FEWEST_SEEN, MANY_BARE = 2, 0.2  # values of a row; share of rows that have fewer
TABLES = ("features", "rows", "magnitude", "mechanisms")
FILES = ["diagnosis.txt", "diagnosis.json", "diagnosis.png", *(f"{name}.csv" for name in TABLES)]


def diagnose(console: Console, source: Source, output: OptionalOutput, seed: int) -> None:
    """Describe the gaps; with an output folder, also as tables and a picture."""
    if output.out is not None:
        require("matplotlib", "plot")
    with maybe_claimed_folder(output.out, FILES, force=output.force, inputs=source.inputs) as claim:
        source, hints = advised(source, lambda asked: read_file(asked.data, asked.reading))
        job = prepare(read_file(source.data, source.reading), source.steps)
        job.table.notes.extend(read_annotations(source.annotations, job.table.ids).notes)
        tell_table(console, source.data, job.table)
        try:
            with console.warnings_as_notes():
                found = look(_named(job), job.reference, random_state=seed)
        except ValueError as error:
            raise as_told(error) from error
        command = command_for(source, found.n_rows)
        document = as_document(found) | {
            "command": command,
            "reasons": [{"options": hint.typed(), "why": hint.why} for hint in hints],
            "warning": _little_left(job).strip() or None,
        }
        text = f"{spoken(str(found))}\n\n{_little_left(job)}{_next_step(command, hints)}"
        if claim is not None:
            with claim.files() as folder:
                (folder / "diagnosis.txt").write_text(text + "\n", encoding="utf-8")
                _write(folder, job, found, output.safe)
                write_json(folder / "diagnosis.json", document)
    console.say(text)
    if output.out is not None:
        console.say(f"written to {output.out}")
    console.result(document | {"output": output.out and str(output.out)})


def _little_left(job: Prepared) -> str:
    """A warning where many rows have nothing that clusters could be told from."""
    n, p = job.table.shape
    values = job.table.values
    seen = values.getnnz(axis=1) if sp.issparse(values) else (~np.isnan(values)).sum(axis=1)
    bare = int((seen < min(FEWEST_SEEN, p)).sum())
    if bare < MANY_BARE * n:
        return ""
    return (
        f"Little is left to cluster: {bare:,} of {n:,} rows have fewer than {FEWEST_SEEN} values "
        f"in the {p:,} features used. Their clusters would be those of what is missing: leave "
        "such rows out, or take features that most rows have.\n\n"
    )


def _next_step(command: str, hints: list[Hint]) -> str:
    """The command to run, and why it says what it says."""
    lines = ["The command for this table:", "", f"  {command}", ""]
    lines += [f"- {hint.typed()}: {hint.why}" for hint in hints if hint.typed()]
    lines += [f"- {hint.why[0].upper()}{hint.why[1:]}." for hint in hints if not hint.typed()]
    if hints:
        lines.append("- The numbers above are of the table read and prepared so; leave out what is "
                     "not true of yours.")  # fmt: skip
    lines.append("- If the number of clusters is known, say fit -k NUMBER instead of select -k ...")
    return "\n".join(lines)


def _named(job: Prepared) -> Any:
    """The values with their names, where a frame can hold them."""
    if sp.issparse(job.X):
        return job.X
    return require("pandas", "cli").DataFrame(job.X, columns=job.table.features)


def as_document(found: Any) -> dict[str, Any]:
    """diagnosis.json."""
    return plain(
        {
            "rows": found.n_rows,
            "features": found.n_features,
            "missing_share": found.missing_share,
            "kind": found.kind,
            "trend": found.trend,
            "suggested_lam": found.suggested_lam,
            "suggested_reference": found.suggested_reference,
            "advice": [spoken(sentence) for sentence in found.advice],
            "magnitude": found.magnitude,
            "magnitude_share": found.magnitude_share,
            "mechanisms": [
                {n: getattr(fit, n) for n in ("mechanism", "strength", "log_likelihood")}
                for fit in found.mechanisms
            ],
        }
    )


def _write(folder: Path, job: Prepared, found: Any, safe: bool) -> None:
    for name in TABLES:
        frame = found.to_frame(name)
        if name == "rows":
            frame = frame.assign(row=job.table.ids)
        elif name == "features":
            frame = frame.assign(feature=job.table.features)
        frame = without_formulas(frame) if safe else frame
        frame.to_csv(folder / f"{name}.csv", index=False)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the user's settings are
    found.plot(ax=figure.subplots())
    figure.savefig(folder / "diagnosis.png", dpi=150)
