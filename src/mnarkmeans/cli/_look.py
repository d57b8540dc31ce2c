"""What the numbers of a table are like: counts, intensities, logarithms, a scale of answers.

Whether a logarithm is due is a question of the noise. It is of one size for all features where
values are measured on their own scale or are logarithms already, and grows with the value where it
is a share of it:

    log sd_j = a + b log mean_j,     b = 0 additive, 1/2 counts, 1 proportional

b is fitted over the upper half of the features of a panel (near zero all noise looks small), where
their means differ enough to tell. Of few features, which may have units of their own, each must be
skewed by itself.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ._table import Table

SHARED = 0.1  # share of the features in which a code lies far from the rest
OFTEN = 0.01  # share of entries from which a value may be a code
INTENSITY = 1000.0  # median of numbers that are intensities and not logarithms of them
WIDE = 30.0  # largest over least intensity, from which a logarithm is usual
SKEWED = 4.0  # 95th percentile over median, in the middle feature
PANEL = 20  # so many features come from one instrument and share a unit
SPAN, GROWING = 4.0, 0.5  # of the means in a panel; b from which the noise grows with the value
SOME = 6  # features, from which a correlation tells
MANY = 500  # features, of which one decides nothing alone
TIGHT = 0.85  # correlation of means and spreads from which they go together
FEW_ANSWERS = 12  # different whole numbers: a scale of answers, on which 0 is one
MOST_LOOKED_AT = 2_000_000  # entries
# Codes as people write them: 99, 998, 88, 777; and below zero -1, -9, -99, -888.
_USUAL_CODE = re.compile(r"^(-[19]|-?(9{2,}|8{2,}|7{2,}|9+[78]))$")


@dataclass(frozen=True)
class Look:
    """Some rows of the table, their numbers, and what these are like."""

    values: np.ndarray  # (n, p), NaN for gaps
    features: list[str]

    @classmethod
    def at(cls, table: Table) -> Look | None:
        """Look at a table; None where there is nothing to see."""
        n, p = table.shape
        rows = np.arange(n)
        if n * p > MOST_LOOKED_AT:
            rows = np.sort(np.random.default_rng(0).permutation(n)[: max(10, MOST_LOOKED_AT // p)])
        part = Table(table.values[rows], table.ids[rows], table.features).dense()
        return cls(part, table.features) if np.isfinite(part).any() else None

    @property
    def least(self) -> float:
        return float(np.nanmin(self.values))

    def share_of(self, value: float) -> float:
        return float(np.mean(self.values == value))

    def code(self) -> float | None:
        """A value that comes often and far from all others: -99, 9999.

        Far from the whole table; or, if it is written as codes are, far from the rest of each of
        several columns, whatever the others hold (99 among answers, and an age).
        A column that holds nothing else is a constant, not a code.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # features without a value
            ends = np.array([np.nanmin(self.values, axis=0), np.nanmax(self.values, axis=0)])
        found = _far_end(self.values[:, ends[0] < ends[1]])
        if found is not None:
            return found
        many = max(2, SHARED * len(self.features))
        for value in np.unique(ends[np.isfinite(ends)]).tolist():
            if _USUAL_CODE.match(f"{value:.15g}"):
                columns = self.coded(value)
                if len(columns) >= many and _far_end(self.values[:, columns]) == value:
                    return float(value)
        return self._beyond_a_scale(many)

    def _beyond_a_scale(self, many: float) -> float | None:
        """A 7, 8 or 9 above the answers of most columns with a hole between: 1 to 5, then 9.

        A scale has no hole. Where two columns in three that share it have the same one, what lies
        beyond it is none of the answers.
        """
        found: Counter[float] = Counter()
        scales = [np.unique(x[~np.isnan(x)]) for x in self.values.T]
        scales = [x for x in scales if 3 < len(x) < FEW_ANSWERS and (x == np.round(x)).all()]
        for answers in scales:
            holes = np.flatnonzero(np.diff(answers) > 1)
            if answers[-1] in (7, 8, 9) and len(holes) == 1 and holes[0] >= 2:
                found[float(answers[-1])] += 1
        value, times = found.most_common(1)[0] if found else (0.0, 0)
        return value if times >= max(many, 2 / 3 * len(scales)) else None

    def coded(self, value: float) -> list[int]:
        """Columns in which this value lies far from the rest."""
        columns = np.flatnonzero((self.values == value).any(axis=0)).tolist()
        return [j for j in columns if _far_end(self.values[:, j], fewest=3) == value]

    def also_in(self, code: float) -> list[str]:
        """Features in which a code may be a value: it is there, and not far from the others."""
        coded = set(self.coded(code))
        there = np.flatnonzero((self.values == code).any(axis=0)).tolist()
        return [self.features[j] for j in there if j not in coded]

    @cached_property
    def positive(self) -> np.ndarray:
        return self.values[self.values > 0]

    @property
    def zero_share(self) -> float:
        return float(np.mean(self.values == 0))

    @property
    def gap_share(self) -> float:
        return float(np.mean(np.isnan(self.values)))

    @cached_property
    def whole(self) -> bool:
        seen = self.values[~np.isnan(self.values)]
        return bool((seen == np.round(seen)).all())

    @property
    def zero_may_be_a_value(self) -> bool:
        """Answers from 0 to 10, yes and no as 1 and 0; differences, whole and of both signs."""
        if not self.whole:
            return False
        if self.least < 0:
            return True
        others = np.unique(self.positive)
        return len(others) < 2 or (len(others) < FEW_ANSWERS and self.zero_share < 0.5)

    @property
    def answers(self) -> bool:
        """Whole numbers, and few of them, in most features: a survey, maybe with an age."""
        whole = [bool((x[~np.isnan(x)] == np.round(x[~np.isnan(x)])).all()) for x in self.values.T]
        return float(np.mean(np.array(whole) & (self._distinct < FEW_ANSWERS))) > 0.5

    @property
    def _distinct(self) -> np.ndarray:
        return self._per_feature(lambda x: len(np.unique(x)))

    @cached_property
    def counts(self) -> bool:
        """Whole numbers, most of them small."""
        return bool(self.positive.size and self.whole and np.median(self.positive) < INTENSITY)

    @property
    def low(self) -> float:
        return float(self.positive.min()) if self.positive.size else 0.0

    @property
    def high(self) -> float:
        return float(self.positive.max()) if self.positive.size else 0.0

    def logarithm(self) -> str | None:
        """The logarithm that suits the numbers, if any: log1p for counts, log2 for intensities."""
        if not self.positive.size:
            return None
        middle = float(np.median(self.positive))
        if self.counts:
            return "log1p" if self.high > 20 * middle else None
        if middle >= INTENSITY and self.high > WIDE * self.low:
            return "log2"
        ratios = self._per_feature(lambda x: np.quantile(x, 0.95) / np.median(x))
        return "log2" if np.median(ratios) > SKEWED or self.noise_grows() else None

    def noise_grows(self) -> bool:
        """Whether the spread of the features of a panel grows with their mean (b above)."""
        means, spreads = self._per_feature(np.mean), self._per_feature(np.std)
        usable = (means > 0) & (spreads > 0)
        if usable.sum() < PANEL:
            return False
        means, spreads = means[usable], spreads[usable]
        upper = means >= np.median(means)
        low, high = np.quantile(means[upper], [0.0, 0.95])
        if high < SPAN * low:
            return False
        return bool(np.polyfit(np.log(means[upper]), np.log(spreads[upper]), 1)[0] > GROWING)

    @property
    def units_differ(self) -> bool:
        """Whether a few features spread in proportion to their means: they have units of their own.

        The correlation of the logarithms is near 1 then, whichever feature is left out; where
        features are measured on one scale, spreads follow the means less closely.
        """
        means, spreads = self._per_feature(np.mean), self._per_feature(np.std)
        usable = (means > 0) & (spreads > 0)
        x, y = np.log(means[usable]), np.log(spreads[usable])
        if self.least < 0 or not SOME <= len(x) < PANEL or np.ptp(y) < np.log(SPAN):
            return False
        without = [np.delete(np.arange(len(x)), j) for j in range(len(x))]
        return min(float(np.corrcoef(x[rest], y[rest])[0, 1]) for rest in without) > TIGHT

    @cached_property
    def _sizes(self) -> np.ndarray:
        """(n,) sizes of the rows: their totals, or the middle of their ratios to all rows."""
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # rows and features without a value
            if self.counts:
                return np.nansum(self.values, axis=1)
            seen = np.where(self.values > 0, self.values, np.nan)
            return np.nanmedian(seen / np.nanmedian(seen, axis=0), axis=1)

    @property
    def uneven_rows(self) -> float:
        """How many times larger the largest rows are: in total, or in their middle feature."""
        sizes = self._sizes[self._sizes > 0]
        low, high = np.quantile(sizes, [0.1, 0.9]) if sizes.size > 3 else (1.0, 1.0)
        return float(high / low)

    @property
    def sizes_stand_out(self) -> bool:
        """Whether the sizes of the rows are a direction of their own among the logarithms.

        All p features share them, so that their variance s^2 makes an eigenvalue p s^2; noise of
        variance v alone makes none above v (1 + sqrt(p / n))^2.
        """
        known = self._sizes > 0
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            logs = np.log(np.where(self.values > 0, self.values, np.nan)[known])
            sizes = np.log(self._sizes[known])
            noise = np.nanmedian(np.nanvar(logs - sizes[:, None], axis=0))
        n, p = logs.shape
        return bool(n > 3 and p * np.var(sizes) > noise * (1 + np.sqrt(p / n)) ** 2)

    def levels_stand_out(self) -> bool:
        """The same of logarithms, whose rows differ by what was added to all of their values."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # rows and features without a value
            apart = self.values - np.nanmedian(self.values, axis=0)
            levels = np.nanmedian(apart, axis=1)
            noise = np.nanmedian(np.nanvar(apart - levels[:, None], axis=0))
        n, p = self.values.shape
        return bool(n > 3 and p * np.nanvar(levels) > noise * (1 + np.sqrt(p / n)) ** 2)

    def observed_by_feature(self, zeros: bool) -> np.ndarray:
        """(p,) how many values each feature has; zeros count as gaps, if they are."""
        gaps = np.isnan(self.values)
        return (~(gaps | (self.values == 0) if zeros else gaps)).sum(axis=0)

    @cached_property
    def _spreads(self) -> np.ndarray:
        return self._per_feature(np.std, positive=False)

    @property
    def loudest(self) -> float:
        spreads = self._spreads
        middle = float(np.median(spreads[spreads > 0])) if (spreads > 0).any() else 0.0
        return float(spreads.max() / middle) if middle > 0 and len(spreads) < MANY else 1.0

    @property
    def loudest_at(self) -> int:
        return int(np.argmax(self._spreads))

    def _per_feature(self, measure: Any, positive: bool = True) -> np.ndarray:
        parts = (c[c > 0] if positive else c[~np.isnan(c)] for c in self.values.T)
        return np.array([measure(part) if part.size >= 2 else 0.0 for part in parts])


def _far_end(part: np.ndarray, fewest: int = 5) -> float | None:
    """The least or greatest of some different values, if it comes often and far from all others."""
    values, times = np.unique(part[~np.isnan(part)], return_counts=True)
    if len(values) < fewest:
        return None
    for end, next_to, rest in ((0, 1, values[1:]), (-1, -2, values[:-1])):
        far = abs(values[end] - values[next_to]) > rest[-1] - rest[0]
        if far and times[end] >= OFTEN * times.sum() and values[end] != 0:
            return float(values[end])
    return None
