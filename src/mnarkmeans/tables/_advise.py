"""What a table seems to need before it can be clustered, from its names and its numbers.

Suggestions come in the order in which they are applied: which columns and rows (names), which
numbers mean missing, which preparation. What the user has said is never contradicted. Those that
are certain, because a known program wrote the file, are needed for a sensible result.

Whether a logarithm is due is a question of the noise. It is of one size for all features where
values are logarithms already, and grows with the value where it is proportional to it:

    log sd_j = a + b log mean_j,     b = 0 additive, 1/2 counts, 1 proportional
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._cells import (
    DECOYS,
    FLAGGED,
    FLAGS,
    ROLES,
    SURVEY_FACTS,
    are_accessions,
    control_patterns,
    describes_features,
    has_role,
    matches,
    names_features,
    sample_family,
)
from ._prepare import Preparation
from ._read import read_content
from ._table import ReadOptions, Table, quoted
from ._tidy import FEW_WORDS, UnreadColumns, running_numbers, tidy

MOST_ENTRIES = 2_000_000  # looked at; of larger tables a sample of the rows
MOST_CODES = 3  # for missing, in one table
MOST_CLUSTERS, ROWS_PER_CLUSTER = 8, 4  # of the command
SUMMARY_ROWS = 6  # at the end of a table that may sum up the others
FEWEST_VALUES = 5  # of a feature, below which its means are hardly more than single values
PANEL = 20  # features that were measured together and share a unit
INTENSITY = 1000.0  # median of intensities that are no logarithms yet


@dataclass(frozen=True)
class Suggestion:
    """Options to add, and why."""

    reason: str
    options: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)
    certain: bool = False

    def typed(self) -> str:
        """The options as they are typed on the command line."""
        options = ReadOptions(**self.options).typed() + Preparation(**self.steps).typed()
        return " ".join(map(quoted, options))

    def __str__(self) -> str:
        return f"{self.typed()}: {self.reason}" if self.typed() else self.reason


@dataclass(frozen=True)
class Advice:
    """A table read as suggested, the preparation suggested for it, and the reasons.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"gene": ["A", "B", "C"], "s1": [1.0, 2, 3], "s2": [2.0, 2, 4]})
    >>> print(advise(frame))
    - --transpose: rows are named by 'gene': they are features, and columns are samples
    - mnarkmeans select table -k 2 --transpose -o table-clusters
    """

    table: Table
    options: ReadOptions
    preparation: Preparation
    suggestions: list[Suggestion]

    @property
    def certain(self) -> list[Suggestion]:
        """Suggestions without which the result would be wrong."""
        return [s for s in self.suggestions if s.certain]

    def command(
        self,
        data: Any = None,
        verb: str = "select",
        clusters: int | str | None = None,
        more: tuple[str, ...] = (),
    ) -> str:
        """The one command that clusters this table; it chooses k if that is not given."""
        data = str(data or self.table.source.get("file", "table"))
        most = max(2, min(MOST_CLUSTERS, self.table.shape[0] // ROWS_PER_CLUSTER))
        k = str(clusters or (f"2:{most}" if most > 2 else "2"))
        name = re.split(r"[\\/]", data)[-1].split(".")[0] or "table"
        words = ["mnarkmeans", verb, data, "-k", k, *self.options.typed(),
                 *self.preparation.typed(), *more, "-o", f"{name}-clusters"]  # fmt: skip
        return " ".join(map(quoted, words))

    def __str__(self) -> str:
        lines = [*map(str, self.suggestions), self.command()]
        return "\n".join(f"- {line}" for line in lines)


def advise(
    source: Any, options: ReadOptions | None = None, preparation: Preparation | None = None
) -> Advice:
    """Read a file (or take a table) and find the options it needs, with a reason for each.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"gene": ["A", "B", "C"], "s1": [1.0, 2, 3], "s2": [2.0, 2, 4]})
    >>> advise(frame).suggestions[0].typed()
    '--transpose'
    """
    preparation = preparation or Preparation()
    if isinstance(source, Table):
        options = options or source.options
        if source.origin is None:
            return Advice(source, options, preparation, [])
        content, labels = source.origin.content, tuple(source.labels)
    else:
        labels = ()
        options = options or ReadOptions()
        content = read_content(source, options)
    suggestions: list[Suggestion] = []

    def add(more: list[Suggestion]) -> bool:
        nonlocal options, preparation
        for one in more:
            options, preparation = _with(options, one.options), _with(preparation, one.steps)
        suggestions.extend(more)
        return any(one.options for one in more)

    if content.source.get("encoding") == "cp1252" and options.encoding is None:
        reason = "the file is not UTF-8; Windows-1252 is what older spreadsheets write"
        add([Suggestion(reason, {"encoding": "cp1252"})])
    try:
        table = tidy(content, options, labels)
    except UnreadColumns as error:
        family = sample_family(error.names)
        if options.columns or not family or any(matches(n, (family,)) for n in error.columns):
            raise
        reason = f"the samples are the columns {family!r}"
        add([Suggestion(reason, {"columns": (family,)}, certain=True)])
        table = tidy(content, options, labels)
    first = options
    for look in (_structure, _samples):  # samples are recognised once the columns are known
        if add(look(table, options, first)):
            table = tidy(content, options, labels)
    for _ in range(MOST_CODES):
        more = _numbers(table, options, preparation)
        codes = [one for one in more if one.options]
        if not add(codes):
            break
        table = tidy(content, options, labels)  # the rest is seen without the missing values
    add([one for one in more if not one.options])
    return Advice(table, options, preparation, suggestions)


def _with(old: Any, new: dict[str, Any]) -> Any:
    """Options with others added; those that can be repeated go after what was given."""
    names = {f.name for f in fields(old)}
    return replace(old, **{
        name: (*getattr(old, name), *value) if isinstance(value, tuple) else value
        for name, value in new.items() if name in names
    })  # fmt: skip


# --- which rows and columns -------------------------------------------------------------------


def _structure(table: Table, options: ReadOptions, given: ReadOptions) -> list[Suggestion]:
    """Which columns are samples, whether rows are features, which of both are neither."""
    names = [str(i) for i in table.ids] if options.transpose else table.features
    out: list[Suggestion] = []
    family = sample_family(names)
    others = [name for name in names if family and not matches(name, (family,))]
    by_program = bool(family) and not options.columns
    if by_program and others:
        reason = f"the samples are the columns {family!r}, not {others[0]!r} and the like"
        out.append(Suggestion(reason, {"columns": (family,)}, certain=True))
    why = "rows are features, columns are samples" if family else _rows_are_features(table)
    if why and not options.transpose and given.columns:
        out.append(Suggestion(f"{why}: they are clustered by their profile over the samples",
                              steps={"center_rows": True}))  # fmt: skip
    elif why and not options.transpose:
        out.append(Suggestion(why, {"transpose": True}, certain=by_program or bool(family)))
    if (why or options.transpose) and not (family or options.columns or options.drop):
        about = [n for n in names if describes_features(n)]
        about += [] if options.transpose else [n for n in _counters(table) if n not in about]
        if about and 2 * len(about) < len(names):
            reason = f"{about[0]!r} describes features and is no sample"
            certain = _summary_among(table, about, names, options.transpose)
            out.append(Suggestion(reason, {"drop": tuple(about)}, certain=certain))
    elif not (why or options.transpose or options.columns or options.drop):
        for reason, found in (
            ("looks like a known class, not a measurement", _classes(table)),
            ("describes how the survey was taken and is no answer", _survey_facts(table)),
            ("looks like a running number, not a measurement", _counters(table)),
        ):
            if found:
                out.append(Suggestion(f"{found[0]!r} {reason}", {"drop": tuple(found)}))
    rules = [] if options.drop_rows else _decoys(table, options.transpose)
    if rules:
        reason = "decoys and contaminants are no measurements"
        out.append(Suggestion(reason, {"drop_rows": tuple(rules)}))
    return out


def _rows_are_features(table: Table) -> str | None:
    """Why the rows of this table are features, if they are."""
    if names_features(table.id_name):
        return f"rows are named by {table.id_name!r}: they are features, and columns are samples"
    ids = [str(name) for name in table.ids[:200]]
    if are_accessions(ids):
        return f"row names such as {ids[0]!r} are accessions: rows are features, columns samples"
    return None


def _classes(table: Table) -> list[str]:
    """Columns called like classes that have a few whole values."""
    found = []
    for j, name in enumerate(table.features):
        if name.strip().lower() in ROLES["class"] and table.shape[1] > 1:
            column = table.with_features(np.array([j])).dense()[:, 0]
            values = np.unique(column[~np.isnan(column)])
            if len(values) <= FEW_WORDS and (values == np.round(values)).all():
                found.append(name)
    return found


def _survey_facts(table: Table) -> list[str]:
    found = [name for name in table.features if name in SURVEY_FACTS]
    return found if len(found) >= 3 else []


def _counters(table: Table) -> list[str]:
    """Columns that count the rows in their order, beside others that do not."""
    start = Table(table.values[:5], table.ids[:5], table.features).dense()
    maybe = np.array(running_numbers(start), dtype=int)
    if not maybe.size:
        return []
    found = running_numbers(table.with_features(maybe).dense())
    return [table.features[maybe[i]] for i in found] if len(found) < table.shape[1] else []


def _decoys(table: Table, transposed: bool) -> list[str]:
    """Rules for rows that a program marked as decoys or contaminants, by a flag or a name."""
    rules = []
    for name in FLAGS:
        words = table.categories.get(name, ())
        mark = next((w for w in words if w.strip().lower() in FLAGGED), None)
        if mark is not None:
            rules.append(f"{name}={mark}")
    named_by = table.source.get("id_column")
    if rules or not named_by:
        return rules
    names = [str(name) for name in (table.features if transposed else table.ids)]
    return [f"{named_by}={p}" for p in DECOYS if any(matches(name, (p,)) for name in names)]


def _samples(table: Table, options: ReadOptions, given: ReadOptions) -> list[Suggestion]:
    """Controls, and rows that sum up others, which are read like samples and are none."""
    out = []
    reason = "pools and blanks are no samples"
    named_by = table.source.get("id_column")
    if options.transpose:
        patterns = [] if given.drop else control_patterns([str(name) for name in table.ids])
        if patterns:
            out.append(Suggestion(reason, {"drop": tuple(patterns)}))
    elif not given.drop_rows:
        rules: list[str] = []
        for column, values in table.categories.items():
            marked = [value for value in values if has_role(value, "control")]
            if marked and len(marked) < len(values):
                rules = rules or [f"{column}={value}" for value in marked]
        if not rules and named_by:
            rules = [f"{named_by}={p}" for p in control_patterns([str(i) for i in table.ids])]
        if rules:
            out.append(Suggestion(reason, {"drop_rows": tuple(rules)}))
    if not named_by:
        return out
    summaries = _summary_rows(table, options.transpose)
    rules = [f"{named_by}={name}" for name in summaries]
    rules += [f"{named_by}="] if table.source.get("unnamed_rows") else []
    if rules := [rule for rule in rules if rule not in options.drop_rows]:
        why = f"{summaries[0]!r} sums up other rows" if summaries else "rows without a name"
        out.append(Suggestion(why if summaries else f"{why} are no samples",
                              {"drop_rows": tuple(rules)}))  # fmt: skip
    return out


def _summary_rows(table: Table, transposed: bool) -> list[str]:
    """Names of the last rows of the file, from the first that is the sum or the mean of all above.

    Told from the numbers: it works in every language.
    """
    names = [str(name) for name in (table.features if transposed else table.ids)]
    if len(names) <= 2 * SUMMARY_ROWS or math.prod(table.shape) > MOST_ENTRIES:
        return []
    values = table.dense().T if transposed else table.dense()
    for count in range(SUMMARY_ROWS, 0, -1):
        if _sums_up(values[-count], values[:-count]):
            return names[-count:]
    return []


def _summary_among(table: Table, about: list[str], names: list[str], transposed: bool) -> bool:
    """Whether one of these columns of the file is the sum or the mean of the others."""
    if math.prod(table.shape) > MOST_ENTRIES:
        return False
    values = table.dense() if transposed else table.dense().T
    inside = np.isin(names, about)
    return any(_sums_up(column, values[~inside]) for column in values[inside])


def _sums_up(row: np.ndarray, others: np.ndarray) -> bool:
    """Whether a row is the sum, mean or median of others, to three digits in most columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value
        varied = (np.nanstd(others, axis=0) > 0) & ~np.isnan(row)
        if varied.sum() < max(2, 0.5 * len(row)):
            return False
        found = (measure(others, axis=0) for measure in (np.nansum, np.nanmean, np.nanmedian))
        return any(np.isclose(row, x, rtol=1e-3, atol=0)[varied].mean() >= 0.9 for x in found)


# --- what the numbers are ---------------------------------------------------------------------


def _numbers(table: Table, options: ReadOptions, steps: Preparation) -> list[Suggestion]:
    """Codes and zeros that mean missing, logarithm, normalisation, rare features, scale."""
    profile = Profile.of(table)
    if profile is None:
        return []
    code = profile.code()
    if code is not None and _text(code) not in options.missing_value:
        reason = (
            f"{_text(code)} makes up {np.mean(profile.values == code):.1%} of the entries and lies "
            "far from the other values, as a code for missing does"
        )
        return [Suggestion(reason, {"missing_value": (_text(code),)})]
    if steps.log1p or steps.log2:
        return []
    out = []
    cells = table.source.get("format") in ("h5ad", "anndata")  # zeros were read as missing
    coded = cells or "0" in options.missing_value
    zeros = profile.zeros_are_missing and not coded
    lost = zeros or coded or sp.issparse(table.values) or profile.missing_share >= 0.5
    log = profile.logarithm() if profile.least >= 0 and (lost or not profile.answers) else None
    if zeros:
        reason = (
            f"{profile.zero_share:.0%} of the entries are exactly 0 and nothing else is marked as "
            "missing, as where 0 means not measured"
        )
        out.append(Suggestion(reason, {"missing_value": ("0",)}))
    if log is not None:
        reason = f"values range from {profile.low:.2g} to {profile.high:.2g}"
        out.append(Suggestion(reason, steps={log: True}))
        uneven = profile.uneven_rows
        if steps.normalize == "none" and uneven > 2:
            kind = "total" if profile.counts else "median"
            reason = f"rows differ {uneven:.1f}-fold in size"
            out.append(Suggestion(reason, steps={"normalize": kind}))
    n = table.shape[0]
    few = profile.observed_by_feature(zeros) * n / len(profile.values) < FEWEST_VALUES
    if few.any() and not few.all() and table.shape[1] >= PANEL and steps.max_missing is None:
        digits = 10 ** len(str(n))
        share = max(math.ceil((1 - FEWEST_VALUES / n) * digits) / digits, 0.5)
        reason = f"{few.sum():,} of {len(few):,} features have fewer than {FEWEST_VALUES} values"
        out.append(Suggestion(reason, steps={"max_missing": share}))
    if log is None and steps.scale == "none" and not (steps.center_rows or steps.zscore_rows):
        widest, times = profile.widest
        if times > 6:
            reason = f"{widest!r} spreads {times:.0f} times as far as the median feature"
            out.append(Suggestion(reason, steps={"scale": "std"}))
        elif profile.units_differ and not profile.answers:
            reason = "features spread in proportion to their means, as with units of their own"
            out.append(Suggestion(reason, steps={"scale": "std"}))
    return out


@dataclass(frozen=True)
class Profile:
    """Some rows of a table, and what their numbers are like."""

    values: np.ndarray  # (n, p), NaN for missing
    features: list[str]

    @classmethod
    def of(cls, table: Table) -> Profile | None:
        """The profile of a table; None where there is nothing to see."""
        n, p = table.shape
        rows = np.arange(n)
        if n * p > MOST_ENTRIES:
            rows = np.sort(np.random.default_rng(0).permutation(n)[: max(10, MOST_ENTRIES // p)])
        part = Table(table.values[rows], table.ids[rows], table.features).dense()
        return cls(part, table.features) if np.isfinite(part).any() else None

    @cached_property
    def positive(self) -> np.ndarray:
        return self.values[self.values > 0]

    @property
    def least(self) -> float:
        return float(np.nanmin(self.values))

    @property
    def low(self) -> float:
        return float(self.positive.min()) if self.positive.size else 0.0

    @property
    def high(self) -> float:
        return float(self.positive.max()) if self.positive.size else 0.0

    @property
    def zero_share(self) -> float:
        return float(np.mean(self.values == 0))

    @property
    def missing_share(self) -> float:
        return float(np.mean(np.isnan(self.values)))

    @cached_property
    def whole(self) -> bool:
        seen = self.values[~np.isnan(self.values)]
        return bool((seen == np.round(seen)).all())

    @property
    def counts(self) -> bool:
        """Whole numbers, most of them small."""
        return bool(self.positive.size and self.whole and np.median(self.positive) < INTENSITY)

    @property
    def zeros_are_missing(self) -> bool:
        """One zero in ten and no other missing values, where 0 is no answer and no difference."""
        if self.zero_share < 0.1 or self.missing_share >= 0.01:
            return False
        if not self.whole:
            return True
        others = np.unique(self.positive)
        few = len(others) < FEW_WORDS and self.zero_share < 0.5
        return self.least >= 0 and len(others) >= 2 and not few

    @cached_property
    def _distinct(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The distinct values of every feature, and how often they occur."""
        return [np.unique(x[~np.isnan(x)], return_counts=True) for x in self.values.T]

    @cached_property
    def scales(self) -> list[np.ndarray]:
        """The distinct values of every feature with few, all of them whole."""
        few = (x for x, _ in self._distinct if 0 < len(x) < FEW_WORDS)
        return [x for x in few if (x == np.round(x)).all()]

    @property
    def answers(self) -> bool:
        """Few whole numbers in most features: a survey."""
        return len(self.scales) > 0.5 * len(self.features)

    def code(self) -> float | None:
        """A value that is frequent and far from all others (-99) in the table or in several
        features, or that lies beyond a hole in the scale of most answers (1 to 5, then 9)."""
        varied = np.array([len(x) > 1 for x, _ in self._distinct])
        part = self.values[:, varied]
        found = _far_end(*np.unique(part[~np.isnan(part)], return_counts=True), fewest=5)
        if found is not None:
            return found
        far = Counter(_far_end(x, times) for x, times in self._distinct)
        scales = [x for x in self.scales if len(x) > 3]
        beyond = Counter(
            float(x[-1])
            for x in scales
            if (np.diff(x) > 1).sum() == 1 and np.diff(x)[:2].max() == 1
        )
        del far[None]
        for ends, fewest in ((far, 0.1 * len(self.features)), (beyond, 2 / 3 * len(scales))):
            value, times = ends.most_common(1)[0] if ends else (None, 0)
            if value is not None and times >= max(2, fewest):
                return value
        return None

    def logarithm(self) -> str | None:
        """The logarithm that suits the numbers, if any: log1p for counts, log2 for intensities."""
        if not self.positive.size:
            return None
        middle = float(np.median(self.positive))
        if self.counts:
            return "log1p" if self.high > 20 * middle else None
        if middle >= INTENSITY and self.high > 30 * self.low:
            return "log2"
        skew = self._by_feature(lambda x: np.quantile(x, 0.95) / np.median(x))
        return "log2" if np.median(skew) > 4 or self.noise_grows else None

    @property
    def noise_grows(self) -> bool:
        """Whether b > 1/2 over the upper half of a panel; near zero all noise looks small."""
        means, spreads = self._moments
        if len(means) < PANEL:
            return False
        upper = means >= np.median(means)
        low, high = np.quantile(means[upper], [0.0, 0.95])
        slope = np.polyfit(np.log(means[upper]), np.log(spreads[upper]), 1)[0]
        return bool(high >= 4 * low and slope > 0.5)

    @property
    def units_differ(self) -> bool:
        """Whether a few features spread in proportion to their means, whichever is left out."""
        means, spreads = self._moments
        if self.least < 0 or not 6 <= len(means) < PANEL or np.ptp(np.log(spreads)) < np.log(4):
            return False
        x, y = np.log(means), np.log(spreads)
        rest = (np.delete(np.arange(len(x)), j) for j in range(len(x)))
        return min(float(np.corrcoef(x[r], y[r])[0, 1]) for r in rest) > 0.85

    @property
    def uneven_rows(self) -> float:
        """90th over 10th percentile of the sizes of rows: totals, or medians of their ratios."""
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # rows and features without a value
            if self.counts:
                sizes = np.nansum(self.values, axis=1)
            else:
                seen = np.where(self.values > 0, self.values, np.nan)
                sizes = np.nanmedian(seen / np.nanmedian(seen, axis=0), axis=1)
        sizes = sizes[sizes > 0]
        low, high = np.quantile(sizes, [0.1, 0.9]) if sizes.size > 3 else (1.0, 1.0)
        return float(high / low)

    def observed_by_feature(self, zeros: bool) -> np.ndarray:
        """(p,) how many values each feature has; zeros count as missing if they are."""
        missing = np.isnan(self.values)
        return (~(missing | (self.values == 0) if zeros else missing)).sum(axis=0)

    @property
    def widest(self) -> tuple[str, float]:
        """The feature with the largest spread, and how many times the median one; of many features
        one decides nothing alone."""
        spreads = self._by_feature(np.std, positive=False)
        middle = float(np.median(spreads[spreads > 0])) if (spreads > 0).any() else 0.0
        at = int(np.argmax(spreads))
        times = spreads[at] / middle if middle > 0 and len(spreads) < 500 else 1.0
        return self.features[at], float(times)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of the positive values of features that have both."""
        means, spreads = self._by_feature(np.mean), self._by_feature(np.std)
        usable = (means > 0) & (spreads > 0)
        return means[usable], spreads[usable]

    def _by_feature(self, measure: Callable[[Any], Any], positive: bool = True) -> np.ndarray:
        parts = (c[c > 0] if positive else c[~np.isnan(c)] for c in self.values.T)
        return np.array([measure(part) if part.size >= 2 else 0.0 for part in parts])


def _text(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _far_end(values: np.ndarray, times: np.ndarray, fewest: int = 3) -> float | None:
    """The first or last of sorted values if it is frequent and far: beyond the span of the rest."""
    if len(values) < fewest:
        return None
    for end, nearest, rest in ((0, 1, values[1:]), (-1, -2, values[:-1])):
        far = abs(values[end] - values[nearest]) > rest[-1] - rest[0]
        is_code = values[end] != 0 and float(values[end]).is_integer()
        if far and is_code and times[end] >= 0.01 * times.sum():
            return float(values[end])
    return None
