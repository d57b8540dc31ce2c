"""The options that several verbs share, each described once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ._errors import UserError


def _panel(name: str) -> Callable[..., Any]:
    """Options shown together under this heading in --help."""
    return partial(typer.Option, rich_help_panel=name)


_read, _prepare = _panel("Reading the table"), _panel("Preparing it")
_model, _out = _panel("The model"), _panel("Output")

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV (also .gz), .parquet (or a folder of them), .npy, .npz, .h5ad, .zarr.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder written by fit or select.")]

MissingValue = Annotated[
    list[str] | None,
    _read(
        "--missing-value",
        metavar="CODE",
        help="Another code for missing, such as 0 or n.d.; may be repeated. Empty, NA, NaN and "
        "Filtered always are.",
    ),
]
IdColumn = Annotated[
    str | None,
    _read("--id-column", metavar="NAME", help="Column that names the rows (else found)."),
]
Columns = Annotated[
    list[str] | None,
    _read(
        "--columns",
        metavar="PATTERN",
        help="Use only columns like this, for example 'LFQ intensity *'; may be repeated.",
    ),
]
Drop = Annotated[
    list[str] | None,
    _read("--drop", metavar="PATTERN", help="Leave such columns out; may be repeated."),
]
Transpose = Annotated[bool, _read("--transpose", help="Features are in rows, samples in columns.")]
Encoding = Annotated[
    str | None, _read("--encoding", help="Encoding of a text file that is not UTF-8.")
]
Delimiter = Annotated[
    str | None, _read("--delimiter", help="What separates the columns of a text file (else found).")
]
Header = Annotated[
    bool | None,
    _read("--header/--no-header", help="Whether the first line names the columns (else found)."),
]
Layer = Annotated[str | None, _read("--layer", help="Layer of an .h5ad file to use in place of X.")]

MaxMissing = Annotated[
    float | None,
    _prepare(
        "--max-missing", metavar="SHARE", help="Drop features with more gaps, for example 0.8."
    ),
]
Log1p = Annotated[
    bool,
    _prepare("--log1p", help="Use log(1 + x). The reference is carried along: zero stays zero."),
]
Scale = Annotated[
    str,
    _prepare(
        "--scale",
        metavar="none|std|maxabs",
        help="Divide each feature by its observed spread or largest size. The reference is "
        "carried along: zero stays zero.",
    ),
]
Center = Annotated[
    bool,
    _prepare(
        "--center",
        help="Subtract each feature's observed mean and make that mean the reference. Only if "
        "values near the mean are the ones that go missing.",
    ),
]

Clusters = Annotated[int, _model("-k", "--clusters", help="Number of clusters.")]
ClusterRange = Annotated[
    str, _model("-k", "--clusters", metavar="K", help="Numbers of clusters: 4, 2,3,5 or 2:8.")
]
Lam = Annotated[
    str,
    _model(
        "--lam",
        metavar="auto|NUMBER",
        help="Penalty of the gaps; auto estimates it from the data.",
    ),
]
Reference = Annotated[
    str | None,
    _model(
        "--reference",
        metavar="NUMBER|min|FILE",
        help="The value near which data go missing, in the table's units: a number (0 if not "
        "given), min (each feature's least value), or a CSV file with columns feature,value.",
    ),
]
Starts = Annotated[int, _model("--starts", min=1, help="Number of starts; the best one is kept.")]
MaxIter = Annotated[int, _model("--max-iter", min=1, help="Most iterations of a start.")]
Seed = Annotated[int, _model("--seed", min=0, help="The same seed gives the same result.")]
Jobs = Annotated[int | None, _model("--jobs", min=1, help="Number of threads (else all cores).")]

Scheduler = Annotated[
    str | None,
    _model(
        "--scheduler",
        metavar="ADDRESS",
        help="A running Dask cluster to fit on, such as tcp://host:8786; its workers must see the "
        "table under the same path.",
    ),
]

_folder = partial(_out, "-o", "--output", metavar="OUT", help="Folder to write to.")
Out = Annotated[Path, _folder()]
OptionalOut = Annotated[Path | None, _folder()]
OutFile = Annotated[
    Path,
    _out(
        "-o",
        "--output",
        metavar="FILE",
        help="File to write: .csv, .tsv (also .gz), .parquet or .npy.",
    ),
]
Force = Annotated[bool, _out("--force", help="Replace files that exist.")]
Quiet = Annotated[bool, _out("-q", "--quiet", help="Tell nothing but errors.")]
AsJson = Annotated[bool, _out("--json", help="Print one JSON object and nothing else.")]
Picture = Annotated[
    str, _out("--embedding", metavar="pca|umap", help="Picture of the rows in the report.")
]
Title = Annotated[str | None, _out("--title", help="Heading of the report.")]


def parse_lam(text: str) -> float | str:
    """'auto' or a number >= 0."""
    if text.strip().lower() == "auto":
        return "auto"
    value = _number(text)
    if value is None or not value >= 0 or math.isinf(value):
        raise UserError(f"--lam must be auto or a number of at least 0, not {text!r}")
    return value


def parse_lams(text: str) -> list[float] | str:
    """'auto' or numbers with commas between them."""
    if text.strip().lower() == "auto":
        return "auto"
    return [_as_lam(part) for part in text.split(",")]


def _as_lam(part: str) -> float:
    value = _number(part)
    if value is None or not value >= 0 or math.isinf(value):
        raise UserError(f"--lams must be auto or numbers such as 0,0.1,1, but one is {part!r}")
    return value


def parse_clusters(text: str) -> list[int]:
    """'4', '2,3,5' or '2:8' (both ends included)."""
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            numbers = list(range(first, last + 1))
        else:
            numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise UserError(f"-k must be a number such as 4, a list 2,3,5 or a range 2:8, not {text!r}")
    return numbers


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
