"""The files of a fit: labels.csv, centers.csv, summary.json, model.json + model.npz, the report.

labels.csv   id, cluster, distance (root of the penalised distance to the cluster's centre)
centers.csv  one row per cluster, in the units of the table
summary.json what was read, what was done, what came out
report.json  the numbers of report.html, so that the page can be drawn again
"""

from __future__ import annotations

import csv
import hashlib
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._io.model_files import save_model
from ._console import plain
from ._frames import Table
from ._job import Prepared, Reading

RESULT_FILES = [
    "labels.csv", "centers.csv", "summary.json", "model.json", "model.npz", "report.json",
    "report.html",
]  # fmt: skip


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["mnarkmeans", *sys.argv[1:]])


def file_sum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def lam_text(estimator: Any) -> str:
    """How lam came about, in words."""
    if estimator.lam != "auto":
        return f"lam = {estimator.lam_:.4g} was given."
    text = (
        f"lam = {estimator.lam_:.4g} was estimated from the pattern of gaps: how often values are "
        "missing, against how far they lie from the reference."
    )
    found = getattr(estimator, "missingness_", None)
    if found is None or found.log_likelihood == found.log_likelihood_mcar:
        return text
    verdict = (
        "explains the gaps better than" if found.lam > 0 else "explains the gaps no better than"
    )
    return (
        f"{text} Loss near the reference {verdict} chance alone (log-likelihood "
        f"{found.log_likelihood:,.0f} against {found.log_likelihood_mcar:,.0f}); a value at the "
        f"reference itself is missing with probability {found.share_at_reference:.2f}."
    )


def summarise(
    job: Prepared, path: Path, estimator: Any, notes: list[str], seconds: float, **more: Any
) -> dict[str, Any]:
    """summary.json."""
    table = job.table
    sizes = np.bincount(estimator.labels_, minlength=estimator.cluster_centers_.shape[0])
    document = {
        "mnarkmeans": __version__,
        "command": command_line(),
        "data": {
            **table.source,
            "sha256": file_sum(path) if path.is_file() else None,
            "rows": table.shape[0],
            "features": table.shape[1],
            "missing_share": table.missing_share(),
            "id_column": table.id_name,
            "left_out": [{"column": n, "reason": r} for n, r in table.left_out],
        },
        "preparation": job.preparation.describe(),
        "n_clusters": int(estimator.cluster_centers_.shape[0]),
        "lam": float(estimator.lam_),
        "missingness": _fields(getattr(estimator, "missingness_", None)),
        "inertia": float(estimator.inertia_),
        "n_iter": int(estimator.n_iter_),
        "cluster_sizes": sizes,
        "loss_path": estimator.loss_path_,
        "start_losses": estimator.start_losses_,
        "seconds": round(seconds, 3),
        "notes": [*table.notes, *notes],
        **more,
    }
    return plain(document)


def _fields(missingness: Any) -> dict[str, Any] | None:
    """What the likelihood said about the gaps, if it was asked."""
    return None if missingness is None else asdict(missingness)


def write_results(
    folder: Path,
    job: Prepared,
    estimator: Any,
    summary: dict[str, Any],
    reading: Reading,
    *,
    embedding: str = "pca",
    title: str,
    facts: dict[str, Any] | None = None,
) -> None:
    """All files of a fit, into a folder that exists."""
    table, preparation = job.table, job.preparation
    distances = np.asarray(estimator.transform(job.X))
    write_labels(folder / "labels.csv", table.ids, estimator.labels_, distances)
    write_centers(folder / "centers.csv", preparation.undo(estimator.cluster_centers_), table)
    _write_json(folder / "summary.json", summary)
    extra = {
        "preparation": preparation.to_dict(),
        "reading": asdict(reading),
        "id_column": table.id_name,
        "command": summary["command"],
    }
    save_model(estimator, folder, feature_names=table.features, extra=extra)
    page = make_page(job, estimator, summary, embedding=embedding, title=title, facts=facts)
    write_page(folder, page)


def make_page(
    job: Prepared,
    estimator: Any,
    summary: dict[str, Any],
    *,
    embedding: str,
    title: str,
    facts: dict[str, Any] | None,
) -> dict[str, Any]:
    """The numbers of the report."""
    from ..report import collect

    settings = {
        "Table": summary["data"].get("file"),
        "Clusters": summary["n_clusters"],
        "lam": estimator.lam if isinstance(estimator.lam, str) else f"{estimator.lam:g}",
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
        title=title,
        facts=told | (facts or {}),
        embedding=embedding,
    )
    return plain(page)


def _reference_words(job: Prepared, estimator: Any) -> str:
    if isinstance(job.reference, str):
        return "least observed value of each feature"
    if job.preparation.shift is not None:
        return "observed mean of each feature"
    used = np.unique(np.asarray(estimator.reference_, dtype=float))
    if used.size == 1:
        return f"{job.preparation.undo(np.full(len(job.table.features), used[0]))[0]:.6g}"
    own = np.unique(job.preparation.undo(np.asarray(estimator.reference_, dtype=float)).round(9))
    return f"{own[0]:.6g}" if own.size == 1 else "given per feature"


def write_page(folder: Path, page: dict[str, Any]) -> None:
    """report.json and the page drawn from it."""
    from ..report import render

    _write_json(folder / "report.json", page, indent=None)
    (folder / "report.html").write_text(render(page), encoding="utf-8")


def write_labels(path: Path, ids: Any, labels: Any, distances: np.ndarray) -> None:
    """labels.csv: id, cluster, distance to the centre of that cluster."""
    own = distances[np.arange(len(labels)), labels]
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "cluster", "distance"])
        for name, label, distance in zip(ids, labels, own, strict=True):
            writer.writerow([name, int(label), repr(float(distance))])


def write_centers(path: Path, centers: np.ndarray, table: Table) -> None:
    """centers.csv: one row per cluster, in the units of the table."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["cluster", *table.features])
        for number, center in enumerate(centers):
            writer.writerow([number, *(repr(float(value)) for value in center)])


def _write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
