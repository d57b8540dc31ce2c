"""What a table seems to need before it can be clustered, from its names and its numbers.

Suggestions come in the order in which they are applied: which columns and rows (names), which
numbers mean missing, which preparation. What the user has said is never contradicted. Those that
are certain, because a known program wrote the file, are needed for a sensible result.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from .._validation import CODES, far_from
from ._cells import ROLES, describes_features, has_role, matches, names_features, sample_family
from ._prepare import Preparation, by_row
from ._read import read_content
from ._table import ReadOptions, Table, quoted, unknown_name
from ._tidy import Tidy, annotate

MOST_ENTRIES = 2_000_000  # looked at; of larger tables a sample of the rows
MOST_CLUSTERS, ROWS_PER_CLUSTER = 8, 4  # of the command
SUMMARY_ROWS = 6  # at the end of a table that may sum up the others
PANEL = 20  # features that were measured together and share a unit
SPAN = 30.0  # of the means of such features: logarithms span 2 to 14, raw values 36 and more
FEW_VALUES = 12  # distinct ones: categories, the answers of a survey
INTENSITY = 1000.0  # median of intensities that are no logarithms yet
FLAGS = ("Reverse", "Potential contaminant", "Contaminant", "Only identified by site")
DECOYS = ("REV__*", "CON__*", "rev_*", "contam_*", "DECOY_*", "__*", "N_unmapped", "N_noFeature")
# Ensembl, UniProt and the two forms of it in FASTA headers.
ACCESSION = re.compile(
    r"^(ENS[A-Z]*[GTP]\d+|[OPQ]\d[A-Z\d]{3}\d|[A-NR-Z]\d([A-Z][A-Z\d]{2}\d){1,2}"
    r"|(sp|tr)\|\w+\|\w+)(\.\d+)?(;.*)?$"
)


@dataclass(frozen=True)
class Suggestion:
    """Options and steps to add, and why."""

    reason: str
    changes: dict[str, Any]
    certain: bool = False

    def typed(self) -> str:
        """The options as they are typed on the command line."""
        options, steps = _with(ReadOptions(), self.changes), _with(Preparation(), self.changes)
        return " ".join(map(quoted, [*options.typed(), *steps.typed()]))

    def __str__(self) -> str:
        return f"{self.typed()}: {self.reason}"


@dataclass
class Advice:
    """A table read as suggested, the preparation suggested for it, and the reasons."""

    table: Table
    options: ReadOptions
    preparation: Preparation
    suggestions: list[Suggestion] = field(default_factory=list)

    @property
    def certain(self) -> list[Suggestion]:
        """Suggestions without which the result would be wrong."""
        return [s for s in self.suggestions if s.certain]

    def command(self, data: Any = None, more: tuple[str, ...] = ()) -> str:
        """The one command that clusters this table and chooses the number of clusters."""
        data = str(data or self.table.source.get("file", "table"))
        most = max(2, min(MOST_CLUSTERS, self.table.shape[0] // ROWS_PER_CLUSTER))
        name = re.split(r"[\\/]", data)[-1].split(".")[0] or "table"
        words = ["mnarkmeans", "select", data, "-k", f"2:{most}" if most > 2 else "2",
                 *self.options.typed(), *self.preparation.typed(), *more,
                 "-o", f"{name}-clusters"]  # fmt: skip
        return " ".join(map(quoted, words))

    def __str__(self) -> str:
        return "\n".join(f"- {line}" for line in [*map(str, self.suggestions), self.command()])

    def _add(self, reason: str, certain: bool = False, **changes: Any) -> None:
        self.suggestions.append(Suggestion(reason, changes, certain))
        self.options = _with(self.options, changes)
        self.preparation = _with(self.preparation, changes)


def advise(
    source: Any,
    options: ReadOptions | None = None,
    preparation: Preparation | None = None,
    labels: Sequence[str] = (),
    annotations: Any = None,
) -> Advice:
    """Read a file (or take a table) and find the options it needs, with a reason for each.

    labels : columns with known classes, which are kept aside, as is the column of a batch
    annotations : a second file about the rows

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"gene": ["A", "B", "C"], "s1": [1.0, 2, 3], "s2": [2.0, 2, 4]})
    >>> print(advise(frame))
    - --transpose: rows are named by 'gene': they are features, and columns are samples
    - mnarkmeans select table -k 2 --transpose -o table-clusters
    """
    preparation = preparation or Preparation()
    if not isinstance(source, Table):
        options = options or ReadOptions()
        content = read_content(source, options)
        aside = labels if annotations is None else content.having(labels)
        aside = (*aside, *content.having([str(preparation.batch)]))
        source = Tidy(content, options, aside).table()
    advice = Advice(source, source.options, preparation)
    if source.content is None:
        return advice
    given = advice.options
    # Each looks at the table as the ones before suggest it; several numbers may mean missing.
    for look in (_structure, _samples, _missing, _missing, _units):
        before = advice.options
        look(advice, given)
        if advice.options != before:
            content = advice.table.content
            aside = content.having(advice.table.labels)
            advice.table = Tidy(content, advice.options, aside).table()
    if annotations is not None:
        annotate(advice.table, annotations, labels)
    known = {**advice.table.labels, **advice.table.annotations}
    if preparation.batch not in (None, *known):
        raise unknown_name("column for --batch", str(preparation.batch), known)
    return advice


def _with(old: Any, changes: dict[str, Any]) -> Any:
    """Options with others added; those that can be repeated go after what was given."""
    given = {f.name: getattr(old, f.name) for f in fields(old) if f.name in changes}
    added = {name: (*value, *changes[name]) if isinstance(value, tuple) else changes[name]
             for name, value in given.items()}  # fmt: skip
    return replace(old, **added)


# --- which rows and columns -------------------------------------------------------------------


def _structure(advice: Advice, given: ReadOptions) -> None:
    """Which columns are samples, whether rows are features, which of both are neither."""
    table = advice.table
    names = [str(i) for i in table.ids] if given.transpose else table.features
    family = sample_family(names)
    others = [name for name in names if family and not matches(name, (family,))]
    if others and not given.columns:
        reason = f"the samples are the columns {family!r}, not {others[0]!r} and the like"
        advice._add(reason, certain=True, columns=(family,))
    why = "rows are features, columns are samples" if family else _rows_are_features(table)
    if why and not given.transpose:
        if given.columns:
            why = f"{why}: they are clustered by their profile over the samples"
            advice._add(why, center_rows=True)
        else:
            advice._add(why, certain=bool(family), transpose=True)
    if why or given.transpose:
        others = [] if family else [name for name in names if describes_features(name)]
        reason = "describes features and is not a sample"
    else:
        others = [name for name in names if name.strip().lower() in ROLES["class"]]
        reason = "looks like a known class, not a measurement"
    if others and not (given.columns or given.drop) and len(others) < len(names):
        certain = given.transpose and 2 * len(others) < len(names)
        advice._add(f"{others[0]!r} {reason}", certain=certain, drop=tuple(others))
    if not given.drop_rows and (rules := _decoys(table, given)):
        advice._add("decoys and contaminants are not measurements", drop_rows=rules)


def _rows_are_features(table: Table) -> str | None:
    """Why the rows of this table are features, if they are."""
    if names_features(table.id_name):
        return f"rows are named by {table.id_name!r}: they are features, and columns are samples"
    ids = [str(name) for name in table.ids[:200]]
    if sum(ACCESSION.match(name) is not None for name in ids) > len(ids) / 2:
        return f"row names such as {ids[0]!r} are accessions: rows are features, columns samples"
    return None


def _decoys(table: Table, options: ReadOptions) -> tuple[str, ...]:
    """Rules for rows that a program marked as decoys or contaminants, by a flag or a name."""
    marked = ((name, str(word)) for name in table.content.having(FLAGS)
              for word in table.content.column(name).dropna().unique())  # fmt: skip
    rules = [f"{name}={w}" for name, w in marked if w.strip().lower() in ("+", "true", "1")]
    named_by = table.source.get("id_column")
    if not rules and named_by:
        names = [str(name) for name in (table.features if options.transpose else table.ids)]
        rules = [f"{named_by}={p}" for p in DECOYS if any(matches(name, (p,)) for name in names)]
    return tuple(rules)


def _samples(advice: Advice, given: ReadOptions) -> None:
    """Controls, and rows that sum up others, which are read like samples and are none."""
    table, transposed = advice.table, advice.options.transpose
    named_by = table.source.get("id_column")
    patterns, why = (
        _control_patterns([str(i) for i in table.ids]),
        "pools and blanks are not samples",
    )
    if transposed:
        if patterns and not given.drop:
            advice._add(why, drop=tuple(patterns))
    elif not given.drop_rows:
        by_name = [f"{named_by}={pattern}" for pattern in patterns if named_by]
        if rules := _control_values(table) or by_name:
            advice._add(why, drop_rows=tuple(rules))
    if not named_by:
        return
    names = _summary_rows(table, transposed)
    why = f"{names[0]!r} is a total or mean of other rows" if names else "some rows have no name"
    names += [""] * bool(table.source["unnamed_rows"])
    rules = [f"{named_by}={name}" for name in names]
    if rules := [rule for rule in rules if rule not in advice.options.drop_rows]:
        advice._add(why, drop_rows=tuple(rules))


def _control_patterns(names: Sequence[str]) -> list[str]:
    """Patterns for the controls among samples and nothing else; none if most are controls."""
    controls = [name for name in names if has_role(name, "control")]
    patterns: list[str] = []
    for name in controls if 2 * len(controls) < len(names) else ():
        if not matches(name, patterns):
            word = next(w for w in re.findall(r"[A-Za-z]+", name) if has_role(w, "control"))
            unique = not any(matches(other, (f"*{word}*",)) for other in {*names} - {*controls})
            patterns.append(f"*{word}*" if unique else name)
    return patterns


def _control_values(table: Table) -> list[str]:
    """Rules for the controls in a column of text that says what each row is."""
    texts = [name for name, reason in table.left_out if reason.startswith("text")]
    for name in table.content.having(texts):
        values = [str(value) for value in table.content.column(name).dropna().unique()]
        marked = [value for value in values if has_role(value, "control")]
        if 0 < len(marked) < len(values) <= FEW_VALUES:
            return [f"{name}={value}" for value in marked]
    return []


def _summary_rows(table: Table, transposed: bool) -> list[str]:
    """Names of the last rows of the file, from the first that is the sum or mean of all above."""
    names = [str(name) for name in (table.features if transposed else table.ids)]
    if len(names) <= 2 * SUMMARY_ROWS or math.prod(table.shape) > MOST_ENTRIES:
        return []
    values = table.dense().T if transposed else table.dense()
    for count in range(SUMMARY_ROWS, 0, -1):
        row, others = values[-count], values[:-count]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value
            varied = (np.nanstd(others, axis=0) > 0) & ~np.isnan(row)
            if varied.sum() < max(2, 0.5 * len(row)):
                continue
            for measure in (np.nansum, np.nanmean, np.nanmedian):
                alike = np.isclose(row, measure(others, axis=0), rtol=1e-3, atol=0)
                if alike[varied].mean() >= 0.9:
                    return names[-count:]
    return []


# --- what the numbers are ---------------------------------------------------------------------


def _numbers(table: Table) -> tuple[np.ndarray, np.ndarray, bool]:
    """The values (of a large table of some rows), the observed ones, whether all are whole."""
    n, p = table.shape
    rows = np.arange(n)
    if n * p > MOST_ENTRIES:
        rows = np.sort(np.random.default_rng(0).permutation(n)[: max(10, MOST_ENTRIES // p)])
    values = Table(table.values[rows], table.ids[rows], table.features).dense()
    observed = values[~np.isnan(values)]
    return values, observed, bool((observed == np.round(observed)).all())


def _missing(advice: Advice, given: ReadOptions) -> None:
    """A code or zeros that mean missing."""
    values, observed, whole = _numbers(advice.table)
    code = _missing_code(values)
    if code is not None and code not in advice.options.missing_value:
        share = np.mean(values == float(code))
        advice._add(f"{code} makes up {share:.1%} of the entries and is far from all other values, "
                    "like a code for missing values", missing_value=(code,))  # fmt: skip
        return
    others = observed[observed != 0]
    # Among a few values that repeat 0 is an answer, among whole ones of both signs a difference,
    # and beside one other value it means no.
    fewest = FEW_VALUES if whole else min(FEW_VALUES, len(others) / 2)
    answers = len(np.unique(others)) < fewest or (whole and observed.min() < 0)
    binary = [len(np.unique(x[x != 0])) < 2 for x in values.T]
    zeros = (values == 0) & ~np.array(binary)
    enough = zeros.sum() > 2 and zeros.mean() >= 0.1 and len(observed) > 0.99 * values.size
    if enough and not (answers or advice.preparation.log1p or advice.preparation.log2):
        reason = (
            f"{np.mean(values == 0):.0%} of the entries are exactly 0 and none is marked missing"
        )
        advice._add(f"{reason}, so 0 probably means 'not measured'", missing_value=("0",))


def _units(advice: Advice, given: ReadOptions) -> None:
    """Logarithm and normalisation, or a scale for each feature."""
    table, steps = advice.table, advice.preparation
    values, observed, whole = _numbers(table)
    positive = observed[observed > 0]
    if steps.log1p or steps.log2 or not observed.size:
        return
    centred = steps.center_rows or steps.zscore_rows  # which takes away what rows differ in
    counts = bool(positive.size and whole and np.median(positive) < INTENSITY)
    cells = "layer" in table.source  # AnnData
    lost = cells or "0" in advice.options.missing_value or len(observed) < 0.5 * values.size
    answers = whole and np.median([len(np.unique(x)) for x in values.T]) < FEW_VALUES
    may = positive.size and observed.min() >= 0 and (lost or not answers)
    if log := _logarithm(values, positive, counts) if may else None:
        advice._add(f"values range from {positive.min():.2g} to {positive.max():.2g}, so they are "
                    "compared on a logarithmic scale", **{log: True})  # fmt: skip
        uneven, kind = _unevenness(values, counts), "total" if counts else "median"
        if steps.normalize == "none" and uneven > 2 and not centred:
            advice._add(f"row {kind}s differ {uneven:.1f}-fold", normalize=kind)
    # Of more features than these one decides nothing alone.
    elif steps.scale == "none" and not centred and values.shape[1] < 500:
        spreads = by_row(values.T, np.std)
        times = spreads / np.median(spreads[spreads > 0]) if spreads.any() else spreads
        if times.max() > 6:
            widest = table.features[int(np.argmax(times))]
            advice._add(f"the spread of {widest!r} is {times.max():.0f} times that of a typical "
                        "feature and would dominate", scale="std")  # fmt: skip


def _missing_code(values: np.ndarray) -> str | None:
    """A code for missing that is frequent in several features, and far from their other values."""
    for code in (*CODES, 99):
        coded = values == code
        others = np.where(coded, np.nan, values)
        low, high = np.fmin.reduce(others), np.fmax.reduce(others)
        frequent = coded.sum(axis=0) >= 0.01 * (~np.isnan(values)).sum(axis=0)
        n_features = (coded.any(axis=0) & frequent & far_from(code, low, high)).sum()
        if n_features >= max(2, 0.1 * values.shape[1]):
            return str(code)
    return None


def _logarithm(values: np.ndarray, positive: np.ndarray, counts: bool) -> str | None:
    """The logarithm that suits the numbers, if any: log1p for counts, log2 for intensities."""
    middle = float(np.median(positive))
    if counts:
        return "log1p" if positive.max() > 20 * middle else None
    above = np.where(values > 0, values, np.nan)
    means = by_row(above.T, np.mean)
    low, high = np.quantile(means[means > 0], [0.05, 0.95]) if means.any() else (1.0, 1.0)
    skew = by_row(above.T, lambda x: np.quantile(x, 0.95) / np.median(x))
    intensities = middle >= INTENSITY and positive.max() > 30 * positive.min()
    over_decades = len(means) >= PANEL and high > SPAN * low
    return "log2" if intensities or over_decades or np.median(skew) > 4 else None


def _unevenness(values: np.ndarray, counts: bool) -> float:
    """90th over 10th percentile of the sizes of rows: totals, or medians of their ratios."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows and features without a value
        above = np.where(values > 0, values, np.nan)
        ratios = above / np.nanmedian(above, axis=0)
        sizes = np.nansum(above, axis=1) if counts else np.nanmedian(ratios, axis=1)
    sizes = sizes[sizes > 0]
    low, high = np.quantile(sizes, [0.1, 0.9]) if sizes.size > 3 else (1.0, 1.0)
    return float(high / low)
