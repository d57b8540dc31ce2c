"""Where to, what may be replaced, how the report looks, and what is said on the way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from .panels import of_out

_folder = partial(of_out, "-o", "--output", metavar="OUT", help="Folder to write to.")
Out = Annotated[Path, _folder()]
Force = Annotated[bool, of_out("--force", help="Replace files that exist.")]
Safe = Annotated[
    bool,
    of_out(
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
class FitOutput(Output):
    """A folder to write to, and a copy of the input that has the labels."""

    h5ad: Annotated[
        Path | None,
        of_out(
            "--write-h5ad",
            metavar="FILE",
            help="Also write a copy of the .h5ad input with labels, confidence and centres in it.",
        ),
    ] = None


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
        of_out(
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


Title = Annotated[str | None, of_out("--title", help="Heading of the report.")]


@dataclass(frozen=True)
class Page:
    """How the report looks."""

    embedding: Annotated[
        Picture, of_out("--embedding", help="Picture of the rows in the report.")
    ] = Picture.pca
    title: Title = None


@dataclass(frozen=True)
class Telling:
    """What is said on the way."""

    quiet: Annotated[bool, of_out("-q", "--quiet", help="Tell nothing but errors.")] = False
    as_json: Annotated[bool, of_out("--json", help="Print one JSON object and nothing else.")] = (
        False
    )
