"""`mnarkmeans diagnose`: what is missing, how that depends on the values, and what to run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import scipy.sparse as sp

from .._io import require
from ..missingness import diagnose as describe_missingness
from ..tables import Advice, Table, advise
from ._claims import claimed
from ._console import estimator_errors, in_options
from ._fitting import reference_of
from ._options import OptionalFolderOptions, SourceOptions
from ._outputs import write_json

TABLES = ("features", "rows", "magnitude", "mechanisms")
FILES = ["diagnosis.txt", "diagnosis.json", "diagnosis.png", *(f"{name}.csv" for name in TABLES)]


def diagnose(output: OptionalFolderOptions, source: SourceOptions) -> None:
    """Describe what is missing and how it depends on the values, and print the command to run.

    Example: mnarkmeans diagnose proteins.csv
    """
    console, out = output.console, output.out
    if out is not None:
        require("matplotlib", "plot")
    with claimed(out, FILES, force=output.force, inputs=source.inputs) as claim:
        labels, steps = tuple(source.labels or ()), source.preparation
        advice = advise(source.data, source.options, steps, labels, source.annotations)
        steps = replace(advice.preparation, batch=None)  # what is missing is the same without it
        preparation, table, X = steps.fit_apply(advice.table)
        reference = reference_of(source, preparation)
        console.note(*table.summary())
        if not sp.issparse(X):
            X = pd.DataFrame(X, columns=table.features)
        with estimator_errors(), console.warnings_as_notes():
            diagnosis = describe_missingness(X, reference, random_state=0)
        given = [("--reference", source.reference), ("--annotations", source.annotations)]
        given += [("--labels", name) for name in labels]
        more = tuple(str(word) for name, value in given if value for word in (name, value))
        command = advice.command(source.data, more=more)
        text = f"{in_options(str(diagnosis))}\n\n{_next_step(command, advice)}"
        document = {
            "rows": diagnosis.n_rows, "features": diagnosis.n_features,
            "missing_share": diagnosis.missing_share,
            "kind": diagnosis.kind, "trend": diagnosis.trend,
            "suggested_lam": diagnosis.suggested_lam,
            "suggested_reference": diagnosis.suggested_reference,
            "advice": [in_options(sentence) for sentence in diagnosis.advice],
            "magnitude": diagnosis.curve.mean, "magnitude_share": diagnosis.curve.missing_share,
            "mechanisms": [
                {n: getattr(fit, n) for n in ("mechanism", "strength", "log_likelihood")}
                for fit in diagnosis.mechanisms
            ],
            "command": command,
            "reasons": [{"options": s.typed(), "why": s.reason} for s in advice.suggestions],
        }  # fmt: skip
        if claim is not None:
            with claim.writing() as folder:
                (folder / "diagnosis.txt").write_text(text + "\n", encoding="utf-8")
                write_json(folder / "diagnosis.json", document)
                _write_tables(folder, table, diagnosis)
    console.say(text)
    if out is not None:
        console.say(f"written to {out}")
    console.result(document | {"output": out and str(out)})


def _next_step(command: str, advice: Advice) -> str:
    """The command to run, and the reason for each option."""
    lines = ["The command for this table:", "", f"  {command}", ""]
    if advice.suggestions:
        lines += [f"- {suggestion}" for suggestion in advice.suggestions]
        lines += [
            "- The figures above describe the table read and prepared in this way; leave out "
            "options that do not apply to yours.",
            "",
        ]
    lines.append("If you know the number of clusters, use fit -k NUMBER instead of select.")
    return "\n".join(lines)


def _write_tables(folder: Path, table: Table, diagnosis: Any) -> None:
    names: dict[str, Any] = {"rows": {"row": table.ids}, "features": {"feature": table.features}}
    for name in TABLES:
        frame = diagnosis.to_frame(name).assign(**names.get(name, {}))
        frame.to_csv(folder / f"{name}.csv", index=False)
    from matplotlib.figure import Figure  # without pyplot: no window

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    diagnosis.plot(ax=figure.subplots())
    figure.savefig(folder / "diagnosis.png", dpi=150)
