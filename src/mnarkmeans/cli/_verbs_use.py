"""The verbs that begin with a model, a folder or nothing at all; the work is elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as opt
from ._app import app
from ._console import Console
from ._job import Reading


@app.command(epilog="Example: [bold]mnarkmeans predict result/ new.csv -o labels.csv[/bold]")
def predict(
    model: opt.Model,
    data: opt.Data,
    output: opt.OutFile,
    missing_value: opt.MissingValue = None,
    id_column: opt.IdColumn = None,
    transpose: opt.Transpose = False,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    layer: opt.Layer = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Label the rows of a new table, prepared as the model's own was."""
    from ._use import predict as work

    given = Reading.of(
        missing_value, None, None, id_column=id_column, transpose=transpose, encoding=encoding,
        delimiter=delimiter, header=header, layer=layer,
    )  # fmt: skip
    work(Console(quiet=quiet, as_json=as_json), model, data, output, given, force)


@app.command(epilog="Example: [bold]mnarkmeans impute result/ new.csv -o filled.csv[/bold]")
def impute(
    model: opt.Model,
    data: opt.Data,
    output: opt.OutFile,
    missing_value: opt.MissingValue = None,
    id_column: opt.IdColumn = None,
    transpose: opt.Transpose = False,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    layer: opt.Layer = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Fill the gaps of a table from the centres, in the table's own units."""
    from ._use import impute as work

    given = Reading.of(
        missing_value, None, None, id_column=id_column, transpose=transpose, encoding=encoding,
        delimiter=delimiter, header=header, layer=layer,
    )  # fmt: skip
    work(Console(quiet=quiet, as_json=as_json), model, data, output, given, force)


@app.command(epilog="Example: [bold]mnarkmeans report result/ --title 'Plasma proteome'[/bold]")
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="OUT", help="A folder written by fit or select.")
    ],
    title: opt.Title = None,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Draw report.html again, from the numbers stored beside it."""
    from ._report import report as work

    work(Console(quiet=quiet, as_json=as_json), folder, title)


@app.command()
def demo(
    output: opt.Out = Path("mnarkmeans-demo"),
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """The whole job on built-in data, in under a minute; begin here."""
    from ._demo import demo as work

    work(Console(quiet=quiet, as_json=as_json), output, force)


@app.command(epilog="Example: [bold]mnarkmeans reproduce table1 --repetitions 5 -o paper/[/bold]")
def reproduce(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME|all", help="figure1 to figure7, table1 to table3.")
    ],
    repetitions: Annotated[
        int | None, typer.Option("--repetitions", min=1, help="Instead of the paper's number.")
    ] = None,
    output: opt.Out = Path("reproduction"),
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Number of processes.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, for a look.")] = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Compute the paper's figures and tables again; an interrupted run goes on where it stopped."""
    from ._reproduce import reproduce as work

    work(Console(quiet=quiet, as_json=as_json), names, repetitions, jobs, output, quick)
