"""A table, how it is read and how it is prepared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .panels import of_model, of_preparing, of_reading

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV (also .gz), .xlsx, .parquet (or a folder), .npy, .npz, .h5ad, .zarr.",
    ),
]


def parse_decimal(text: str) -> str:
    """A point or a comma."""
    found = {"point": ".", "comma": ","}.get(text.strip().lower(), text.strip())
    if found not in (".", ","):
        raise typer.BadParameter(f"must be . or , and not {text!r}")
    return found


@dataclass(frozen=True)
class Rereading:
    """How a table is read whose columns a model knows; the fitted one is read the same way."""

    missing_codes: Annotated[
        list[str] | None,
        of_reading(
            "--missing-value",
            metavar="CODE",
            help="Another code for missing, such as 0 or -99; may be repeated. Empty, NA, n.d., -, "
            "?, <LOD, <0.5 and other marks of laboratories always are.",
        ),
    ] = None
    id_column: Annotated[
        str | None,
        of_reading("--id-column", metavar="NAME", help="Column that names the rows (else found)."),
    ] = None
    transpose: Annotated[
        bool, of_reading("--transpose", help="Features are in rows, samples in columns.")
    ] = False
    decimal: Annotated[
        str | None,
        of_reading(
            "--decimal",
            metavar=". or ,",
            parser=parse_decimal,
            help="Decimal sign of a text file, or of text in a sheet (else found).",
        ),
    ] = None
    encoding: Annotated[
        str | None, of_reading("--encoding", help="Encoding of a text file that is not UTF-8.")
    ] = None
    delimiter: Annotated[
        str | None,
        of_reading("--delimiter", help="What separates the columns of a text file (else found)."),
    ] = None
    header: Annotated[
        bool | None,
        of_reading(
            "--header/--no-header", help="Whether the first line names the columns (else found)."
        ),
    ] = None
    sheet: Annotated[
        str | None,
        of_reading(
            "--sheet",
            metavar="NAME|NUMBER",
            help="Sheet of an .xlsx file (else the first that holds a table).",
        ),
    ] = None
    layer: Annotated[
        str | None, of_reading("--layer", help="Layer of an .h5ad file to use in place of X.")
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
        of_reading(
            "--columns",
            metavar="PATTERN",
            help="Use only columns like this, for example 'LFQ intensity *'; may be repeated.",
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        of_reading("--drop", metavar="PATTERN", help="Leave such columns out; may be repeated."),
    ] = None
    drop_rows: Annotated[
        list[str] | None,
        of_reading(
            "--drop-rows",
            metavar="COLUMN=VALUE",
            help="Leave out the rows of the file that have this value there, for example "
            "'Reverse=+'; may be repeated.",
        ),
    ] = None


# --- preparing --------------------------------------------------------------------------------


class Scale(StrEnum):
    """What a feature is divided by."""

    none = "none"
    std = "std"
    maxabs = "maxabs"


class Normalize(StrEnum):
    """What every row is brought to the same size of, over its observed entries."""

    none = "none"
    median = "median"
    total = "total"


Reference = Annotated[
    str | None,
    of_model(
        "--reference",
        metavar="auto|min|NUMBER|FILE",
        help="The value near which data go missing: auto (if nothing is given: zero or min, "
        "whichever explains the gaps), min (each feature's least value), a number in the table's "
        "units, or a CSV file with columns feature,value.",
    ),
]


@dataclass(frozen=True)
class Steps:
    """What is done to a table before it is clustered."""

    max_missing: Annotated[
        float | None,
        of_preparing(
            "--max-missing",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Drop features with more gaps, for example 0.8.",
        ),
    ] = None
    normalize: Annotated[
        Normalize,
        of_preparing(
            "--normalize",
            help="Bring every row to the same median or total of its observed entries, before the "
            "logarithm.",
        ),
    ] = Normalize.none
    log2: Annotated[
        bool,
        of_preparing(
            "--log2", help="Use log2(x), for intensities. Zero has no logarithm and becomes a gap."
        ),
    ] = False
    log1p: Annotated[
        bool,
        of_preparing(
            "--log1p", help="Use log(1 + x). The reference is carried along: zero stays zero."
        ),
    ] = False
    scale: Annotated[
        Scale,
        of_preparing(
            "--scale",
            help="Divide each feature by its observed spread or largest size. The reference is "
            "carried along: zero stays zero.",
        ),
    ] = Scale.none
    center: Annotated[
        bool,
        of_preparing(
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
    annotations: Annotated[
        Path | None,
        of_reading(
            "--annotations",
            metavar="FILE",
            help="What else is known of the rows (batch, group, time): a table with their names. "
            "It takes no part in the clustering and is compared with the clusters.",
        ),
    ] = None

    @property
    def reference_file(self) -> Path | None:
        """The file with a reference for every feature; None if it is a word or a number."""
        named = Path(self.steps.reference) if self.steps.reference else None
        return named if named is not None and named.is_file() else None

    @property
    def inputs(self) -> list[Path]:
        """The files that are read."""
        files = self.data, self.reference_file, self.annotations
        return [path for path in files if path is not None]
