"""The files of a fit, and what is printed about them.

labels.csv    id, cluster, distance (square root of the penalised distance to the cluster's centre)
              and, where the table was read whole, confidence (`metrics.confidence`)
centers.csv   one row per cluster, in the units of the table; centers_prepared.csv in those of the
              clustering, where these differ
markers.csv   the features that distinguish each cluster (`metrics.cluster_markers`)
annotations.csv   rows of each cluster in each group of an annotation
summary.json  what was read, what was done, what was found
model.json, model.npz   the model, with what `predict` needs to read and prepare a new table
report.json, report.html   the numbers of the report and the page made from them
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._model_files import save_model
from .._report import FittedTable, page_of, render
from ..metrics._markers import ranked
from ..metrics._verdict import FOLDS
from ..missingness._methods import lam_words
from ..tables import Preparation, Table
from ._console import Console, command_line, counted, in_options, plain
from ._job import Job, file_sum
from ._options import Folder, Source, Writing
from ._outputs import write_csv, write_json

FILES = [
    "labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
    "report.json", "report.html",
]  # fmt: skip
MARKERS = 100  # features of each cluster in markers.csv
DIGITS, FEW_DIGITS = 8, 4  # significant digits of centres; of effects and shares


@dataclass(frozen=True)
class Results:
    """What the files are made of."""

    job: Job
    fitted: FittedTable
    summary: dict[str, Any]
    output: Writing
    facts: dict[str, Any] = field(default_factory=dict)  # further sections of the report


def result_files(source: Source, *more: str) -> list[str]:
    """The names of the files that may be written."""
    prepared = ["centers_prepared.csv"] if _two_units(source.preparation) else []
    known = source.annotations or source.labels or source.batch
    return [*FILES, *prepared, *(["annotations.csv"] if known else []), *more]


def _two_units(preparation: Preparation) -> bool:
    """Whether centres have other units in the clustering than in the table."""
    return bool(preparation.units and preparation.own_units)


def results_of(console: Console, job: Job, model: Any, output: Writing, **more: Any) -> Results:
    """The results of a fit to a table that was read whole; `more` goes into summary.json."""
    source, table = job.source, job.table
    fitted = FittedTable(
        job.X, model, ids=table.short_ids, features=table.features, labels=model.labels_,
        annotations=table.annotations, classes=[*(source.labels or ()), source.batch or ""],
    )  # fmt: skip
    with console.progress("judging the clusters", FOLDS) as step:
        fitted.judge(lambda done, total: step(f"fit {done}"))
    for text in fitted.batch_warnings:
        console.note(text)
    job.notes = [*fitted.batch_warnings, *table.notes, *job.notes]
    data = table.source | {
        "sha256": file_sum(source.data), "rows": table.shape[0], "features": table.shape[1],
        "missing_share": table.missing_share(), "id_column": table.id_name,
    }  # fmt: skip
    summary = summary_of(job, model, fitted.sizes, data, table.left_out)
    if table.annotations:
        summary["annotations"] = plain(fitted.agreement)
    return Results(job, fitted, summary | plain(more), output)


def summary_of(
    job: Job, model: Any, sizes: Any, data: dict[str, Any], left_out: list[tuple[str, str]]
) -> dict[str, Any]:
    """summary.json, however the table was read."""
    missingness = getattr(model, "missingness_", None)
    left_out_columns = [{"column": name, "reason": reason} for name, reason in left_out]
    return plain({
        "mnarkmeans": __version__,
        "command": command_line(),
        "data": data | {"left_out": left_out_columns},
        "preparation": job.preparation.describe(),
        "n_clusters": len(model.cluster_centers_),
        "lam": model.lam_,
        "missingness": None if missingness is None else missingness.to_plain(),
        "inertia": model.inertia_,
        "n_iter": model.n_iter_,
        "cluster_sizes": sizes,
        "loss_path": model.loss_path_,
        "start_losses": model.start_losses_,
        "seconds": round(job.seconds, 3),
        "notes": job.notes,
    })  # fmt: skip


# --- files ------------------------------------------------------------------------------------


def write_results(folder: Path, results: Results, labels: Iterable[Any] | None = None) -> None:
    """All files of a fit, into a folder that exists; `labels`: rows of labels.csv, where they are
    not those of the fitted table (a table read in blocks)."""
    job, fitted, safe = results.job, results.fitted, results.output.safe
    model, table, preparation = fitted.model, job.table, job.preparation
    header, of_new_rows = ["id", "cluster", "distance"], {}
    if labels is None:
        columns = label_columns(table, fitted.labels, fitted.own_distance, fitted.confidence)
        header, labels = list(columns), zip(*columns.values(), strict=True)
        judged = fitted.verdict.to_dict()  # for the confidence of new rows
        of_new_rows = {name: judged[name] for name in ("noise", "odds")}
    write_csv(folder / "labels.csv", header, labels, safe=safe)
    centers = {"centers.csv": preparation.undo(model.cluster_centers_)}
    if _two_units(preparation):
        centers["centers_prepared.csv"] = model.cluster_centers_
    for name, rows in centers.items():
        lines = [[i, *(digits(v, DIGITS) for v in row)] for i, row in enumerate(rows.tolist())]
        write_csv(folder / name, ["cluster", *table.features], lines, safe=safe)
    markers = marker_columns(job, fitted)
    write_csv(folder / "markers.csv", markers, zip(*markers.values(), strict=True), safe=safe)
    if "annotations" in results.summary:
        counts = [
            [one["column"], group, cluster, count]
            for one in results.summary["annotations"]
            for cluster, row in enumerate(one["rows_by_cluster"])
            for group, count in zip(one["groups"], row, strict=True)
        ]
        header = ["annotation", "group", "cluster", "rows"]
        write_csv(folder / "annotations.csv", header, counts, safe=safe)
    page = report_page(results)
    results.summary["sure"] = page["sure"] | {"stability": page["stability"]}
    write_json(folder / "summary.json", results.summary)
    write_json(folder / "report.json", page, indent=None)
    (folder / "report.html").write_text(render(page), encoding="utf-8")
    extra = {
        "preparation": preparation.to_dict(),
        "prepared": preparation.describe(),
        "reading": table.remembered.to_dict(),
        "id_column": table.id_name,
        "command": results.summary["command"],
        **of_new_rows,
    }
    save_model(model, folder, feature_names=table.features, extra=extra)


def label_columns(table: Table, labels: Any, distance: Any, confidence: Any) -> dict[str, Any]:
    """labels.csv; the names of samples without what all of them share are a further column."""
    columns: dict[str, Any] = {"id": table.ids.tolist(), "cluster": np.asarray(labels).tolist()}
    if distance is not None:
        columns["distance"] = np.asarray(distance).tolist()
    if confidence is not None:  # empty where nothing can be said
        columns["confidence"] = [None if np.isnan(v) else round(float(v), 6) for v in confidence]
    if table.options.transpose and table.short_ids != columns["id"]:
        columns["sample"] = table.short_ids
    return columns


def marker_columns(job: Job, fitted: FittedTable) -> dict[str, list[Any]]:
    """markers.csv: the features that distinguish each cluster most from the other rows.

    Differences are in the units of the clustering (with --log2: log2 fold changes), means in those
    of the table.
    """
    table, preparation, found = job.table, job.preparation, fitted.contrasts
    features = np.arange(len(table.features))
    markers = ranked(found, range(fitted.n_clusters), features, MARKERS)
    names = [table.features[j] for j in markers.feature]
    columns = {"cluster": list(markers.cluster), "rank": list(markers.rank), "feature": names}
    if table.feature_labels:
        columns["gene"] = [table.feature_labels.get(name, "") for name in names]

    def add(name: str, values: Any, count: int = FEW_DIGITS) -> None:
        columns[name] = [digits(value, count) for value in values]

    for name in ("effect", "low", "high"):
        add(name, markers[name])
    columns["direction"] = list(markers.direction)
    scaled = preparation.scale != "none" or preparation.zscore_rows
    title = "log2_fold_change" if preparation.log2 and not scaled else "difference"
    add(title, markers.mean_inside - markers.mean_outside)
    for name in ("mean_inside", "mean_outside"):
        own_units = preparation.undo(getattr(found, name))
        add(name, own_units[markers.cluster, markers.feature], DIGITS)
    for name in ("observed_inside", "observed_outside"):
        add(name, markers[name])
    return columns


def digits(value: Any, count: int) -> float | None:
    """A number with so many significant digits; None where there is none.

    Examples
    --------
    >>> digits(23.456789, 4), digits(483534312.25, 8), digits(float("nan"), 4)
    (23.46, 483534310, None)
    """
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{count}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def report_page(results: Results) -> dict[str, Any]:
    """The numbers of the report."""
    job, model, summary = results.job, results.fitted.model, results.summary
    data, output = summary["data"], results.output
    settings = {
        "Table": data.get("file"),
        "Clusters": summary["n_clusters"],
        "lam": model.lam if isinstance(model.lam, str) else lam_words(model.lam),
        "Reference": reference_words(job, model),
        "Initialisations": model.n_init,
        "Algorithm": model.algorithm,
        "Seed": summary.get("seed", model.random_state),
        "SHA-256 of the table": (data.get("sha256") or "none")[:16],
    }
    facts = {
        "command": summary["command"],
        "notes": summary["notes"],
        "left_out": [[one["column"], one["reason"]] for one in data["left_out"]],
        "preparation": summary["preparation"],
        "settings": {name: str(value) for name, value in settings.items()},
    }
    page = page_of(
        results.fitted,
        title=getattr(output, "title", None) or job.source.data.name,
        facts=facts | results.facts,
        embedding=getattr(output, "embedding", "pca"),
    )
    page["diagnosis"] = [in_options(line) for line in page["diagnosis"]]
    return plain(page)


def reference_words(job: Job, model: Any) -> str:
    """The reference, in words or in the units of the table."""
    reference = np.asarray(model.reference_, dtype=float)
    if isinstance(job.reference, str):
        lowest = job.reference == "min" or np.any(reference)
        chosen = ", chosen from the data" if job.reference == "auto" else ""
        return ("smallest observed value of each feature" if lowest else "zero") + chosen
    if job.preparation.center:
        return "observed mean of each feature"
    own = job.preparation.undo(np.broadcast_to(reference, len(job.table.features)))
    different = np.unique(own.round(9))
    return f"{different[0]:.6g}" if different.size == 1 else "given per feature"


# --- the terminal -----------------------------------------------------------------------------


def print_results(console: Console, results: Results, output: Folder) -> None:
    """What was found, the verdict first, and where it is."""
    summary = results.summary
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
    print_agreement(console, summary.get("annotations", []))
    console.say(f"written to {output.out}; open {output.out / 'report.html'}")
    if output.write_h5ad is not None:
        console.say(f"a copy of the input with the labels is {output.write_h5ad}")
    console.result(summary | {"output": str(output.out)})


def print_agreement(console: Console, found: list[dict[str, Any]]) -> None:
    """A line for each annotation."""
    lines = []
    for one in found:
        value = "" if one["agreement"] is None else f"{one['agreement']:.2f}"
        lines.append([one["column"], one["measure"], value, f"{one['unknown']:,}"])
    header = ["annotation", "measure", "agreement", "rows unknown"]
    console.table("agreement with the clusters", header, lines)
