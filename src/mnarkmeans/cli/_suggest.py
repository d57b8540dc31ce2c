"""What a table seems to need before it can be clustered, told from its names and its range.

Nothing is done in silence: `fit` tells which options it would add, `diagnose` names the command.
What the user has said is never contradicted; only what was left open is suggested.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ._command import quoted
from ._groups import words
from ._options import Normalize, Reading, Scale, Source, Steps
from ._table import Table

# One column for each sample, as programs write them; where a file has several kinds, the first.
SAMPLE_COLUMNS = (
    "LFQ intensity *", "* MaxLFQ Intensity", "Reporter intensity corrected *", "Intensity *",
    "* Intensity", "Abundances (Normalized)*", "Abundance: *", "*.PG.Quantity", "*.raw", "*.mzML",
    "*.wiff", "*.d", "*Peak area",
)  # fmt: skip
FEATURE_WORDS = {
    "gene", "genes", "gene name", "gene names", "gene_name", "gene_id", "gene id", "geneid",
    "protein", "proteins", "protein id", "protein ids", "protein.ids", "protein.group",
    "majority protein ids", "accession", "metabolite", "metabolites", "lipid", "compound",
    "compounds", "compound name", "analyte", "feature", "probe_id", "transcript", "transcript_id",
}  # fmt: skip
ABOUT_FEATURES = {
    "length", "mass", "mz", "m/z", "rt", "retention time", "rt [min]", "mol. weight [kda]", "score",
    "q-value", "start", "end", "peptides", "chromosome", "charge",
}  # fmt: skip
CLASSES = {
    "group", "groups", "class", "label", "labels", "cluster", "condition", "batch", "treatment",
    "target", "outcome", "diagnosis", "cell type", "celltype", "cell_type", "plate", "site",
}  # fmt: skip
FEW_VALUES = 12  # of a column that is a class, whatever it is called
FLAGS = ("Reverse", "Potential contaminant", "Contaminant", "Only identified by site")
MANY_ZEROS = 0.05  # share of exact zeros from which they may be gaps
OFTEN = 0.01  # share of entries from which a value may be a code
FEW_GAPS = 0.01  # where nothing else is marked as missing
INTENSITY = 1000.0  # median of numbers that are intensities and not logarithms of them
WIDE = 30.0  # largest over least intensity, from which a logarithm is usual
SKEWED = 4.0  # 95th percentile over median, in the middle feature
UNEVEN_ROWS = 2.0  # 90th over 10th percentile of the totals of rows
LOUD = 6.0  # largest spread of a feature over the middle one
MOSTLY_MISSING = 0.8
MOST_CLUSTERS, ROWS_OF_A_CLUSTER = 8, 4
MOST_LOOKED_AT = 2_000_000  # entries


@dataclass(frozen=True)
class Hint:
    """Options to add, and why."""

    why: str
    reading: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)

    def typed(self) -> str:
        """The options as they are typed."""
        said = [*words(Reading(**self.reading)), *words(Steps(**self.steps))]
        return " ".join(map(quoted, said))

    def added_to(self, source: Source) -> Source:
        return replace(
            source,
            reading=replace(source.reading, **self.reading),
            steps=replace(source.steps, **self.steps),
        )


def advised(source: Source, read: Callable[[Source], Table]) -> tuple[Source, list[Hint]]:
    """The source with all options that seem to be needed, and why."""
    table = read(source)
    hints = structure_hints(table, source.reading)
    for hint in hints:
        source = hint.added_to(source)
    if hints:
        table = read(source)
    more = value_hints(table, source.reading, source.steps)
    if any(hint.reading for hint in more):  # a code for missing: the rest is seen without it
        first = [hint for hint in more if hint.reading]
        for hint in first:
            source = hint.added_to(source)
        more = first + value_hints(read(source), source.reading, source.steps)
    for hint in more:
        source = hint.added_to(source)
    return source, [*hints, *more]


def command_for(source: Source, rows: int) -> str:
    """The one command that clusters this table; the number of clusters is chosen."""
    most = max(2, min(MOST_CLUSTERS, rows // ROWS_OF_A_CLUSTER))
    name = source.data.name.split(".")[0] or "table"
    said = ["mnarkmeans", "select", str(source.data), "-k", f"2:{most}" if most > 2 else "2"]
    said += [*words(source.reading), *words(source.steps), *words(source), "-o", f"{name}-clusters"]
    return " ".join(map(quoted, said))


# --- which rows and columns -------------------------------------------------------------------


def structure_hints(table: Table, reading: Reading) -> list[Hint]:
    """Which columns are samples, whether columns are at all, which rows are no measurements."""
    names = [str(i) for i in table.ids] if reading.transpose else table.features
    hints = []
    family = None if reading.columns else family_of(names)
    if family is not None:
        others = [name for name in names if not fnmatchcase(name, family)]
        if others:
            hints.append(Hint(f"samples are the columns {family!r}", reading={"columns": [family]}))
    about = [n for n in names if n.strip().lower() in ABOUT_FEATURES]
    features_in_rows = table.id_name.strip().lower() in FEATURE_WORDS
    if not reading.transpose and (family is not None or features_in_rows):
        hints.append(Hint("rows are features and columns samples", reading={"transpose": True}))
        if family is None and about and not reading.drop:
            hints.append(
                Hint(f"{about[0]!r} describes features, it is no sample", reading={"drop": about})
            )
    known = [] if reading.transpose or reading.columns or reading.drop else _classes(table)
    if known:
        hints.append(
            Hint(f"{known[0]!r} looks like a known class, no measurement", reading={"drop": known})
        )
    flags = [n for n, why in table.left_out if n in FLAGS and not why.startswith("no value")]
    if flags and not reading.drop_rows:
        rules = [f"{name}=+" for name in flags]
        hints.append(Hint("rows marked + are decoys or contaminants", reading={"drop_rows": rules}))
    return hints


def _classes(table: Table) -> list[str]:
    """Columns that are called like classes and have few values, all of them whole."""
    found = []
    for j, name in enumerate(table.features):
        if name.strip().lower() in CLASSES and table.shape[1] > 1:
            column = table.with_features(np.array([j])).dense()[:, 0]
            values = np.unique(column[~np.isnan(column)])
            if len(values) <= FEW_VALUES and (values == np.round(values)).all():
                found.append(name)
    return found


def family_of(names: Sequence[str]) -> str | None:
    """The first pattern of sample columns that three names have.

    Examples
    --------
    >>> family_of(["Peptides", *(f"Intensity {i}" for i in "abc")])
    'Intensity *'
    """
    for pattern in SAMPLE_COLUMNS:
        if sum(fnmatchcase(name, pattern) for name in names) >= 3:
            return pattern
    return None


# --- what the numbers are ---------------------------------------------------------------------


def value_hints(table: Table, reading: Reading, steps: Steps) -> list[Hint]:
    """Zeros that may be gaps, numbers that want a logarithm, rows and features out of scale."""
    look = _Look.at(table)
    if look is None:
        return []
    code = look.code()
    if code is not None and f"{code:g}" not in reading.codes:
        return [
            Hint(
                f"{code:g} is found {look.share_of(code):.0%} of the time and lies far from all "
                "other values, as a code for missing does",
                reading={"missing_codes": [*reading.codes, f"{code:g}"]},
            )
        ]
    if look.least < 0 or steps.log1p or steps.log2:
        return _scale_hints(look, steps, log=None)
    hints = []
    zeros = look.zero_share >= MANY_ZEROS and look.gap_share < FEW_GAPS
    zeros = zeros and "0" not in reading.codes
    log = look.logarithm()
    if zeros:
        hints.append(
            Hint(
                f"{look.zero_share:.0%} of the entries are exactly 0 and nothing else is marked as "
                "missing, as where 0 means not measured",
                reading={"missing_codes": [*reading.codes, "0"]},
            )
        )
    if log is not None:
        hints.append(Hint(f"values run from {look.low:.2g} to {look.high:.2g}", steps={log: True}))
        if steps.normalize == Normalize.none and look.uneven_rows > UNEVEN_ROWS:
            kind = Normalize.total if look.counts else Normalize.median
            hints.append(
                Hint(f"rows differ {look.uneven_rows:.1f}-fold in size", steps={"normalize": kind})
            )
    mostly = float(np.mean(look.missing_by_feature(zeros) > MOSTLY_MISSING))
    if mostly > 0 and table.shape[1] >= 20 and steps.max_missing is None:
        hints.append(
            Hint(
                f"{mostly:.0%} of the features are missing in more than 80 % of the rows",
                steps={"max_missing": MOSTLY_MISSING},
            )
        )
    return hints + _scale_hints(look, steps, log)


def _scale_hints(look: _Look, steps: Steps, log: str | None) -> list[Hint]:
    logs = log is not None or steps.log1p or steps.log2
    if logs or steps.scale != Scale.none or look.loudest <= LOUD:
        return []
    name = look.features[look.loudest_at]
    return [
        Hint(
            f"{name!r} spreads {look.loudest:.0f} times as far as the middle feature and would "
            "decide alone",
            steps={"scale": Scale.std},
        )
    ]


@dataclass(frozen=True)
class _Look:
    """Some rows of the table, their numbers, and what these are like."""

    values: np.ndarray  # (n, p), NaN for gaps
    features: list[str]

    @classmethod
    def at(cls, table: Table) -> _Look | None:
        n, p = table.shape
        rows = np.arange(n)
        if n * p > MOST_LOOKED_AT:
            rows = np.sort(np.random.default_rng(0).permutation(n)[: max(10, MOST_LOOKED_AT // p)])
        values = table.values[rows]
        part = Table(values, table.ids[rows], table.features).dense()
        return cls(part, table.features) if np.isfinite(part).any() else None

    @property
    def least(self) -> float:
        return float(np.nanmin(self.values))

    def share_of(self, value: float) -> float:
        return float(np.mean(self.values == value))

    def code(self) -> float | None:
        """The least or greatest value, if it comes often and far from all others: -99, 9999."""
        values, times = np.unique(self.values[~np.isnan(self.values)], return_counts=True)
        if len(values) < 5:
            return None
        for end, next_to, rest in ((0, 1, values[1:]), (-1, -2, values[:-1])):
            far = abs(values[end] - values[next_to]) > rest[-1] - rest[0]
            if far and times[end] >= OFTEN * times.sum() and values[end] != 0:
                return float(values[end])
        return None

    @property
    def positive(self) -> np.ndarray:
        return self.values[self.values > 0]

    @property
    def zero_share(self) -> float:
        return float(np.mean(self.values == 0))

    @property
    def gap_share(self) -> float:
        return float(np.mean(np.isnan(self.values)))

    @property
    def counts(self) -> bool:
        """Whole numbers, most of them small."""
        whole = self.positive
        return bool(
            whole.size and (whole == np.round(whole)).all() and np.median(whole) < INTENSITY
        )

    @property
    def low(self) -> float:
        return float(self.positive.min()) if self.positive.size else 0.0

    @property
    def high(self) -> float:
        return float(self.positive.max()) if self.positive.size else 0.0

    def logarithm(self) -> str | None:
        """The logarithm that suits the range, if any: log1p for counts, log2 for intensities."""
        if not self.positive.size:
            return None
        ratios = self._per_feature(lambda x: np.quantile(x, 0.95) / np.median(x))
        middle = float(np.median(self.positive))
        if self.counts:
            return "log1p" if self.high > 20 * middle else None
        large = middle >= INTENSITY and self.high > WIDE * self.low
        return "log2" if large or np.median(ratios) > SKEWED else None

    @property
    def uneven_rows(self) -> float:
        """How many times larger the largest rows are: in total, or in their middle feature."""
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

    def missing_by_feature(self, zeros: bool) -> np.ndarray:
        gaps = np.isnan(self.values)
        return (gaps | (self.values == 0) if zeros else gaps).mean(axis=0)

    @property
    def _spreads(self) -> np.ndarray:
        return self._per_feature(np.std, positive=False)

    @property
    def loudest(self) -> float:
        spreads = self._spreads
        middle = float(np.median(spreads[spreads > 0])) if (spreads > 0).any() else 0.0
        return float(spreads.max() / middle) if middle > 0 and len(spreads) < 500 else 1.0

    @property
    def loudest_at(self) -> int:
        return int(np.argmax(self._spreads))

    def _per_feature(self, measure: Any, positive: bool = True) -> np.ndarray:
        parts = (c[c > 0] if positive else c[~np.isnan(c)] for c in self.values.T)
        return np.array([measure(part) if part.size >= 2 else 0.0 for part in parts])
