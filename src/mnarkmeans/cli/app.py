"""`mnarkmeans app`: the same commands behind a page in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from ._app import app as commands
from ._console import UserError


@commands.command(name="app", epilog="Example: [bold]mnarkmeans app[/bold]")
def app(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Open a page in the browser, on this computer only: from a file to a report by clicking."""
    from ..app import serve

    try:
        serve(port, browser=browser, say=lambda address: print(address, flush=True))
    except ValueError as error:
        raise UserError(str(error)) from error
