"""The command: runs a verb and turns whatever happens into an exit code.

Exit codes: 0 done; 2 a mistake in the command, the table, the model or the output; 130 interrupted
by Ctrl-C; 143 ended by SIGTERM.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from ._console import fail
from ._errors import UserError
from ._signals import TERMINATED, polite_end

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
    try:
        with polite_end():
            return _run(arguments)
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
    except SystemExit as stop:
        if stop.code != TERMINATED:
            raise
        fail("ended from outside; no file was left half-written", as_json)
        return TERMINATED
    except BrokenPipeError:
        # The reader of our output has gone; say nothing more to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _usage_errors() as error:
        return _misused(error, as_json)


def _run(arguments: list[str]) -> int:
    from . import _verbs  # noqa: F401  they join the app

    command = typer.main.get_command(app)
    code = command.main(arguments, prog_name="mnarkmeans", standalone_mode=False)
    if code == INTERRUPTED:  # newer typer answers Ctrl-C itself
        raise KeyboardInterrupt
    if not arguments:  # older typer shows the help and is content
        return 2
    return code if isinstance(code, int) else 0


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
        from .._versions import describe_versions

        print(describe_versions())
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Tell the versions and the instruction set in use.",
        ),
    ] = False,
) -> None:
    pass
