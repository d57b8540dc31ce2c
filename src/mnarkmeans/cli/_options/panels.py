"""Options are shown in groups under --help."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import typer


def panel(name: str) -> Callable[..., Any]:
    """Options shown together under this heading in --help."""
    return partial(typer.Option, rich_help_panel=name)


of_reading, of_preparing = panel("Reading the table"), panel("Preparing it")
of_model, of_out = panel("The model"), panel("Output")
