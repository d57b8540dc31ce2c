"""The files of a fit: labels, centres, markers, summary.json, model.json + model.npz, the report.

labels.csv   id, cluster, distance (root of the penalised distance to the cluster's centre) and,
             where the table was read whole, confidence (`metrics.confidence`)
centers.csv  one row per cluster, in the units of the table
markers.csv  the features that make each cluster (`metrics.cluster_markers`), means in these units
summary.json what was read, what was done, what came out
report.json  the numbers of report.html, so that the page can be drawn again
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._model_files import save_model
from ..metrics import verdict
from ..metrics._markers import contrasts, ranked
from ._annotations import FILE as ANNOTATIONS
from ._annotations import agreements, write_annotations
from ._command import command_line
from ._console import plain
from ._csv import write_csv
from ._job import Course, Prepared
from ._options import Picture, Reading, Source
from ._remembered import to_remember
from ._spoken import spoken

RESULT_FILES = [
    "labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
    "report.json", "report.html",
]  # fmt: skip
CONFIDENCE_DIGITS = 6
MARKERS = 100  # features of each cluster in markers.csv


def result_files(source: Source, *more: str) -> list[str]:
    """The files that are written of this table."""
    return [*RESULT_FILES, *([ANNOTATIONS] if source.annotations else []), *more]


@dataclass(frozen=True)
class Results:
    """What is written of a fit, and how."""

    job: Prepared
    estimator: Any
    summary: dict[str, Any]
    reading: Reading
    title: str
    embedding: Picture = Picture.pca
    facts: dict[str, Any] = field(default_factory=dict)  # further sections of the report
    safe: bool = False  # names for spreadsheets


def file_sum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def table_key(source: Source) -> dict[str, Any]:
    """What a prepared table depends on: the file, how it is read and how it is prepared, and the
    file that names the reference, if one does."""
    files = [path for path in (source.data, source.reference_file) if path is not None]
    return {
        "data": [file_sum(path) for path in files],
        "reading": asdict(source.reading),
        "steps": asdict(source.steps),
    }


# --- summary.json -----------------------------------------------------------------------------


def summarise(
    job: Prepared, path: Path, estimator: Any, course: Course, **more: Any
) -> dict[str, Any]:
    """summary.json of a table that was read whole."""
    table = job.table
    data = {
        **table.source,
        "sha256": file_sum(path),
        "rows": table.shape[0],
        "features": table.shape[1],
        "missing_share": table.missing_share(),
        "id_column": table.id_name,
        "left_out": [{"column": n, "reason": r} for n, r in table.left_out],
    }
    sizes = np.bincount(estimator.labels_, minlength=len(estimator.cluster_centers_))
    told = Course([*table.notes, *course.notes], course.seconds)
    summary = summary_of(estimator, data, job.preparation.describe(), sizes, told) | plain(more)
    if job.annotations.columns:
        summary["annotations"] = plain(agreements(job.annotations, estimator.labels_))
    return summary


def summary_of(
    estimator: Any, data: dict[str, Any], preparation: list[str], sizes: Any, course: Course
) -> dict[str, Any]:
    """summary.json, however the table was read."""
    missingness = getattr(estimator, "missingness_", None)
    return plain(
        {
            "mnarkmeans": __version__,
            "command": command_line(),
            "data": data,
            "preparation": preparation,
            "n_clusters": len(estimator.cluster_centers_),
            "lam": estimator.lam_,
            "missingness": None if missingness is None else missingness.to_plain(),
            "inertia": estimator.inertia_,
            "n_iter": estimator.n_iter_,
            "cluster_sizes": sizes,
            "loss_path": estimator.loss_path_,
            "start_losses": estimator.start_losses_,
            "seconds": round(course.seconds, 3),
            "notes": course.notes,
        }
    )


def lam_words(lam: Any) -> str:
    """One number, or the span of one per feature.

    Examples
    --------
    >>> lam_words(0.5), lam_words([0.25, 1.0])
    ('0.5', '0.25 to 1, one per feature')
    """
    if np.ndim(lam) == 0:
        return f"{lam:.4g}"
    return f"{np.min(lam):.4g} to {np.max(lam):.4g}, one per feature"


def lam_text(estimator: Any) -> str:
    """How lam came about, in words."""
    if not isinstance(estimator.lam, str):
        return f"lam = {lam_words(estimator.lam_)} was given."
    text = f"lam = {lam_words(estimator.lam_)} was chosen from the data."
    found = getattr(estimator, "missingness_", None)
    return text if found is None else f"{text} {found.sentence}"


# --- the files --------------------------------------------------------------------------------


def write_results(folder: Path, results: Results) -> None:
    """All files of a fit, into a folder that exists."""
    job, estimator = results.job, results.estimator
    labels = estimator.labels_
    distances = np.asarray(estimator.transform(job.X))[np.arange(len(labels)), labels]
    found = verdict(job.X, estimator)
    sure = shown_confidence(found.confidence)
    rows = zip(job.table.ids, labels, distances, sure, strict=True)
    write_labels(folder / "labels.csv", rows, results.safe, ("confidence",))
    write_rest(folder, results, found.to_dict()["noise"])


def shown_confidence(values: Any) -> Any:
    """As it is written: further digits of a probability tell nothing."""
    return np.asarray(values, dtype=float).round(CONFIDENCE_DIGITS)


def write_rest(folder: Path, results: Results, noise: list[float | None] | None = None) -> None:
    """All files but the labels; the noise goes with the model, for the confidence of new rows."""
    job, estimator = results.job, results.estimator
    centers = job.preparation.undo(estimator.cluster_centers_)
    write_csv(
        folder / "centers.csv",
        ["cluster", *job.table.features],
        ([number, *center.tolist()] for number, center in enumerate(centers)),
        safe=results.safe,
    )
    write_markers(folder / "markers.csv", results)
    if "annotations" in results.summary:
        write_annotations(folder / ANNOTATIONS, results.summary["annotations"], results.safe)
    page = make_page(results)
    results.summary["sure"] = page["sure"] | {"stability": page["stability"]}
    write_json(folder / "summary.json", results.summary)
    extra = {
        "preparation": job.preparation.to_dict(),
        "prepared": job.preparation.describe(),
        "reading": to_remember(results.reading, job.table),
        "id_column": job.table.id_name,
        "command": results.summary["command"],
        "noise": noise,
    }
    save_model(estimator, folder, feature_names=job.table.features, extra=extra)
    write_page(folder, page)


def write_labels(
    path: Path, rows: Iterable[tuple[Any, ...]], safe: bool, more: tuple[str, ...] = ()
) -> None:
    """labels.csv: id, cluster, distance to the centre of that cluster, and `more` numbers."""
    lines = (
        [name, int(label), *(None if np.isnan(v) else float(v) for v in numbers)]
        for name, label, *numbers in rows
    )
    write_csv(path, ["id", "cluster", "distance", *more], lines, safe=safe)


def write_markers(path: Path, results: Results) -> None:
    """markers.csv: the features that separate each cluster most from the other rows."""
    job, k = results.job, len(results.estimator.cluster_centers_)
    found = contrasts(job.X, results.estimator.labels_, k)
    means = (job.preparation.undo(own) for own in (found.mean_inside, found.mean_outside))
    found = found._replace(**dict(zip(("mean_inside", "mean_outside"), means, strict=True)))
    table = plain(dict(ranked(found, range(k), job.table.features, MARKERS)))
    write_csv(path, list(table), zip(*table.values(), strict=True), safe=results.safe)


def write_page(folder: Path, page: dict[str, Any]) -> None:
    """report.json and the page drawn from it."""
    from ..report import render

    write_json(folder / "report.json", page, indent=None)
    (folder / "report.html").write_text(render(page), encoding="utf-8")


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """A document that JSON can hold."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


# --- the report -------------------------------------------------------------------------------


def make_page(results: Results) -> dict[str, Any]:
    """The numbers of the report."""
    from ..report import collect

    job, estimator, summary = results.job, results.estimator, results.summary
    settings = {
        "Table": summary["data"].get("file"),
        "Clusters": summary["n_clusters"],
        "lam": estimator.lam if isinstance(estimator.lam, str) else lam_words(estimator.lam),
        "Reference": _reference_words(job, estimator),
        "Starts": estimator.n_init,
        "Algorithm": estimator.algorithm,
        "Seed": summary.get("seed", estimator.random_state),
        "Codes for missing": ", ".join(summary["data"].get("missing_codes") or []) or "none",
        "SHA-256 of the table": (summary["data"].get("sha256") or "none")[:16],
    }
    told = {
        "command": summary["command"],
        "notes": summary["notes"],
        "left_out": [[e["column"], e["reason"]] for e in summary["data"]["left_out"]],
        "preparation": summary["preparation"],
        "settings": {name: str(value) for name, value in settings.items()},
        "lam_text": lam_text(estimator),
    }
    page = collect(
        X=job.X,
        ids=job.table.ids,
        features=job.table.features,
        model=estimator,
        title=results.title,
        facts=told | results.facts,
        embedding=str(results.embedding),
        annotations=job.annotations.columns,
    )
    page["diagnosis"] = [spoken(line) for line in page["diagnosis"]]
    return plain(page)


def _reference_words(job: Prepared, estimator: Any) -> str:
    if isinstance(job.reference, str):
        least = job.reference == "min" or np.any(estimator.reference_)
        chosen = ", chosen by what explains the gaps" if job.reference == "auto" else ""
        return ("least observed value of each feature" if least else "zero") + chosen
    if job.preparation.shift is not None:
        return "observed mean of each feature"
    used = np.unique(np.asarray(estimator.reference_, dtype=float))
    if used.size == 1:
        return f"{job.preparation.undo(np.full(len(job.table.features), used[0]))[0]:.6g}"
    own = np.unique(job.preparation.undo(np.asarray(estimator.reference_, dtype=float)).round(9))
    return f"{own[0]:.6g}" if own.size == 1 else "given per feature"
