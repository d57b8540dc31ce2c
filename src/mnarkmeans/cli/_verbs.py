"""The verbs: what each takes and what it is for; the work is elsewhere, imported on use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as opt
from ._app import app
from ._console import Console
from ._groups import spread


def _example(command: str) -> str:
    return f"Example: [bold]mnarkmeans {command}[/bold]"


@app.command(epilog=_example("fit cells.csv -k 4 --missing-value 0 -o result/"))
@spread
def fit(
    source: opt.Source,
    fitting: opt.Fitting,
    page: opt.Page,
    output: opt.FitOutput,
    telling: opt.Telling,
    scheduler: opt.Scheduler = None,
) -> None:
    """Cluster a table; write labels, centres, summary, model and report."""
    from ._fit import fit as work

    work(Console(telling), source, fitting, page, output, scheduler)


@app.command(epilog=_example("select cells.csv -k 2:8 -o result/"))
@spread
def select(
    source: opt.Source,
    searching: opt.Searching,
    page: opt.Page,
    output: opt.FitOutput,
    telling: opt.Telling,
) -> None:
    """Choose lam and the number of clusters; an interrupted run goes on where it stopped."""
    from ._select import select as work

    work(Console(telling), source, searching, page, output)


@app.command(epilog=_example("compare cells.csv -k 4 --labels celltype"))
@spread
def compare(
    source: opt.Source,
    fitting: opt.Fitting,
    output: opt.OptionalOutput,
    telling: opt.Telling,
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="COLUMN", help="Column of known classes.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", help="Methods to run, such as mixture,kpod (else all)."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="Methods to leave out, such as mice,fwpd; may be repeated."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="SECONDS", min=0.0, help="Most time of one method."),
    ] = None,
) -> None:
    """Run the mixture and the rivals beside ours; with -o, an interrupted run goes on."""
    from ._compare import compare as work

    named, left_out = (
        [name.strip() for names in given or [] for name in names.split(",")]
        for given in (methods, without)
    )
    work(Console(telling), source, fitting, output, labels, named, left_out, time_limit)


@app.command(epilog=_example("diagnose proteins.csv --reference min"))
@spread
def diagnose(
    source: opt.Source,
    output: opt.OptionalOutput,
    telling: opt.Telling,
    seed: opt.Seed = 0,
) -> None:
    """Tell what is missing, how that depends on the values, and what to do."""
    from ._diagnose import diagnose as work

    work(Console(telling), source, output, seed)


@app.command(epilog=_example("predict result/ new.csv -o labels.csv"))
@spread
def predict(use: opt.Use) -> None:
    """Label the rows of a new table, read and prepared as the model's own was."""
    from ._use import predict as work

    work(Console(use.telling), use)


@app.command(epilog=_example("impute result/ new.csv -o filled.csv"))
@spread
def impute(use: opt.Use) -> None:
    """Fill the gaps of a table from the centres, in the table's own units, order and shape."""
    from ._use import impute as work

    work(Console(use.telling), use)


@app.command(epilog=_example("report result/ --title 'Plasma proteome'"))
@spread
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="OUT", help="A folder written by fit or select.")
    ],
    telling: opt.Telling,
    title: opt.Title = None,
) -> None:
    """Draw report.html again, from the numbers stored beside it."""
    from ._report import report as work

    work(Console(telling), folder, title)


@app.command(epilog=_example("demo -o shown/"))
@spread
def demo(
    telling: opt.Telling,
    out: opt.Out = Path("mnarkmeans-demo"),
    force: opt.Force = False,
) -> None:
    """The whole job on built-in data, in under a minute; begin here."""
    from ._demo import demo as work

    work(Console(telling), out, force)
