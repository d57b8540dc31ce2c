"""The verbs that begin with a table: fit, select, compare, diagnose; the work is elsewhere."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import _options as opt
from ._app import app
from ._console import Console
from ._job import Reading


def _steps(log1p, scale, center, max_missing, reference) -> dict[str, Any]:
    return {
        "log1p": log1p,
        "scale": scale,
        "center": center,
        "max_missing": max_missing,
        "reference": reference,
    }


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


@app.command(epilog="Example: [bold]mnarkmeans diagnose proteins.csv --reference min[/bold]")
def diagnose(
    data: opt.Data,
    output: opt.OptionalOut = None,
    reference: opt.Reference = None,
    seed: opt.Seed = 0,
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
    """Tell what is missing, how that depends on the values, and what to do."""
    from ._diagnose import diagnose as work

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
        seed=seed,
        force=force,
    )
