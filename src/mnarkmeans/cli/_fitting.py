"""What fit, select, compare and demo share: from a table to the files of its fit.

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

import csv
import hashlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
from ..tables import Preparation, Table, read_table
from ._console import (
    Console,
    Step,
    UserError,
    counted,
    estimator_errors,
    in_options,
    plain,
    typed_command,
)
from ._options import FolderOptions, SourceOptions, as_number
from ._outputs import write_csv, write_json

FILES = [
    "labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
    "report.json", "report.html",
]  # fmt: skip
MARKERS = 100  # features of each cluster in markers.csv
DIGITS, FEW_DIGITS = 8, 4  # significant digits of centres; of effects and shares


def open_job(console: Console, source: SourceOptions, clusters: int) -> Job:
    """Read and prepare a table with rows for so many clusters; say what was used and left out.

    A table that certainly must be read in another way is refused, with the command to run.
    """
    table = read(source)
    if not source.as_is:
        _check_advice(source, table)
    if source.center and source.reference is not None:
        raise UserError(
            "--center makes each feature's mean the reference, so it cannot be combined with "
            "--reference; choose one of them"
        )
    preparation, table, X = source.preparation.fit_apply(table, clusters)
    if clusters > len(table.ids):
        raise UserError(
            f"-k is {clusters}, but the table has only {counted(len(table.ids), 'row')}"
        )
    job = Job(source, table, preparation, X, reference_of(source, preparation))
    console.note(*table.summary())
    return job


def read(source: SourceOptions) -> Table:
    """The table with its annotations; known classes and the batch are kept out of the features."""
    options = source.options.to_dict() | {"annotations": source.annotations}
    classes = tuple(source.labels or ())
    table = read_table(source.data, labels=classes, **options)
    batch = source.batch
    if batch is not None and batch not in (*classes, *table.annotations):  # a column of the table
        table = read_table(source.data, labels=(*classes, batch), **options)
    table.annotations |= {name: list(values) for name, values in table.labels.items()}
    return table


def _check_advice(source: SourceOptions, table: Table) -> None:
    """Refuse where the advice is certain; otherwise it becomes notes of the table."""
    kept_aside = {*(source.labels or ()), source.batch}
    suggestions = [
        one for one in table.advise(source.preparation).suggestions
        if not one.options.get("drop") or {*one.options["drop"]} - kept_aside
    ]  # fmt: skip
    certain = [one.reason for one in suggestions if one.certain]
    if certain:
        options = [one.typed() for one in suggestions if one.typed()]
        raise UserError(
            f"{source.data.name} should not be clustered as it is: {'; '.join(certain)}. Run: "
            f"{' '.join([typed_command(), *options])} (or add --as-is to cluster it anyway)"
        )
    for one in suggestions:
        typed = one.typed()
        table.notes.append(f"consider {typed}: {one.reason}" if typed else one.reason)


def reference_of(source: SourceOptions, preparation: Preparation) -> Any:
    """The reference asked for, after preparation."""
    if source.center:
        return 0.0
    word = (source.reference or "auto").strip()
    if word.lower() in ("auto", "min"):
        return word.lower()
    number = as_number(word)
    if number is not None:
        return preparation.reference(number)
    if not Path(word).is_file():
        raise UserError(f"--reference must be auto, min, a number, or a CSV file, not '{word}'")
    try:
        with open(word, newline="", encoding="utf-8-sig") as stream:
            given = {row[0]: as_number(row[1]) for row in list(csv.reader(stream))[1:] if row}
    except (ValueError, IndexError, OSError, csv.Error) as error:
        raise UserError(f"{word} must have a header and two columns, feature,value") from error
    for feature in preparation.features:
        if given.get(feature) is None:
            raise UserError(f"{word} gives no number for the feature {feature!r}")
    return preparation.reference(np.array([given[name] for name in preparation.features]))


def job_key(source: SourceOptions, **more: Any) -> dict[str, Any]:
    """What a result depends on, so that finished work is used for the same job only."""
    return more | {
        "files": [file_sum(path) for path in source.inputs],
        "reading": source.options.to_dict(),
        "preparation": source.preparation.typed(),
        "reference": source.reference,
    }


def file_sum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# --- its fit ----------------------------------------------------------------------------------


@dataclass
class Job:
    """A table ready to be clustered, and how its fit went."""

    source: SourceOptions
    table: Table  # the features that are used, in their own units
    preparation: Preparation
    X: Any  # the values as they are clustered
    reference: Any
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def fit(self, console: Console, model: Any) -> None:
        """Fit k-means, with progress where scikit-learn has callbacks."""
        if not hasattr(model, "set_callbacks"):
            with self.working(console, "fitting"):
                model.fit(self.X)
            return
        with self.working(console, "fitting", model.n_init) as step:
            model.set_callbacks(_Callback(step)).fit(self.X)
        model.set_callbacks()

    @contextmanager
    def working(self, console: Console, what: str, steps: int | None = None) -> Iterator[Step]:
        """Time the work and show its progress; warnings become notes."""
        begin = time.perf_counter()
        with (
            estimator_errors(),
            console.warnings_as_notes() as self.notes,
            console.progress(what, steps) as step,
        ):
            yield step
        self.seconds = time.perf_counter() - begin

    def results(self, console: Console, model: Any, **more: Any) -> Results:
        """The results of a fit to a table that was read whole; `more` goes into summary.json."""
        source, table = self.source, self.table
        fitted = FittedTable(
            self.X, model, ids=table.short_ids, features=table.features, labels=model.labels_,
            annotations=table.annotations, classes=[*(source.labels or ()), source.batch or ""],
        )  # fmt: skip
        with console.progress("judging the clusters", FOLDS) as step:
            fitted.judge(lambda done, total: step(f"fit {done}"))
        console.note(*fitted.batch_warnings)
        self.notes = [*fitted.batch_warnings, *table.notes, *self.notes]
        data = table.source | {
            "sha256": file_sum(source.data), "rows": table.shape[0], "features": table.shape[1],
            "missing_share": table.missing_share(), "id_column": table.id_name,
        }  # fmt: skip
        summary = self.summary(model, fitted.sizes, data, table.left_out)
        if table.annotations:
            summary["annotations"] = plain(fitted.agreement)
        return Results(self, fitted, summary | plain(more))

    def summary(
        self, model: Any, sizes: Any, data: dict[str, Any], left_out: list[tuple[str, str]]
    ) -> dict[str, Any]:
        """summary.json, however the table was read."""
        missingness = getattr(model, "missingness_", None)
        left_out_columns = [{"column": name, "reason": reason} for name, reason in left_out]
        return plain({
            "mnarkmeans": __version__,
            "command": typed_command(),
            "data": data | {"left_out": left_out_columns},
            "preparation": self.preparation.describe(),
            "n_clusters": len(model.cluster_centers_),
            "lam": model.lam_,
            "missingness": None if missingness is None else missingness.to_plain(),
            "inertia": model.inertia_,
            "n_iter": model.n_iter_,
            "cluster_sizes": sizes,
            "loss_path": model.loss_path_,
            "start_losses": model.start_losses_,
            "seconds": round(self.seconds, 3),
            "notes": self.notes,
        })  # fmt: skip


class _Callback:
    """Moves the progress on with every finished initialisation (scikit-learn 1.9 and newer)."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def setup(self, estimator: Any, context: Any) -> None: ...
    def teardown(self, estimator: Any, context: Any) -> None: ...
    def on_fit_task_begin(self, estimator: Any, context: Any, **kwargs: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, **kwargs: Any) -> None:
        if context.task_name == "start":
            self.step("initialisations")


# --- the results ------------------------------------------------------------------------------


def result_files(source: SourceOptions, *more: str) -> list[str]:
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

    job: Job
    fitted: FittedTable
    summary: dict[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)  # further sections of the report

    def write(
        self, folder: Path, output: FolderOptions | None = None, labels: Iterable[Any] | None = None
    ) -> None:
        """All files of a fit, into a folder that exists.

        output : title and map of the report
        labels : rows of labels.csv, where they are not those of the fitted table (read in blocks)
        """
        job, fitted = self.job, self.fitted
        model, table, preparation = fitted.model, job.table, job.preparation
        header, of_new_rows = ["id", "cluster", "distance"], {}
        if labels is None:
            columns = label_columns(table, fitted.labels, fitted.own_distance, fitted.confidence)
            header, labels = list(columns), zip(*columns.values(), strict=True)
            judged = fitted.verdict.to_dict()  # for the confidence of new rows
            of_new_rows = {name: judged[name] for name in ("noise", "odds")}
        write_csv(folder / "labels.csv", header, labels)
        centers = {"centers.csv": preparation.undo(model.cluster_centers_)}
        if _two_units(preparation):
            centers["centers_prepared.csv"] = model.cluster_centers_
        for name, rows in centers.items():
            lines = [[i, *(digits(v, DIGITS) for v in row)] for i, row in enumerate(rows.tolist())]
            write_csv(folder / name, ["cluster", *table.features], lines)
        markers = marker_columns(job, fitted)
        write_csv(folder / "markers.csv", markers, zip(*markers.values(), strict=True))
        if "annotations" in self.summary:
            counts = [
                [one["column"], group, cluster, count]
                for one in self.summary["annotations"]
                for cluster, row in enumerate(one["rows_by_cluster"])
                for group, count in zip(one["groups"], row, strict=True)
            ]
            header = ["annotation", "group", "cluster", "rows"]
            write_csv(folder / "annotations.csv", header, counts)
        page = self.page(output)
        self.summary["sure"] = page["sure"] | {"stability": page["stability"]}
        write_json(folder / "summary.json", self.summary)
        write_json(folder / "report.json", page, indent=None)
        (folder / "report.html").write_text(render(page), encoding="utf-8")
        extra = {
            "preparation": preparation.to_dict(), "prepared": preparation.describe(),
            "reading": table.remembered.to_dict(), "id_column": table.id_name,
            "command": self.summary["command"], **of_new_rows,
        }  # fmt: skip
        save_model(model, folder, feature_names=table.features, extra=extra)

    def page(self, output: FolderOptions | None) -> dict[str, Any]:
        """The numbers of the report."""
        job, model, summary = self.job, self.fitted.model, self.summary
        data = summary["data"]
        settings = {
            "Table": data.get("file"),
            "Clusters": summary["n_clusters"],
            "lam": model.lam if isinstance(model.lam, str) else lam_words(model.lam),
            "Reference": _reference_words(job, model),
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
            self.fitted,
            title=(output and output.title) or job.source.data.name,
            facts=facts | self.facts,
            embedding=output.embedding if output else "pca",
        )
        page["diagnosis"] = [in_options(line) for line in page["diagnosis"]]
        return plain(page)

    def print(self, console: Console, out: Path) -> None:
        """What was found, the verdict first, and where it is."""
        summary = self.summary
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
        console.say(f"written to {out}; open {out / 'report.html'}")
        console.result(summary | {"output": str(out)})


def print_agreement(console: Console, found: list[dict[str, Any]]) -> None:
    """A line for each annotation."""
    lines = []
    for one in found:
        value = "" if one["agreement"] is None else f"{one['agreement']:.2f}"
        lines.append([one["column"], one["measure"], value, f"{one['unknown']:,}"])
    header = ["annotation", "measure", "agreement", "rows unknown"]
    console.table("agreement with the clusters", header, lines)


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
    """A number with so many significant digits; None where there is none."""
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{count}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _reference_words(job: Job, model: Any) -> str:
    """The reference as it was asked for, and what auto has chosen."""
    if job.preparation.center:
        return "observed mean of each feature"
    if not isinstance(job.reference, str) or job.reference == "min":
        return str(job.source.reference)
    lowest = np.any(model.reference_)
    return f"auto: {'smallest observed value of each feature' if lowest else 'zero'}"
