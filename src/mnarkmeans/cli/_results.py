"""The files of a fit.

labels.csv    id, cluster, distance (square root of the penalised distance to the cluster's centre)
              and, where the table was read whole, confidence (`metrics.confidence`)
centers.csv   one row per cluster, in the units of the table; centers_prepared.csv in those of the
              clustering, where these differ
markers.csv   the features that distinguish each cluster (`metrics.cluster_markers`)
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
from .._report import FittedTable, lam_words, page_of, render
from ..metrics._markers import ranked
from ..tables import Preparation, Table
from ._console import Console, command_line, in_options, plain
from ._files import digits, file_sum, write_csv, write_json
from ._options import Folder, Source, Writing
from ._source import Course, Prepared

FILES = [
    "labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
    "report.json", "report.html",
]  # fmt: skip
MARKERS = 100  # features of each cluster in markers.csv
DIGITS, FEW_DIGITS = 8, 4  # significant digits of centres; of effects and shares


def result_files(source: Source, *more: str) -> list[str]:
    """The names of the files that may be written."""
    prepared = ["centers_prepared.csv"] if _two_units(source.preparation) else []
    known = source.annotations or source.labels or source.batch
    return [*FILES, *prepared, *(["annotations.csv"] if known else []), *more]


def _two_units(preparation: Preparation) -> bool:
    """Whether centres have other units in the clustering than in the table."""
    return bool(preparation.units and preparation.own_units)


@dataclass(frozen=True)
class Results:
    """What the files are made of."""

    source: Source
    job: Prepared
    fitted: FittedTable
    summary: dict[str, Any]
    output: Writing
    facts: dict[str, Any] = field(default_factory=dict)  # further sections of the report

    @property
    def title(self) -> str:
        return getattr(self.output, "title", None) or self.source.data.name


def results_of(
    console: Console,
    source: Source,
    job: Prepared,
    model: Any,
    course: Course,
    output: Writing,
    facts: dict[str, Any] | None = None,
    **more: Any,
) -> Results:
    """The results of a fit to a table that was read whole."""
    table = job.table
    fitted = FittedTable(
        job.X, model, ids=table.short_ids, features=table.features, labels=model.labels_,
        annotations=table.annotations, classes=[*(source.labels or ()), source.batch or ""],
    )  # fmt: skip
    with console.progress("judging the clusters", None, brief=True):
        _ = fitted.verdict
    for text in fitted.batch_warnings:
        console.note(text)
    data = {
        **table.source,
        "sha256": file_sum(source.data),
        "rows": table.shape[0],
        "features": table.shape[1],
        "missing_share": table.missing_share(),
        "id_column": table.id_name,
        "left_out": [{"column": n, "reason": r} for n, r in table.left_out],
    }
    notes = [*fitted.batch_warnings, *table.notes, *course.notes]
    summary = summary_of(model, data, job, fitted.sizes, notes, course.seconds)
    if table.annotations:
        summary["annotations"] = plain(fitted.agreement)
    return Results(source, job, fitted, summary | plain(more), output, facts or {})


def summary_of(
    model: Any, data: dict[str, Any], job: Prepared, sizes: Any, notes: list[str], seconds: float
) -> dict[str, Any]:
    """summary.json, however the table was read."""
    missingness = getattr(model, "missingness_", None)
    return plain(
        {
            "mnarkmeans": __version__,
            "command": command_line(),
            "data": data,
            "preparation": job.preparation.describe(),
            "n_clusters": len(model.cluster_centers_),
            "lam": model.lam_,
            "missingness": None if missingness is None else missingness.to_plain(),
            "inertia": model.inertia_,
            "n_iter": model.n_iter_,
            "cluster_sizes": sizes,
            "loss_path": model.loss_path_,
            "start_losses": model.start_losses_,
            "seconds": round(seconds, 3),
            "notes": notes,
        }
    )


# --- files ------------------------------------------------------------------------------------


def write_results(folder: Path, results: Results, labels: Iterable[Any] | None = None) -> None:
    """All files of a fit, into a folder that exists; `labels`: rows of labels.csv, where they are
    not those of the fitted table (a table read in blocks)."""
    job, fitted, safe = results.job, results.fitted, results.output.safe
    model, table, preparation = fitted.model, job.table, job.preparation
    whole = labels is None
    header = ["id", "cluster", "distance"]
    if labels is None:
        columns = label_columns(table, fitted.labels, fitted.own_distance, fitted.confidence)
        header, labels = list(columns), zip(*columns.values(), strict=True)
    write_csv(folder / "labels.csv", header, labels, safe=safe)
    centers = {"centers.csv": preparation.undo(model.cluster_centers_)}
    if _two_units(preparation):
        centers["centers_prepared.csv"] = model.cluster_centers_
    for name, rows in centers.items():
        lines = [[i, *(digits(v, DIGITS) for v in row)] for i, row in enumerate(rows.tolist())]
        write_csv(folder / name, ["cluster", *table.features], lines, safe=safe)
    markers = marker_columns(results)
    write_csv(folder / "markers.csv", markers, zip(*markers.values(), strict=True), safe=safe)
    if "annotations" in results.summary:
        header = ["annotation", "group", "cluster", "rows"]
        counts = [
            [one["column"], group, cluster, count]
            for one in results.summary["annotations"]
            for cluster, row in enumerate(one["rows_by_cluster"])
            for group, count in zip(one["groups"], row, strict=True)
        ]
        write_csv(folder / "annotations.csv", header, counts, safe=safe)
    page = report_page(results)
    results.summary["sure"] = page["sure"] | {"stability": page["stability"]}
    write_json(folder / "summary.json", results.summary)
    extra = {
        "preparation": preparation.to_dict(),
        "prepared": preparation.describe(),
        "reading": table.remembered.to_dict(),
        "id_column": table.id_name,
        "command": results.summary["command"],
        "noise": fitted.noise if whole else None,  # for the confidence of new rows
    }
    save_model(model, folder, feature_names=table.features, extra=extra)
    write_json(folder / "report.json", page, indent=None)
    (folder / "report.html").write_text(render(page), encoding="utf-8")


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


def marker_columns(results: Results) -> dict[str, list[Any]]:
    """markers.csv: the features that distinguish each cluster most from the other rows.

    Differences are in the units of the clustering (with --log2: log2 fold changes), means in those
    of the table.
    """
    table, preparation, fitted = results.job.table, results.job.preparation, results.fitted
    k, found = fitted.n_clusters, fitted.contrasts
    markers = ranked(found, range(k), np.arange(len(table.features)), MARKERS)
    at = markers.cluster, markers.feature
    scaled = preparation.scale != "none" or preparation.zscore_rows
    title = "log2_fold_change" if preparation.log2 and not scaled else "difference"
    numbers = {name: (values, FEW_DIGITS) for name, values in markers.items()}
    numbers[title] = markers.mean_inside - markers.mean_outside, FEW_DIGITS
    for name in ("mean_inside", "mean_outside"):
        numbers[name] = preparation.undo(getattr(found, name))[at], DIGITS
    names = [table.features[j] for j in markers.feature]
    genes = [table.feature_labels.get(name, "") for name in names]
    columns = {"cluster": list(markers.cluster), "rank": list(markers.rank), "feature": names}
    columns |= {"gene": genes} if table.feature_labels else {}
    for name in ("effect", "low", "high", "direction", title, "mean_inside", "mean_outside",
                 "observed_inside", "observed_outside"):  # fmt: skip
        values, count = numbers[name]
        texts = name == "direction"
        columns[name] = [v if texts else digits(v, count) for v in values]
    return columns


# --- the report -------------------------------------------------------------------------------


def report_page(results: Results) -> dict[str, Any]:
    """The numbers of the report."""
    job, model, summary = results.job, results.fitted.model, results.summary
    data = summary["data"]
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
        "left_out": [[e["column"], e["reason"]] for e in data["left_out"]],
        "preparation": summary["preparation"],
        "settings": {name: str(value) for name, value in settings.items()},
    }
    page = page_of(
        results.fitted,
        title=results.title,
        facts=facts | results.facts,
        embedding=getattr(results.output, "embedding", "pca"),
    )
    page["diagnosis"] = [in_options(line) for line in page["diagnosis"]]
    return plain(page)


def reference_words(job: Prepared, model: Any) -> str:
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
    """What was found and where it is."""
    summary = results.summary
    console.say(
        f"{summary['n_clusters']} clusters, lam = {lam_words(summary['lam'])}, "
        f"loss = {summary['inertia']:.6g}, {summary['seconds']:.1f} s"
    )
    sizes, rows = summary["cluster_sizes"], summary["data"]["rows"]
    lines = [[str(i), f"{size:,}", f"{size / rows:.1%}"] for i, size in enumerate(sizes)]
    console.table("clusters", ["cluster", "rows", "share"], lines)
    console.say(" ".join([summary["sure"]["headline"], *summary["sure"]["reasons"]]))
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
    if lines:
        header = ["annotation", "measure", "agreement", "rows unknown"]
        console.table("agreement with the clusters", header, lines)
