"""What was understood of a file, what is suggested, and the command to run.

Reading, preparing and advising are those of `mnarkmeans.tables`, with the same defaults as the
command line. The settings of the page, by the names of its inputs, are the fields of
``ReadOptions`` and ``Preparation``.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..missingness._diagnose import cells_of
from ..tables import Preparation, ReadOptions, Table, TableError, advise, read_table
from ..tables._table import abbreviated

ROWS_SHOWN, COLUMNS_SHOWN = 8, 7
NAMES_SHOWN = 300  # features that can be clicked away
DOTS_SHOWN = 400

# Further options of the page, and the values that need not be typed.
ADVANCED = {"lam": "auto", "reference": "auto", "starts": "", "seed": "0"}


class Refused(Exception):
    """A request that cannot be served; its text is for the person in front of the page."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


def preview(path: Path, settings: dict[str, Any] | None) -> dict[str, Any]:
    """Read a file with the settings of the page, or as advised when it is new.

    A file that cannot be read in this way gives the reason and what can be changed.
    """
    options, steps = _parts(settings or {})
    shown: dict[str, Any] = {
        "defaults": _settings(ReadOptions(), Preparation()), "suggestions": []
    }  # fmt: skip
    try:
        if settings is None:
            advice = advise(path)
            table, options, steps = advice.table, advice.options, advice.preparation
            shown["suggestions"] = [
                {"reason": _sentence(suggestion.reason), "changes": suggestion.changes}
                for suggestion in advice.suggestions
            ]
        else:
            table = read_table(path, **options.to_dict())
        _, used, values = steps.fit_apply(table)
        shown |= {"table": _table(table, used, values), "annotations": _annotations(table)}
    except (TableError, OSError) as error:
        shown["error"] = _sentence(error)
    return shown | {"settings": _settings(options, steps)}


def command_for(name: str, choices: dict[str, Any], out: str) -> list[str]:
    """The arguments of ``mnarkmeans`` that do what the page asks."""
    options, steps = _parts(choices.get("settings") or {})
    clusters = str(choices.get("clusters") or "")
    if not re.fullmatch(r"\d+(:\d+)?|K", clusters):
        raise Refused("Give the number of clusters, such as 3, or a range, such as 2:8.")
    words = ["select" if ":" in clusters else "fit", name, "-k", clusters]
    words += [*options.typed(), *steps.typed(), *(["--as-is"] if choices.get("as_is") else [])]
    for field in ("batch", "labels"):
        words += [f"--{field}", str(choices[field])] if choices.get(field) else []
    for option, default in ADVANCED.items():
        value = str(choices.get(option) or "")
        if value not in ("", default):
            words += [f"--{option}{'s' * (option == 'lam' and words[0] == 'select')}", value]
    return [*words, "-o", out]


def _parts(settings: dict[str, Any]) -> tuple[ReadOptions, Preparation]:
    known = {f.name for f in fields(Preparation) if not f.metadata} & settings.keys()
    try:
        return ReadOptions.from_dict(settings), Preparation(**{n: settings[n] for n in known})
    except (TableError, TypeError, ValueError) as error:
        raise Refused(_sentence(error)) from error


def _settings(options: ReadOptions, steps: Preparation) -> dict[str, Any]:
    """What a person can set, without what was learned from a table."""
    names = [f.name for f in fields(steps) if not f.metadata]
    return options.to_dict() | {name: getattr(steps, name) for name in names}


def _annotations(table: Table) -> list[str]:
    """Columns that may name batches or groups: text that was left out and repeats itself."""
    names = [*table.labels, *table.annotations]
    if table.options.transpose or table.content is None:
        return names
    frame, n = table.content.to_frame(), table.shape[0]
    texts = [name for name, reason in table.left_out if reason.startswith("text")]
    return names + [str(t) for t in texts if t in frame and 1 < frame[t].nunique() <= n // 2]


def _table(table: Table, used: Table, values: Any) -> dict[str, Any]:
    (n, p), transposed = used.shape, table.options.transpose
    left_out: dict[str, list[str]] = {}
    for name, reason in table.left_out:
        left_out.setdefault(reason, []).append(name)
    first = replace(used, values=values[:ROWS_SHOWN, :COLUMNS_SHOWN]).dense()
    observed = values.data if sp.issparse(values) else values[~np.isnan(values)]
    facts = [
        f"{n:,} {'columns' if transposed else 'rows'} to cluster", f"{p:,} features each",
        f"{used.missing_share():.1%} missing",
        *([f"values from {observed.min():.4g} to {observed.max():.4g}"] if observed.size else []),
        *(["decimal commas"] if table.source.get("decimal") == "," else []),
        *(f"{key} {table.source[key]}" for key in ("sheet", "layer") if table.source.get(key)),
    ]  # fmt: skip
    cells = cells_of(values)  # as in the report
    dots = cells.some_features(DOTS_SHOWN)
    return dict(
        facts=facts, id_name=table.id_name or "", ids=list(used.short_ids[:ROWS_SHOWN]),
        columns=list(used.short_features[:COLUMNS_SHOWN]), n_features=p, transposed=transposed,
        features=list(used.features[:NAMES_SHOWN]),
        means=cells.mean[0][dots].tolist(), shares=cells.missing_share[0][dots].tolist(),
        cells=[[None if np.isnan(v) else f"{v:.4g}" for v in row] for row in first],
        left_out=[f"{abbreviated(names)}: {reason}" for reason, names in left_out.items()],
        n_left_out=len(table.left_out), notes=list(dict.fromkeys([*table.notes, *used.notes])),
    )  # fmt: skip


def _sentence(error: object) -> str:
    """A message with the options of the command line, which the page calls by its own names."""
    text = str(getattr(error, "command_line", error))
    return text[:1].upper() + text[1:]
