"""`mnarkmeans diagnose`: what is missing, how that depends on the values, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from .._io.optional import require
from ..missingness import diagnose as look
from . import _output
from ._console import Console, plain
from ._errors import UserError, one_line
from ._job import Prepared, Reading, prepare, tell_table

TABLES = ("features", "rows", "magnitude", "mechanisms")
FILES = ["diagnosis.txt", "diagnosis.json", "diagnosis.png", *(f"{name}.csv" for name in TABLES)]


def diagnose(
    console: Console,
    data: Path,
    out: Path | None,
    reading: Reading,
    *,
    steps: dict[str, Any],
    seed: int,
    force: bool,
) -> None:
    """Describe the gaps; with an output folder, also as tables and a picture."""
    if out is not None:
        _output.check_folder(out, FILES, force)
        require("matplotlib", "plot")
    job = prepare(reading.read(data), **steps)
    tell_table(console, data, job.table)
    try:
        with console.warnings_as_notes():
            found = look(_named(job), job.reference, random_state=seed)
    except ValueError as error:
        raise UserError(one_line(error)) from error
    document = as_document(found)
    if out is not None:
        with _output.folder(out, FILES, force=force) as hidden:
            _write(hidden, job, found, document)
    console.say(str(found))
    if out is not None:
        console.say(f"written to {out}")
    console.result(document | {"output": str(out) if out else None})


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
            "advice": found.advice,
            "magnitude": found.magnitude,
            "magnitude_share": found.magnitude_share,
            "mechanisms": [
                {n: getattr(fit, n) for n in ("mechanism", "strength", "log_likelihood")}
                for fit in found.mechanisms
            ],
        }
    )


def _write(folder: Path, job: Prepared, found: Any, document: dict[str, Any]) -> None:
    (folder / "diagnosis.txt").write_text(str(found) + "\n", encoding="utf-8")
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "diagnosis.json").write_text(text + "\n", encoding="utf-8")
    for name in TABLES:
        frame = found.to_frame(name)
        if name == "rows":
            frame = frame.assign(row=job.table.ids)
        elif name == "features":
            frame = frame.assign(feature=job.table.features)
        frame.to_csv(folder / f"{name}.csv", index=False)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the user's settings are
    found.plot(ax=figure.subplots())
    figure.savefig(folder / "diagnosis.png", dpi=150)
