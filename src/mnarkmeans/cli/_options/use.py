"""A model and a table to use it on."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Model
from .output import OutputFile, Telling
from .source import Data, Rereading


@dataclass(frozen=True)
class Use:
    """A model, a new table, how it is read where the model does not say it, and where to."""

    model: Model
    data: Data
    given: Rereading
    output: OutputFile
    telling: Telling
