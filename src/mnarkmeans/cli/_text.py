"""A text file becomes a frame.

Nothing is guessed in silence: the encoding must be UTF-8 (or UTF-16 with its mark) unless given;
the delimiter is the one that splits the first lines most evenly; every row must have as many
fields as the others, because a reader that pads short rows turns a damaged file into missing data.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._io import machine_memory, require
from .._validation import unnamed
from ._errors import UserError
from ._layout import DELIMITERS, TextLayout, find_layout
from ._lines import (
    LINE_END,
    LONGEST_LINE,
    Stream,
    after,
    blocks,
    single_blanks,
    without_blank_end,
    without_remarks,
)
from ._marks import SPELLINGS, is_sure_mark
from ._options import Rereading

BYTES_PER_FIELD = 24  # that reading takes at its peak: the numbers, their copy, some room
FIELDS_AT_ONCE = 1 << 21
Columns = dict[int, list[str]]


def read_text(
    path: Path, reading: Rereading, as_text: Callable[[str], bool]
) -> tuple[Any, TextLayout, Columns]:
    """Read a CSV or TSV file: a pandas frame, how the file is written, its columns of words.

    Columns of words, and those that are wanted `as_text` by their name (007 is a number, and a
    name), come as the text that they are; all others are floats.
    """
    layout = find_layout(path, reading)
    names = layout.header or unnamed(layout.n_fields)
    if layout.names_in_front:
        names = ["", *names]
    if names.count("") > 1:  # delimiters at the end of the lines
        names = [name or (f"V{j + 1}" if j else "") for j, name in enumerate(names)]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise UserError(f"{path} has more than one column called {repeated[0]!r}; rename them")
    text = {j for j, name in enumerate(names) if as_text(name)} | set(layout.words)
    texts, n_rows = check_rows(path, layout, sorted(text))
    _check_memory(path, n_rows * layout.n_fields * BYTES_PER_FIELD)
    values, surprises = _read(path, layout, reading.codes, text, n_rows)
    if surprises:
        found, _ = check_rows(path, layout, surprises)
        texts |= found
    return _framed(values, names, texts), layout, texts


def check_rows(path: Path, layout: TextLayout, wanted: list[int]) -> tuple[Columns, int]:
    """Refuse a file whose rows differ in length; the columns `wanted` as text, and the rows."""
    csv, arrow = require("pyarrow.csv", "cli"), require("pyarrow", "cli")
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    taken = [str(j) for j in wanted or [0]]
    try:
        table = csv.read_csv(
            _rows(path, layout),
            csv.ReadOptions(
                column_names=[str(j) for j in range(layout.n_fields)],
                use_threads=False,
                block_size=LONGEST_LINE,
            ),
            csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=layout.n_fields > 1,
                invalid_row_handler=refuse,
            ),
            csv.ConvertOptions(
                include_columns=taken, column_types=dict.fromkeys(taken, arrow.string())
            ),
        )
    except arrow.ArrowInvalid as error:
        if wrong:
            raise _wrong_length(path, layout, wrong[0]) from None
        raise UserError(f"{path} cannot be read as a table: {error}") from error
    return {j: table.column(str(j)).to_pylist() for j in wanted}, table.num_rows


def _rows(path: Path, layout: TextLayout) -> io.BufferedReader:
    """The rows below the header, as readers want them."""
    parts = after(blocks(path, layout.encoding), layout.lines_above)
    if layout.remark:
        parts = without_remarks(parts, layout.remark.encode())
    if layout.delimiter == " ":
        parts = map(single_blanks, parts)
    if layout.n_fields == 1:  # where a blank line is a gap, but none at the end
        parts = without_blank_end(parts)
    return io.BufferedReader(Stream(parts), LONGEST_LINE)


def _wrong_length(path: Path, layout: TextLayout, row: Any) -> UserError:
    return UserError(
        f"line {_line_number(path, layout, row)} of {path} has {row.actual_columns} fields where "
        f"{row.expected_columns} were expected "
        f"({DELIMITERS.get(layout.delimiter, layout.delimiter)}-separated); "
        "the file may be damaged or use another --delimiter"
    )


def _line_number(path: Path, layout: TextLayout, row: Any) -> int:
    """The line of a row; blank lines count, though they are not rows."""
    first = row.text.encode().splitlines()[0].strip()
    number, rows = layout.lines_above, 0
    for block in after(blocks(path, layout.encoding), layout.lines_above):
        for line in LINE_END.split(block)[:-1]:
            number += 1
            rows += bool(line.strip())
            text = single_blanks(line) if layout.delimiter == " " else line
            if rows >= row.number and text.strip() == first:
                return number
    return layout.lines_above + row.number


def _check_memory(path: Path, needed: float) -> None:
    there = machine_memory()
    if needed > there:
        raise UserError(
            f"{path} needs about {needed / 1e9:.0f} GB of memory to be read, and there are "
            f"{there / 1e9:.0f} GB; store the table as Parquet, which is read in blocks"
        )


def _read(
    path: Path, layout: TextLayout, codes: tuple[str, ...], text: set[int], n_rows: int
) -> tuple[np.ndarray, list[int]]:
    """Numbers (n, p) of the columns that are not text, and columns that hold words after all."""
    pandas = require("pandas", "cli")
    values = np.full((n_rows, layout.n_fields), np.nan)
    columns = [j for j in range(layout.n_fields) if j not in text]
    if not columns:
        return values, []
    words: set[int] = set()
    try:
        with pandas.read_csv(
            _rows(path, layout),
            sep=layout.delimiter,
            header=None,
            names=range(layout.n_fields),
            usecols=columns,
            index_col=False,
            decimal=layout.decimal,
            keep_default_na=False,
            na_values=[*SPELLINGS, *codes],
            skipinitialspace=True,
            skip_blank_lines=layout.n_fields > 1,
            low_memory=False,
            **_exact_numbers(pandas),
            chunksize=max(1, FIELDS_AT_ONCE // layout.n_fields),  # bounds the parser's memory
        ) as chunks:
            done = 0
            for chunk in chunks:
                numeric = [k for k, kind in enumerate(chunk.dtypes) if kind.kind in "fiu"]
                words |= set(columns) - {columns[k] for k in numeric}
                place = [columns[k] for k in numeric]
                values[done : done + len(chunk), place] = chunk.iloc[:, numeric].to_numpy(float)
                done += len(chunk)
    except pandas.errors.ParserError as error:
        raise UserError(f"{path} cannot be read as a table: {error}") from error
    if done != n_rows:
        raise UserError(f"{path} cannot be read as a table: a quote is opened and never closed")
    return values, sorted(words)


def _exact_numbers(pandas: Any) -> dict[str, Any]:
    """The parser of pandas before 3.1 may miss the last bit; newer ones must not be told."""
    version = tuple(map(int, pandas.__version__.split(".")[:2]))
    return {"float_precision": "round_trip"} if version < (3, 1) else {}


def _framed(values: np.ndarray, names: list[str], texts: Columns) -> Any:
    """Numbers and words as one frame; words for missing are gaps."""
    pandas = require("pandas", "cli")
    frame = pandas.DataFrame(values, columns=names, copy=False)
    for j, column in texts.items():
        found = [None if is_sure_mark(text) else text for text in column]
        frame.isetitem(j, pandas.Series(found, dtype=object))
    return frame
