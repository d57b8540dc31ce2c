"""The options, each described once, in groups that several verbs take.

A verb takes dataclasses; their fields are its arguments and options:

    @verb("predict result new.csv -o labels.csv")
    def predict(use: ModelOptions) -> None: ...  # mnarkmeans predict MODEL DATA --missing-value ...
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property, partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from ..tables import Preparation, ReadOptions
from ._console import Console


def option(default: Any, help: str, *names: str, panel: str = "Options", **more: Any) -> Any:
    """A field of a group; without names it is called after the field. MISSING: it is required."""
    if default is False:
        more["metavar"] = ""  # a flag takes no value
    described = typer.Option(*names, help=help, rich_help_panel=panel, **more)
    return field(default=default, metadata={"typer": described})


def argument(metavar: str, help: str) -> Any:
    """A field of a group that has a place instead of a name."""
    return field(metadata={"typer": typer.Argument(metavar=metavar, help=help)})


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with every parameter, a dataclass, replaced by the fields of that class."""
    groups = get_type_hints(verb)
    groups.pop("return", None)
    flat = []
    for kind in groups.values():
        hints = get_type_hints(kind)
        for f in fields(kind):
            default = Parameter.empty if f.default is MISSING else f.default
            hint: Any = Annotated[hints[f.name], f.metadata["typer"]]
            more = {"default": default, "annotation": hint}
            flat.append(Parameter(f.name, Parameter.KEYWORD_ONLY, **more))

    def command(**options: Any) -> None:
        verb(**{
            name: kind(**{f.name: options[f.name] for f in fields(kind)})
            for name, kind in groups.items()
        })  # fmt: skip

    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in flat}
    return command


# --- how values are written -------------------------------------------------------------------


def parse_clusters(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"must be a whole number of at least 1, such as 4, not {text!r}")
    return int(text)


def parse_cluster_range(text: str) -> list[int]:
    """'4', '2,3,5' or '2:8' (both ends included)."""
    if ends := re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", text):
        numbers = list(range(int(ends[1]), int(ends[2]) + 1))
    else:
        words = map(str.strip, text.split(","))
        numbers = sorted({int(word) if word.isdecimal() else 0 for word in words})
    if not numbers or numbers[0] < 1:
        raise typer.BadParameter(
            f"must be a number such as 4, a list such as 2,3,5 or a range such as 2:8, not {text!r}"
        )
    return numbers


def parse_lam(text: str) -> float | str:
    """'auto' or a number of at least 0."""
    if text.strip().lower() == "auto":
        return "auto"
    number = as_number(text)
    if number is None or not 0 <= number < math.inf:
        raise typer.BadParameter(f"must be auto or a number of at least 0, not {text!r}")
    return number


def parse_lams(text: str) -> list[float | str] | str:
    """'auto' or numbers of at least 0, separated by commas."""
    lams = [parse_lam(word) for word in text.split(",")]
    if "auto" in lams and len(lams) > 1:
        raise typer.BadParameter(f"must be auto or numbers of at least 0, not {text!r}")
    return "auto" if lams == ["auto"] else lams


def as_number(text: str) -> float | None:
    """The number a text stands for, or None."""
    try:
        return float(text)
    except ValueError:
        return None


# --- the groups -------------------------------------------------------------------------------
# fmt: off

_reading = partial(option, panel="Reading the table")
_preparing = partial(option, panel="Preparing the values")
_model = partial(option, panel="Model")
_output = partial(option, panel="Output")
_data = partial(
    argument, "DATA", "The table: CSV or TSV (also .gz), .xlsx, .parquet (or a folder of them), "
    ".npy, .npz, .h5ad, .zarr.")


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    missing_value: list[str] | None = _reading(
        None, "A further code for missing values, such as 0 or -99; may be repeated. Empty cells, "
        "NA, n.d., -, <LOD and similar marks are always missing.", metavar="CODE")
    id_column: str | None = _reading(
        None, "Column with the names of the rows. Default: detected.", metavar="NAME")
    transpose: bool = _reading(False, "Rows are features and columns are samples.", "--transpose")
    decimal: str | None = _reading(
        None, "Decimal sign of a text file, or of text in a sheet. Default: detected.",
        metavar=". or ,")
    encoding: str | None = _reading(None, "Encoding of a text file that is not UTF-8.")
    delimiter: str | None = _reading(
        None, "Column separator of a text file. Default: detected.")
    header: bool | None = _reading(
        None, "Whether the first line holds the column names. Default: detected.",
        "--header/--no-header", metavar="")
    sheet: str | None = _reading(
        None, "Sheet of an .xlsx file. Default: the first with a table.", metavar="NAME|NUMBER")
    layer: str | None = _reading(None, "Layer of an .h5ad or .zarr file to use instead of X.")
    annotations: Path | None = _reading(
        None, "A table with further information about the rows (batch, group, time). It is not "
        "used in the clustering, only compared with the clusters.", metavar="FILE")

    @property
    def options(self) -> ReadOptions:
        """As `mnarkmeans.tables` takes them."""
        return ReadOptions.from_dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class SourceOptions(ReadingOptions):
    """A table, which rows and columns take part, how it is read and how it is prepared."""

    max_missing: float | None = _preparing(
        None, "Leave out features with a larger share of missing values, for example 0.8.",
        metavar="SHARE", min=0.0, max=1.0)
    normalize: Literal["none", "median", "total"] = _preparing(
        "none", "Scale every row to the same median or total of its observed values, before the "
        "logarithm.")
    log2: bool = _preparing(
        False, "Take log2(x), as for intensities. Zeros become missing values.", "--log2")
    log1p: bool = _preparing(False, "Take log(1 + x), as for counts.", "--log1p")
    scale: Literal["none", "std", "maxabs"] = _preparing(
        "none", "Divide each feature by its standard deviation or its largest magnitude.")
    center: bool = _preparing(
        False, "Subtract each feature's mean, and make that mean the reference. Use only if values "
        "near the mean are the ones that go missing.", "--center")
    center_rows: bool = _preparing(
        False, "Subtract each row's mean: cluster rows, such as proteins, by profile instead of "
        "level.", "--center-rows")
    zscore_rows: bool = _preparing(
        False, "Subtract each row's mean and divide by its standard deviation.", "--zscore-rows")
    batch: str | None = _preparing(
        None, "Subtract an estimated shift per batch and feature; batches are a column of the "
        "table or of --annotations.", metavar="COLUMN")
    data: Path = _data()
    columns: list[str] | None = _reading(
        None, 'Use only matching columns, for example "LFQ intensity *"; may be repeated.',
        metavar="PATTERN")
    drop: list[str] | None = _reading(
        None, "Leave out matching columns; may be repeated.", metavar="PATTERN")
    drop_rows: list[str] | None = _reading(
        None, 'Leave out rows with this value in this column, such as "Reverse=+"; may be '
        "repeated.", metavar="COLUMN=VALUE")
    labels: list[str] | None = _reading(
        None, "Column of known classes, of the table or of --annotations: kept out of the "
        "clustering and compared with the clusters; may be repeated.", metavar="COLUMN")
    as_is: bool = _reading(
        False, "Cluster the table as it is, even if it would otherwise be refused.", "--as-is")
    reference: str | None = _model(
        None, "The value near which values go missing: auto (the default: zero or min, chosen from "
        "the data), min (each feature's smallest value, a detection limit), a number in the units "
        "of the table, or a CSV file with columns feature and value.",
        metavar="auto|min|NUMBER|FILE")

    @property
    def preparation(self) -> Preparation:
        """As `mnarkmeans.tables` takes it."""
        steps = [f.name for f in fields(Preparation) if not f.metadata]
        return Preparation(**{name: getattr(self, name) for name in steps})

    @property
    def inputs(self) -> list[Path]:
        """The files that are read: the table, a file of references, annotations."""
        files = [self.data, *([self.annotations] if self.annotations else [])]
        reference = Path(self.reference or "auto")
        return [*files, reference] if reference.is_file() else files


STARTS = "Number of random starts; the best result is kept."
SEED = "Random seed: the same seed gives the same result."
JOBS = "Number of threads. Default: all cores, at most OMP_NUM_THREADS."


@dataclass(frozen=True, kw_only=True)
class FittingOptions:
    """One model: the parameters of MNARKMeans."""

    n_clusters: int = _model(
        MISSING, "Number of clusters.", "-k", "--clusters", metavar="K", parser=parse_clusters)
    lam: Any = _model(
        "auto", "How strongly missing values pull the centres towards the reference; auto "
        "chooses it from the data.", metavar="auto|NUMBER", parser=parse_lam)
    n_init: int = _model(20, STARTS, "--starts", min=1)
    max_iter: int = _model(300, "Maximum number of iterations per start.", min=1)
    random_state: int = _model(0, SEED, "--seed", min=0)
    n_jobs: int | None = _model(None, JOBS, "--jobs", min=1)


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The choice of a model: the parameters of MNARKMeansCV."""

    n_clusters: Any = _model(
        MISSING, "Numbers of clusters to try: 4, 2,3,5 or 2:8.", "-k", "--clusters", metavar="K",
        parser=parse_cluster_range)
    lams: Any = _model(
        "auto", "Penalties to try, such as 0,0.1,1.", metavar="auto|LIST", parser=parse_lams)
    criterion: Literal["score", "paper"] = _model(
        "score", "How candidates for lam are compared; paper: by instability, as in Guan (2026).")
    n_splits: int | None = _model(None, "Number of splits of the rows.", "--splits", min=2)
    n_init: int = _model(10, STARTS, "--starts", min=1)
    random_state: int = _model(0, SEED, "--seed", min=0)
    n_jobs: int | None = _model(None, JOBS, "--jobs", min=1)


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    quiet: bool = _output(False, "Print nothing except errors.", "-q", "--quiet")
    as_json: bool = _output(False, "Print one JSON object and nothing else.", "--json")

    @cached_property
    def console(self) -> Console:
        return Console(self.quiet, self.as_json)


@dataclass(frozen=True, kw_only=True)
class OutputOptions(ConsoleOptions):
    force: bool = _output(False, "Replace existing files.", "--force")


@dataclass(frozen=True, kw_only=True)
class OptionalFolderOptions(OutputOptions):
    out: Path | None = _output(None, "Folder to write to.", "-o", "--output", metavar="OUT")


@dataclass(frozen=True, kw_only=True)
class ResultOptions(OptionalFolderOptions):
    """A folder for the results of a fit, and their report."""

    embedding: Literal["pca", "umap"] = _output(
        "pca", "How the rows are placed in the picture of the report.")
    title: str | None = _output(None, "Title of the report.")


@dataclass(frozen=True, kw_only=True)
class FolderOptions(ResultOptions):
    out: Path = _output(MISSING, "Folder to write to.", "-o", "--output", metavar="OUT")


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ReadingOptions, OutputOptions):
    """A model and a new table, read as the model's own was unless options say otherwise."""

    model: Path = argument("MODEL", "A folder written by fit or select.")
    data: Path = _data()
    out: Path = _output(
        MISSING, "File to write: .csv, .tsv, .txt (also .gz) or .parquet.", "-o", "--output",
        metavar="FILE")
