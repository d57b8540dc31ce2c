"""The options of the verbs, each described once, in the groups in which they travel.

Reading    how a table is read            Fitting, Searching   what is fitted
Steps      how it is prepared             Page                 how the report looks
Source     a table, read and prepared     Output...            where to, and what may be replaced
                                          Telling              what is said on the way
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer


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


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rereading:
    """How a table is read whose columns a model knows; the fitted one is read the same way."""

    missing_codes: Annotated[
        list[str] | None,
        _read(
            "--missing-value",
            metavar="CODE",
            help="Another code for missing, such as 0 or n.d.; may be repeated. Empty, NA, NaN and "
            "Filtered always are.",
        ),
    ] = None
    id_column: Annotated[
        str | None,
        _read("--id-column", metavar="NAME", help="Column that names the rows (else found)."),
    ] = None
    transpose: Annotated[
        bool, _read("--transpose", help="Features are in rows, samples in columns.")
    ] = False
    encoding: Annotated[
        str | None, _read("--encoding", help="Encoding of a text file that is not UTF-8.")
    ] = None
    delimiter: Annotated[
        str | None,
        _read("--delimiter", help="What separates the columns of a text file (else found)."),
    ] = None
    header: Annotated[
        bool | None,
        _read(
            "--header/--no-header", help="Whether the first line names the columns (else found)."
        ),
    ] = None
    layer: Annotated[
        str | None, _read("--layer", help="Layer of an .h5ad file to use in place of X.")
    ] = None

    @property
    def codes(self) -> tuple[str, ...]:
        """All codes for missing that were given."""
        return tuple(self.missing_codes or ())


@dataclass(frozen=True)
class Reading(Rereading):
    """How a table is read; stored in the model so that new tables are read the same way."""

    columns: Annotated[
        list[str] | None,
        _read(
            "--columns",
            metavar="PATTERN",
            help="Use only columns like this, for example 'LFQ intensity *'; may be repeated.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        _read("--drop", metavar="PATTERN", help="Leave such columns out; may be repeated."),
    ] = None


# --- preparing --------------------------------------------------------------------------------


class Scale(StrEnum):
    """What a feature is divided by."""

    none = "none"
    std = "std"
    maxabs = "maxabs"


Reference = Annotated[
    str | None,
    _model(
        "--reference",
        metavar="NUMBER|min|FILE",
        help="The value near which data go missing, in the table's units: a number (0 if not "
        "given), min (each feature's least value), or a CSV file with columns feature,value.",
    ),
]


@dataclass(frozen=True)
class Steps:
    """What is done to a table before it is clustered."""

    max_missing: Annotated[
        float | None,
        _prepare(
            "--max-missing",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Drop features with more gaps, for example 0.8.",
        ),
    ] = None
    log1p: Annotated[
        bool,
        _prepare(
            "--log1p", help="Use log(1 + x). The reference is carried along: zero stays zero."
        ),
    ] = False
    scale: Annotated[
        Scale,
        _prepare(
            "--scale",
            help="Divide each feature by its observed spread or largest size. The reference is "
            "carried along: zero stays zero.",
        ),
    ] = Scale.none
    center: Annotated[
        bool,
        _prepare(
            "--center",
            help="Subtract each feature's observed mean and make that mean the reference. Only if "
            "values near the mean are the ones that go missing.",
        ),
    ] = False
    reference: Reference = None


@dataclass(frozen=True)
class Source:
    """A table, how it is read and how it is prepared."""

    data: Data
    reading: Reading
    steps: Steps

    @property
    def inputs(self) -> list[Path]:
        """The files that are read."""
        return [self.data, *([Path(self.steps.reference)] if self.steps.reference else [])]


# --- the model --------------------------------------------------------------------------------


def parse_lam(text: str) -> float | str:
    """'auto' or a number >= 0."""
    if text.strip().lower() == "auto":
        return "auto"
    value = as_number(text)
    if value is None or not value >= 0 or math.isinf(value):
        raise typer.BadParameter(f"must be auto or a number of at least 0, not {text!r}")
    return value


def parse_lams(text: str) -> list[float] | str:
    """'auto' or numbers with commas between them."""
    if text.strip().lower() == "auto":
        return "auto"
    found = []
    for part in text.split(","):
        value = as_number(part)
        if value is None or not value >= 0 or math.isinf(value):
            raise typer.BadParameter(f"must be auto or numbers such as 0,0.1,1, but one is {part!r}")
        found.append(value)
    return found


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
        raise typer.BadParameter(
            f"must be a number such as 4, a list 2,3,5 or a range 2:8, not {text!r}"
        )
    return numbers


def as_number(text: str) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text)
    except ValueError:
        return None


class Criterion(StrEnum):
    """How candidates are judged; the words of MNARKMeansCV."""

    heldout = "heldout"
    consensus = "consensus"
    subsample = "subsample"
    paper = "paper"


Clusters = Annotated[int, _model("-k", "--clusters", min=1, help="Number of clusters.")]
Starts = Annotated[int, _model("--starts", min=1, help="Number of starts; the best one is kept.")]
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


@dataclass(frozen=True)
class Fitting:
    """One model."""

    clusters: Clusters
    lam: Annotated[
        Any,
        _model(
            "--lam",
            metavar="auto|NUMBER",
            parser=parse_lam,
            help="Penalty of the gaps; auto estimates it from the data.",
        ),
    ] = "auto"
    starts: Starts = 20
    max_iter: Annotated[int, _model("--max-iter", min=1, help="Most iterations of a start.")] = 300
    seed: Seed = 0
    jobs: Jobs = None

    def params(self) -> dict[str, Any]:
        """Parameters of MNARKMeans."""
        return {
            "n_clusters": self.clusters,
            "lam": self.lam,
            "n_init": self.starts,
            "max_iter": self.max_iter,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }


@dataclass(frozen=True)
class Searching:
    """The choice of a model."""

    clusters: Annotated[
        Any,
        _model(
            "-k",
            "--clusters",
            metavar="K",
            parser=parse_clusters,
            help="Numbers of clusters: 4, 2,3,5 or 2:8.",
        ),
    ]
    lams: Annotated[
        Any,
        _model(
            "--lams", metavar="auto|LIST", parser=parse_lams, help="Candidates, such as 0,0.1,1,10."
        ),
    ] = "auto"
    criterion: Annotated[
        Criterion, _model("--criterion", help="How candidates are judged.")
    ] = Criterion.heldout
    splits: Annotated[
        int | None, _model("--splits", min=2, help="Number of splits of the rows.")
    ] = None
    starts: Starts = 10
    seed: Seed = 0
    jobs: Jobs = None

    def params(self) -> dict[str, Any]:
        """Parameters of MNARKMeansCV."""
        return {
            "n_clusters": self.clusters,
            "lams": self.lams,
            "criterion": str(self.criterion),
            "n_splits": self.splits,
            "n_init": self.starts,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }


# --- output -----------------------------------------------------------------------------------

_folder = partial(_out, "-o", "--output", metavar="OUT", help="Folder to write to.")
Out = Annotated[Path, _folder()]
Force = Annotated[bool, _out("--force", help="Replace files that exist.")]
Safe = Annotated[
    bool,
    _out(
        "--spreadsheet-safe",
        help="Put an apostrophe before names that a spreadsheet would take for formulas (= + - @).",
    ),
]


@dataclass(frozen=True)
class Output:
    """A folder to write to."""

    out: Out
    force: Force = False
    safe: Safe = False


@dataclass(frozen=True)
class OptionalOutput:
    """A folder to write to, if anything is to be written."""

    out: Annotated[Path | None, _folder()] = None
    force: Force = False
    safe: Safe = False


@dataclass(frozen=True)
class OutputFile:
    """A file to write."""

    out: Annotated[
        Path,
        _out(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: .csv, .tsv (also .gz), .parquet or .npy.",
        ),
    ]
    force: Force = False
    safe: Safe = False


class Picture(StrEnum):
    """How the rows are laid out in the plane."""

    pca = "pca"
    umap = "umap"


Title = Annotated[str | None, _out("--title", help="Heading of the report.")]


@dataclass(frozen=True)
class Page:
    """How the report looks."""

    embedding: Annotated[
        Picture, _out("--embedding", help="Picture of the rows in the report.")
    ] = Picture.pca
    title: Title = None


@dataclass(frozen=True)
class Telling:
    """What is said on the way."""

    quiet: Annotated[bool, _out("-q", "--quiet", help="Tell nothing but errors.")] = False
    as_json: Annotated[
        bool, _out("--json", help="Print one JSON object and nothing else.")
    ] = False
