"""The command `mnarkmeans`: runs a verb and turns whatever happens into an exit code.

0 done; 2 a mistake in the command, the table, the model or the output; 130 interrupted by Ctrl-C;
143 ended by SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from .._model_files import ModelFileError
from .._versions import show_versions
from ..tables import TableError
from ._console import UserError, print_error
from ._options import grouped
from .app import app
from .compare import compare
from .demo import demo
from .diagnose import diagnose
from .fit import fit
from .impute import impute
from .predict import predict
from .report import report
from .select import select

VERBS = {
    verb.__name__: verb
    for verb in (demo, fit, select, predict, impute, diagnose, report, compare, app)
}
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 128 + signal.SIGTERM
# Newer versions of typer bring their own copy of click: ask for the class they use.
USAGE_ERROR: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
EXAMPLES = {
    "See it work on built-in data": "demo",
    "Find out what your table needs": "diagnose proteins.csv",
    "Cluster into 4 groups": "fit proteins.csv -k 4 -o result",
    "Choose the number of clusters": "select proteins.csv -k 2:8 -o result",
    "Label new rows": "predict result new.csv -o labels.csv",
    "Do all of it in the browser": "app",
}

commands = typer.Typer(
    name="mnarkmeans",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="k-means clustering for tables with missing values.",
    epilog="\n\n".join([
        "[bold]Examples[/bold]",
        *(f"{why}:  [bold]mnarkmeans {words}[/bold]" for why, words in EXAMPLES.items()),
        "Add --help to any command for its options.",
    ]),
)  # fmt: skip


for name, verb in VERBS.items():
    commands.command(name, help=verb.__doc__)(grouped(verb))


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    code, sentence = 2, ""
    try:
        return _run(arguments)
    except (UserError, ModelFileError, ImportError) as error:
        sentence = str(error)
    except TableError as error:
        sentence = error.command_line
    except MemoryError:
        sentence = "there is not enough memory for this table"
    except (KeyboardInterrupt, typer.Abort):
        code, sentence = INTERRUPTED, "interrupted; no file was left half-written"
    except SystemExit as stop:
        if stop.code != TERMINATED:
            raise
        code, sentence = TERMINATED, "terminated; no file was left half-written"
    except BrokenPipeError:  # whoever read our output is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except USAGE_ERROR as error:
        sentence = _usage_sentence(error)
    print_error(sentence, "--json" in arguments)
    return code


def _run(arguments: list[str]) -> int:
    with suppress(ValueError):  # threads have no say in signals
        signal.signal(signal.SIGTERM, _terminate)
    command = typer.main.get_command(commands)
    code = command.main(arguments or ["--help"], prog_name="mnarkmeans", standalone_mode=False)
    if code == INTERRUPTED:  # newer versions of typer catch Ctrl-C themselves
        raise KeyboardInterrupt
    return 2 if not arguments else code if isinstance(code, int) else 0


def _terminate(number: int, frame: Any) -> None:
    """SIGTERM ends a run as Ctrl-C does: what was begun is cleaned up."""
    raise SystemExit(TERMINATED)


def _usage_sentence(error: Any) -> str:
    """'-k must be a whole number ...' instead of "Invalid value for '-k'"."""
    names = getattr(getattr(error, "param", None), "opts", None)
    text = error.format_message()
    if names and error.message:
        text = f"{names[0]}{' ' if error.message.startswith('must') else ': '}{error.message}"
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "mnarkmeans"
    return f"{text.rstrip('.')}; see {where} --help"


VERSION = typer.Option(
    "--version", help="Print the version of mnarkmeans and of the packages it uses."
)


@commands.callback(invoke_without_command=True)
def _top(version: Annotated[bool, VERSION] = False) -> None:
    if version:
        show_versions()
        raise typer.Exit
