"""`mnarkmeans diagnose`: what is missing, how that depends on the values, and what to run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import require
from ..missingness import diagnose as describe_missingness
from ..tables import Advice, Table, advise, read_annotations
from ._app import verb
from ._console import estimator_errors, in_options
from ._files import maybe_claimed, without_formulas, write_json
from ._options import OptionalFolder, Source, option
from ._source import describe, reference_of

TABLES = ("features", "rows", "magnitude", "mechanisms")
FILES = ["diagnosis.txt", "diagnosis.json", "diagnosis.png", *(f"{name}.csv" for name in TABLES)]


@dataclass(frozen=True, kw_only=True)
class Seed:
    """Randomness."""

    seed: int = option(0, "Random seed.", panel="Model", min=0)


@verb("diagnose proteins.csv")
def diagnose(output: OptionalFolder, source: Source, seed: Seed) -> None:
    """Describe what is missing and how it depends on the values; print the command to run."""
    console = output.console
    if output.out is not None:
        require("matplotlib", "plot")
    inputs = source.inputs
    with maybe_claimed(output.out, FILES, force=output.force, inputs=inputs) as claim:
        advice = advise(source.data, source.options, source.preparation)
        if source.annotations is not None:
            _, notes = read_annotations(source.annotations, advice.table.ids)
            advice.table.notes.extend(notes)
        steps = replace(advice.preparation, batch=None)  # what is missing is the same without it
        preparation, table, X = steps.fit_apply(advice.table)
        describe(console, table)
        reference = 0.0 if source.center else reference_of(source.reference, preparation, table)
        named = X if sp.issparse(X) else _frame(X, table.features)
        with estimator_errors(), console.warnings_as_notes():
            found = describe_missingness(named, reference, random_state=seed.seed)
        named_files = {"--reference": source.reference, "--annotations": source.annotations}
        more = [str(word) for pair in named_files.items() if pair[1] for word in pair]
        command = advice.command(source.data, more=tuple(more))
        warning = _few_values(table)
        text = "\n\n".join(
            part for part in (in_options(str(found)), warning, _next_step(command, advice)) if part
        )
        document = {
            "rows": found.n_rows, "features": found.n_features,
            "missing_share": found.missing_share, "kind": found.kind, "trend": found.trend,
            "suggested_lam": found.suggested_lam,
            "suggested_reference": found.suggested_reference,
            "advice": [in_options(sentence) for sentence in found.advice],
            "magnitude": found.magnitude, "magnitude_share": found.magnitude_share,
            "mechanisms": [
                {n: getattr(fit, n) for n in ("mechanism", "strength", "log_likelihood")}
                for fit in found.mechanisms
            ],
            "command": command,
            "reasons": [{"options": s.typed(), "why": s.reason} for s in advice.suggestions],
            "warning": warning or None,
        }  # fmt: skip
        if claim is not None:
            with claim.writing() as folder:
                (folder / "diagnosis.txt").write_text(text + "\n", encoding="utf-8")
                write_json(folder / "diagnosis.json", document)
                _write_tables(folder, table, found, output.safe)
    console.say(text)
    if output.out is not None:
        console.say(f"written to {output.out}")
    console.result(document | {"output": output.out and str(output.out)})


def _few_values(table: Table) -> str:
    """A warning where many rows have too few values to be told apart."""
    n, p = table.shape
    values = table.values
    seen = values.getnnz(axis=1) if sp.issparse(values) else (~np.isnan(values)).sum(axis=1)
    bare = int((seen < min(2, p)).sum())
    if bare < 0.2 * n:
        return ""
    return (
        f"Little is left to cluster: {bare:,} of {n:,} rows have fewer than two values in the "
        f"{p:,} features used. Their clusters would only reflect what is missing: leave such rows "
        "out, or use features that most rows have."
    )


def _next_step(command: str, advice: Advice) -> str:
    """The command to run, and the reason for each option."""
    lines = ["The command for this table:", "", f"  {command}", ""]
    for one in advice.suggestions:
        typed = one.typed()
        reason = one.reason if typed else f"{one.reason[0].upper()}{one.reason[1:]}."
        lines.append(f"- {typed}: {reason}" if typed else f"- {reason}")
    if advice.suggestions:
        lines.append(
            "- The figures above describe the table read and prepared in this way; leave out "
            "options that do not apply to yours."
        )
    lines.append("- If you know the number of clusters, use fit -k NUMBER instead of select.")
    return "\n".join(lines)


def _frame(X: Any, features: list[str]) -> Any:
    return require("pandas", "cli").DataFrame(X, columns=features)


def _write_tables(folder: Path, table: Table, found: Any, safe: bool) -> None:
    for name in TABLES:
        frame = found.to_frame(name)
        if name == "rows":
            frame = frame.assign(row=table.ids)
        elif name == "features":
            frame = frame.assign(feature=table.features)
        frame = without_formulas(frame) if safe else frame
        frame.to_csv(folder / f"{name}.csv", index=False)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)  # no window, whatever the user's settings are
    found.plot(ax=figure.subplots())
    figure.savefig(folder / "diagnosis.png", dpi=150)
