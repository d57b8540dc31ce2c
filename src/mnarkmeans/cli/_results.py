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
from ..metrics._markers import ranked
from ..report import FittedTable, page_of, render
from ..tables import Table
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
    known = source.annotations or source.labels or source.batch
    preparation = source.preparation
    two = preparation.units and preparation.own_units
    prepared = ["centers_prepared.csv"] if two else []
    annotated = ["annotations.csv"] if known else []
    return [*FILES, *prepared, *annotated, *more]


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
    for name, centers in center_files(job, model).items():
        lines = ([i, *(digits(v, DIGITS) for v in row)] for i, row in enumerate(centers))
        write_csv(folder / name, ["cluster", *table.features], lines, safe=safe)
    header, lines = marker_table(results)
    write_csv(folder / "markers.csv", header, lines, safe=safe)
    if "annotations" in results.summary:
        write_csv(
            folder / "annotations.csv",
            ["annotation", "group", "cluster", "rows"],
            annotation_lines(results.summary["annotations"]),
            safe=safe,
        )
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
    write_page(folder, page)


def label_columns(table: Table, labels: Any, distance: Any, confidence: Any) -> dict[str, Any]:
    """labels.csv; names of samples without what all of them share are a further column."""
    columns = {"id": table.ids.tolist(), "cluster": np.asarray(labels).tolist()}
    if distance is not None:
        columns["distance"] = np.asarray(distance).tolist()
    if confidence is not None:
        columns["confidence"] = shown_confidence(confidence)
    if table.options.transpose and table.short_ids != columns["id"]:
        columns["sample"] = table.short_ids
    return columns


def shown_confidence(values: np.ndarray) -> list[float | None]:
    """As it is written; empty where nothing can be said."""
    return [None if np.isnan(v) else round(v, 6) for v in values.tolist()]


def center_files(job: Prepared, model: Any) -> dict[str, np.ndarray]:
    """The centres in the units of the table and, if these differ, of the clustering."""
    centers = np.asarray(model.cluster_centers_, dtype=float)
    files = {"centers.csv": job.preparation.undo(centers)}
    if job.preparation.units and job.preparation.own_units:
        files["centers_prepared.csv"] = centers
    return files


def marker_table(results: Results) -> tuple[list[str], list[list[Any]]]:
    """markers.csv: the features that distinguish each cluster most from the other rows.

    Differences are in the units of the clustering (with --log2: log2 fold changes), means in those
    of the table.
    """
    job, fitted = results.job, results.fitted
    table, preparation = job.table, job.preparation
    found = fitted.contrasts
    names = np.array(table.features, dtype=object)
    markers = ranked(found, range(fitted.n_clusters), names, MARKERS)
    columns: dict[str, Any] = dict(markers)
    difference = markers.mean_inside - markers.mean_outside
    own = (preparation.undo(means) for means in (found.mean_inside, found.mean_outside))
    in_units = ranked(
        found._replace(**dict(zip(("mean_inside", "mean_outside"), own, strict=True))),
        range(fitted.n_clusters), names, MARKERS,
    )  # fmt: skip
    columns |= {"mean_inside": in_units.mean_inside, "mean_outside": in_units.mean_outside}
    out: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if np.asarray(values).dtype.kind == "f":
            out[name] = [digits(v, DIGITS if "mean" in name else FEW_DIGITS) for v in values]
        else:
            out[name] = list(values)
        if name == "feature" and table.feature_labels:
            out["gene"] = [table.feature_labels.get(str(v), "") for v in values]
        if name == "direction":
            is_log2 = (
                preparation.log2 and preparation.scale == "none" and not preparation.zscore_rows
            )
            title = "log2_fold_change" if is_log2 else "difference"
            out[title] = [digits(v, FEW_DIGITS) for v in difference]
    return list(out), [list(row) for row in zip(*out.values(), strict=True)]


def annotation_lines(found: list[dict[str, Any]]) -> Iterable[list[Any]]:
    """annotations.csv: the rows of each cluster in each group of each annotation."""
    for one in found:
        for cluster, counts in enumerate(one["rows_by_cluster"]):
            for group, count in zip(one["groups"], counts, strict=True):
                yield [one["column"], group, cluster, count]


def write_page(folder: Path, page: dict[str, Any]) -> None:
    """report.json and the page made from it."""
    write_json(folder / "report.json", page, indent=None)
    (folder / "report.html").write_text(render(page), encoding="utf-8")


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
        "lam_text": lam_text(model),
    }
    page = page_of(
        results.fitted,
        title=results.title,
        facts=facts | results.facts,
        embedding=getattr(results.output, "embedding", "pca"),
    )
    page["diagnosis"] = [in_options(line) for line in page["diagnosis"]]
    return plain(page)


def lam_words(lam: Any) -> str:
    """One number, or the range of one per feature.

    Examples
    --------
    >>> lam_words(0.5), lam_words([0.25, 1.0])
    ('0.5', '0.25 to 1, one per feature')
    """
    if np.ndim(lam) == 0:
        return f"{lam:.4g}"
    return f"{np.min(lam):.4g} to {np.max(lam):.4g}, one per feature"


def lam_text(model: Any) -> str:
    """Where lam comes from, in words."""
    if not isinstance(model.lam, str):
        return f"lam = {lam_words(model.lam_)} was given."
    found = getattr(model, "missingness_", None)
    why = f" {found.sentence}" if getattr(found, "sentence", None) else ""
    return f"lam = {lam_words(model.lam_)} was chosen from the data.{why}"


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
