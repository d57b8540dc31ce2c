"""The files of a fit, as fit, select, compare and demo write them.

labels.csv    id, cluster, distance (square root of the penalised distance to the cluster's
              centre), confidence (`metrics.confidence`)
centers.csv   one row per cluster, in the units of the table; centers_prepared.csv in those of the
              clustering, where these differ
markers.csv   the features that distinguish each cluster (`metrics.cluster_markers`)
selection.csv     the candidates of a search (`select`)
comparison.csv, comparison_labels.csv   other methods on the same rows (`compare`)
summary.json  what was read, what was done, what was found
model.json, model.npz   the model, with what `predict` needs to read and prepare a new table
report.json, report.html   the numbers of the report and the page made from them
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._io import as_json
from .._model_files import save_model
from .._report import page_of, render
from ..metrics._markers import strongest
from ..missingness._paragraph import lam_words
from ..tables import Table

if TYPE_CHECKING:
    from ._fitting import Job

FILES = [
    "labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
    "report.json", "report.html", "centers_prepared.csv", "selection.csv", "comparison.csv",
    "comparison_labels.csv",
]  # fmt: skip
MARKERS = 100  # features of each cluster in markers.csv
DIGITS = "%.8g"  # of centres and means
ROUNDED = ["effect", "low", "high", "observed_inside", "observed_outside"]  # to 4 digits


def write_results(folder: Path, job: Job) -> None:
    """Write the files of an assessed fit into a folder that exists."""
    fitted, table, preparation, rows = job.fitted, job.table, job.preparation, job.fitted.rows
    model = fitted.model
    labels = label_frame(table, fitted.labels, rows["distance"], rows["confidence"])
    labels.to_csv(folder / "labels.csv", index=False)
    centers = {"centers.csv": preparation.undo(model.cluster_centers_)}
    if preparation.units and preparation.own_units:  # of the table, and others
        centers["centers_prepared.csv"] = model.cluster_centers_
    for name, values in centers.items():
        frame = pd.DataFrame(values, columns=table.features)
        frame.to_csv(folder / name, index_label="cluster", float_format=DIGITS)
    _markers(job).to_csv(folder / "markers.csv", index=False, float_format=DIGITS)
    page = _page(job)
    job.summary["sure"] = page["sure"] | {"stability": page["stability"]}
    write_json(folder / "summary.json", job.summary)
    write_json(folder / "report.json", page, indent=None)
    (folder / "report.html").write_text(render(page), encoding="utf-8")
    verdict = fitted.verdict.to_dict()
    extra = {
        "preparation": preparation.to_dict(), "prepared": preparation.describe(),
        "reading": table.remembered.to_dict(), "id_column": table.id_name,
        "command": job.summary["command"],
        "noise": verdict["noise"], "odds": verdict["odds"],  # for the confidence of new rows
    }  # fmt: skip
    save_model(model, folder, feature_names=table.features, extra=extra)


def label_frame(table: Table, labels: Any, distance: Any, confidence: Any) -> pd.DataFrame:
    """labels.csv; the names of samples without what all of them share are a further column."""
    frame = pd.DataFrame({"id": table.ids, "cluster": labels})
    if distance is not None:
        frame["distance"] = distance
    if confidence is not None:  # empty where it is unknown
        frame["confidence"] = np.round(confidence, 6)
    if table.options.transpose and table.short_ids != table.ids.tolist():
        frame["sample"] = table.short_ids
    return frame


def _markers(job: Job) -> pd.DataFrame:
    """markers.csv: the features that distinguish each cluster most.

    Differences are in the units of the clustering (with --log2: log2 fold changes), means in those
    of the table.
    """
    table, preparation = job.table, job.preparation
    markers = strongest(job.fitted.markers, MARKERS)
    cells = markers.cluster, markers.feature
    frame = markers.to_frame()
    frame[ROUNDED] = frame[ROUNDED].map(lambda value: float(f"{value:.4g}"))
    frame["feature"] = np.array(table.features, dtype=object)[markers.feature]
    for name in ("mean_inside", "mean_outside"):
        means = np.full(job.fitted.model.cluster_centers_.shape, np.nan)
        means[cells] = markers[name]
        frame[name] = preparation.undo(means)[cells]
    scaled = preparation.scale != "none" or preparation.zscore_rows
    title = "log2_fold_change" if preparation.log2 and not scaled else "difference"
    difference = markers.mean_inside - markers.mean_outside
    frame.insert(frame.columns.get_loc("mean_inside"), title, difference)
    if table.feature_labels:
        frame.insert(3, "gene", frame["feature"].map(table.feature_labels))
    return frame


def _page(job: Job) -> dict[str, Any]:
    """The numbers of the report."""
    model, summary, data = job.fitted.model, job.summary, job.summary["data"]
    settings = {
        "lam": model.lam if isinstance(model.lam, str) else lam_words(model.lam),
        "Reference": _reference_words(job),
        "Starts": model.n_init,
        "Seed": model.random_state,
        "SHA-256 of the table": data["sha256"][:16],
    }
    title = job.output.title or job.source.data.name
    return page_of(job.fitted, title, job.output.embedding) | {
        "command": summary["command"],
        "notes": summary["notes"],
        "left_out": [list(column.values()) for column in data["left_out"]],
        "preparation": summary["preparation"],
        "settings": {name: str(value) for name, value in settings.items()},
        **job.sections,
    }


def _reference_words(job: Job) -> str:
    """The reference as it was asked for, and what auto has chosen."""
    if job.preparation.center:
        return "observed mean of each feature"
    if not isinstance(job.reference, str) or job.reference == "min":
        return str(job.source.reference)
    model = job.fitted.model
    is_min = np.any(model.reference_)
    if hasattr(model, "missingness_"):  # not with the criterion of the paper
        is_min = model.missingness_.reference == "min"
    return f"auto: {'smallest observed value of each feature' if is_min else 'zero'}"


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """A JSON document."""
    path.write_text(as_json(value, indent) + "\n", encoding="utf-8")
