"""What an experiment is: settings, one repetition, a picture, a comparison with the paper."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Setting = dict[str, Any]
Row = dict[str, Any]
Frame = Any  # a pandas DataFrame; pandas is optional


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    name, title : str
    repetitions : int
        As in the paper.
    settings : function of (quick) -> list of settings
    compute : function of (setting, rng) -> rows
        One repetition; the first thing drawn from rng is the data, so two experiments with the
        same setting see the same data.
    draw : function of (table, folder)
        Writes PNG and SVG; computes nothing.
    compare : function of (table) -> Markdown
    details : function of (quick) -> {file name: frame}, optional
        What a picture shows beyond the table, computed once.
    alone : bool
        One process only, because time is what is measured.

    Examples
    --------
    >>> from mnarkmeans.paper import EXPERIMENTS
    >>> EXPERIMENTS["table1"].repetitions
    30
    """

    name: str
    title: str
    repetitions: int
    settings: Callable[[bool], list[Setting]]
    compute: Callable[[Setting, np.random.Generator], list[Row]]
    draw: Callable[[Frame, Path], None]
    compare: Callable[[Frame], str]
    details: Callable[[bool], dict[str, Frame]] | None = None
    alone: bool = False


def task_name(setting: Setting, repetition: int) -> str:
    return json.dumps(setting, sort_keys=True) + f" #{repetition}"


def task_rng(setting: Setting, repetition: int) -> np.random.Generator:
    """A stream of its own for every setting and repetition, the same in every experiment."""
    key = zlib.crc32(json.dumps(setting, sort_keys=True).encode())
    return np.random.default_rng([2026, repetition, key])
