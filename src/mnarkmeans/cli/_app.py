"""The verbs of the command line and their options; the work is in one module per verb.

Exit codes: 0 done; 2 a mistake in the command, the table, the model or the output; 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from . import _options as opt
from ._console import Console, fail
from ._errors import UserError
from ._job import Reading

INTERRUPTED = 130

app = typer.Typer(
    name="mnarkmeans",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="k-means for tables with gaps, where values near a reference are the likeliest to go.",
    epilog="Begin with [bold]mnarkmeans demo[/bold]; every verb has --help with examples.",
)


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    as_json = "--json" in arguments
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    try:
        command = typer.main.get_command(app)
        code = command.main(arguments, prog_name="mnarkmeans", standalone_mode=False)
        if code == INTERRUPTED:  # newer typer answers Ctrl-C itself
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except UserError as error:
        fail(error, as_json)
        return 2
    except ImportError as error:
        fail(error, as_json)
        return 2
    except MemoryError:
        fail("there is not enough memory for this", as_json)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted; no file was left half-written", as_json)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; say nothing more to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _usage_errors() as error:
        return _misused(error, as_json)


def _terminated(number: int, frame: Any) -> None:
    # A polite end: files are cleaned up as for Ctrl-C.
    raise SystemExit(128 + number)


def _usage_errors() -> tuple[type[BaseException], ...]:
    # typer brings its own copy of click in newer versions: ask it for its class.
    return tuple(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def _misused(error: Any, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message() if context is None else context.get_help())
        return 2
    where = context.command_path if context is not None else "mnarkmeans"
    text = " ".join(error.format_message().split()).rstrip(".")
    fail(f"{text}; see {where} --help", as_json)
    return 2


def _version(asked: bool) -> None:
    if asked:
        print(f"mnarkmeans {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
) -> None:
    pass


@app.command(
    epilog="Example: [bold]mnarkmeans fit cells.csv -k 4 --missing-value 0 -o result/[/bold]"
)
def fit(
    data: opt.Data,
    clusters: opt.Clusters,
    output: opt.Out,
    lam: opt.Lam = "auto",
    reference: opt.Reference = None,
    starts: opt.Starts = 20,
    max_iter: opt.MaxIter = 300,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    missing_value: opt.MissingValue = None,
    id_column: opt.IdColumn = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    transpose: opt.Transpose = False,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    layer: opt.Layer = None,
    max_missing: opt.MaxMissing = None,
    log1p: opt.Log1p = False,
    scale: opt.Scale = "none",
    center: opt.Center = False,
    embedding: opt.Picture = "pca",
    title: opt.Title = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Cluster a table; write labels, centres, summary, model and report."""
    from ._fit import fit as work

    reading = Reading.of(
        missing_value, columns, drop, id_column=id_column, transpose=transpose,
        encoding=encoding, delimiter=delimiter, header=header, layer=layer,
    )  # fmt: skip
    work(
        Console(quiet=quiet, as_json=as_json),
        data,
        output,
        reading,
        steps=_steps(log1p, scale, center, max_missing, reference),
        params={
            "n_clusters": clusters,
            "lam": opt.parse_lam(lam),
            "n_init": starts,
            "max_iter": max_iter,
            "random_state": seed,
            "n_jobs": jobs,
        },
        embedding=embedding,
        title=title,
        force=force,
        scheduler=scheduler,
    )


def _steps(log1p, scale, center, max_missing, reference) -> dict[str, Any]:
    return {
        "log1p": log1p,
        "scale": scale,
        "center": center,
        "max_missing": max_missing,
        "reference": reference,
    }


@app.command(epilog="Example: [bold]mnarkmeans select cells.csv -k 2:8 -o result/[/bold]")
def select(
    data: opt.Data,
    clusters: opt.ClusterRange,
    output: opt.Out,
    lams: Annotated[
        str, typer.Option("--lams", metavar="auto|LIST", help="Candidates, such as 0,0.1,1,10.")
    ] = "auto",
    criterion: Annotated[
        str | None, typer.Option("--criterion", help="How candidates are judged.")
    ] = None,
    splits: Annotated[
        int | None, typer.Option("--splits", min=2, help="Number of splits of the rows.")
    ] = None,
    reference: opt.Reference = None,
    starts: opt.Starts = 10,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    missing_value: opt.MissingValue = None,
    id_column: opt.IdColumn = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    transpose: opt.Transpose = False,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    layer: opt.Layer = None,
    max_missing: opt.MaxMissing = None,
    log1p: opt.Log1p = False,
    scale: opt.Scale = "none",
    center: opt.Center = False,
    embedding: opt.Picture = "pca",
    title: opt.Title = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Choose lam and the number of clusters; an interrupted run goes on where it stopped."""
    from ._select import select as work

    reading = Reading.of(
        missing_value, columns, drop, id_column=id_column, transpose=transpose,
        encoding=encoding, delimiter=delimiter, header=header, layer=layer,
    )  # fmt: skip
    params = {"lams": opt.parse_lams(lams), "n_init": starts, "random_state": seed, "n_jobs": jobs}
    given = {"criterion": criterion, "n_splits": splits}
    work(
        Console(quiet=quiet, as_json=as_json),
        data,
        output,
        reading,
        clusters=opt.parse_clusters(clusters),
        steps=_steps(log1p, scale, center, max_missing, reference),
        params=params | {name: value for name, value in given.items() if value is not None},
        embedding=embedding,
        title=title,
        force=force,
    )


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


@app.command(epilog="Example: [bold]mnarkmeans compare cells.csv -k 4 --labels celltype[/bold]")
def compare(
    data: opt.Data,
    clusters: opt.Clusters,
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="COLUMN", help="Column of known classes.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Rivals to run, such as kpod,mean (else all).")
    ] = None,
    output: opt.OptionalOut = None,
    lam: opt.Lam = "auto",
    reference: opt.Reference = None,
    starts: opt.Starts = 20,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    missing_value: opt.MissingValue = None,
    id_column: opt.IdColumn = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    transpose: opt.Transpose = False,
    encoding: opt.Encoding = None,
    delimiter: opt.Delimiter = None,
    header: opt.Header = None,
    layer: opt.Layer = None,
    max_missing: opt.MaxMissing = None,
    log1p: opt.Log1p = False,
    scale: opt.Scale = "none",
    center: opt.Center = False,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Run the rivals beside ours; with -o, an interrupted run goes on where it stopped."""
    from ._compare import compare as work

    reading = Reading.of(
        missing_value, columns, drop, id_column=id_column, transpose=transpose,
        encoding=encoding, delimiter=delimiter, header=header, layer=layer,
    )  # fmt: skip
    work(
        Console(quiet=quiet, as_json=as_json),
        data,
        output,
        reading,
        labels=labels,
        methods=[m.strip() for m in methods.split(",")] if methods else [],
        steps=_steps(log1p, scale, center, max_missing, reference),
        params={
            "n_clusters": clusters,
            "lam": opt.parse_lam(lam),
            "n_init": starts,
            "random_state": seed,
            "n_jobs": jobs,
        },
        force=force,
    )


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
