"""What was understood of a file, what is suggested, and the command to run.

Reading, preparing and advising are those of `mnarkmeans.tables`, with the same defaults as the
command line. The settings of the page are the fields of ``ReadOptions`` and ``Preparation``.
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

# Of the page: field, label, what it does; choices as (value, shown).
READING: list[dict[str, Any]] = [
    dict(name="transpose", kind="check", label="Samples are the columns",
         help="The samples, which are clustered, become the rows."),
    dict(name="decimal", label="Decimal sign",
         choices=[["", "detected"], [".", "1.5"], [",", "1,5"]],
         help="How numbers are written in the file."),
    dict(name="missing_value", several=True, label="Codes for missing values",
         help="For example 0 or -999; several with commas. Empty cells are always missing."),
    dict(name="columns", several=True, label="Use only these columns",
         help="Names or patterns such as LFQ intensity *, several with commas."),
    dict(name="drop", several=True, label="Leave out these columns",
         help="Names or patterns, several with commas."),
    dict(name="id_column", label="Column with the row names", help="Detected if empty."),
    dict(name="drop_rows", several=True, label="Leave out rows",
         help="Column=value, for example Reverse=+."),
    dict(name="normalize", label="Normalise samples",
         choices=[["none", "no"], ["median", "same median"], ["total", "same total"]],
         help="Removes differences in the amount loaded."),
    dict(name="log2", kind="check", label="Take log2", help="For intensities."),
    dict(name="log1p", kind="check", label="Take log(1 + x)", help="For counts."),
    dict(name="scale", label="Scale features",
         choices=[["none", "no"], ["std", "by standard deviation"], ["maxabs", "by largest value"]],
         help="For features in different units."),
    dict(name="center_rows", kind="check", label="Centre each row",
         help="Clusters profiles by shape, not by level; for proteins or genes as rows."),
    dict(name="zscore_rows", kind="check", label="Standardise each row",
         help="Shape alone: level and size of each profile are removed."),
]  # fmt: skip
ADVANCED: list[dict[str, Any]] = [
    dict(name="lam", value="auto", label="lam, the penalty for missing values",
         help="auto chooses from the data; 0 ignores missing values, 1 fills in the reference."),
    dict(name="reference", value="auto", label="Reference",
         help="Value near which values go missing: auto, min (detection limit), or a number."),
    dict(name="starts", value="", label="Number of starts",
         help="Random starts; the best result is kept."),
    dict(name="seed", value="0", label="Seed", help="The same seed gives the same result."),
]  # fmt: skip
LABELS = {control["name"]: control["label"] for control in READING}


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
    suggestions: list[dict[str, Any]] = []
    shown: dict[str, Any] = {"controls": READING, "advanced": ADVANCED}
    try:
        if settings is None:
            advice = advise(path)
            table, options, steps = advice.table, advice.options, advice.preparation
            suggestions = [_suggestion(suggestion) for suggestion in advice.suggestions]
        else:
            table = read_table(path, **options.to_dict())
        _, used, values = replace(steps).fit_apply(table)
        shown |= {"table": _table(table, used, values), "annotations": _annotations(table)}
    except (TableError, OSError) as error:
        shown["error"] = _sentence(error)
    return shown | {"settings": _settings(options, steps), "suggestions": suggestions}


def command_for(name: str, given: dict[str, Any], out: str) -> list[str]:
    """The arguments of ``mnarkmeans`` that do what the page asks."""
    options, steps = _parts(given.get("settings") or {})
    clusters = str(given.get("clusters") or "")
    if not re.fullmatch(r"\d+(:\d+)?|K", clusters):
        raise Refused("Give the number of clusters, such as 3, or a range, such as 2:8.")
    words = ["select" if ":" in clusters else "fit", name, "-k", clusters]
    words += [*options.typed(), *steps.typed(), *(["--as-is"] if given.get("as_is") else [])]
    for field in ("batch", "labels"):
        words += [f"--{field}", str(given[field])] if given.get(field) else []
    for control in ADVANCED:
        option, value = control["name"], str(given.get(control["name"]) or "")
        if value and value != control["value"]:
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


def _suggestion(suggestion: Any) -> dict[str, Any]:
    changes, words = suggestion.changes, []
    for name, value in changes.items():
        text = ", ".join(value) if isinstance(value, tuple) else value
        label = LABELS.get(name, name.replace("_", " ").capitalize())
        words.append(label if value is True else f"{label}: {text}")
    defaults = _settings(ReadOptions(), Preparation())
    return dict(
        title="; ".join(words) or "Note", reason=_sentence(suggestion.reason), changes=changes,
        defaults={name: defaults[name] for name in changes},
    )  # fmt: skip


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
    """One sentence that names what the page has, not parameters or options."""
    text = " ".join(str(getattr(error, "command_line", error)).split())
    for name in sorted(LABELS, key=len, reverse=True):
        text = text.replace(f"--{name.replace('_', '-')}", f"\u201c{LABELS[name]}\u201d")
    return text[:1].upper() + text[1:]
