"""What a table seems to need before it can be clustered, told from its names and its range.

Nothing is done in silence: `fit` tells which options it would add, `diagnose` names the command.
What the user has said is never contradicted; only what was left open is suggested.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import scipy.sparse as sp

from ..missingness._diagnose import MANY_ZEROS
from ._command import quoted
from ._controls import control_patterns, control_rows, summary_rows
from ._errors import OtherEncoding, UnreadColumns, UserError
from ._groups import words
from ._look import Look
from ._options import Normalize, Reading, Scale, Source, Steps
from ._structure import (
    about_answers,
    counting,
    describing,
    family_of,
    flagged_rows,
    known_classes,
    rows_are_features,
)
from ._table import Table

FEW_GAPS = 0.01  # where nothing else is marked as missing
MANY_GAPS = 0.5  # share of gaps from which they may be counts of 0 that were not stored
UNEVEN_ROWS = 2.0  # 90th over 10th percentile of the sizes of rows
PROFILE = 100  # features, which are those of one instrument
NOTABLE = 1.2  # the same, where sizes stand out from the noise
LOUD = 6.0  # largest spread of a feature over the middle one
FEWEST_VALUES = 5  # of a feature, below which its means are hardly more than single values
MANY_FEATURES = 20  # of which some may be left out
MOST_CODES = 3  # for missing, in one table
MOST_CLUSTERS, ROWS_OF_A_CLUSTER = 8, 4


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
        """The source with these options; those that can be repeated are added to what was said."""
        said = source.reading
        reading: dict[str, Any] = {
            name: [*(getattr(said, name) or ()), *value] if isinstance(value, list) else value
            for name, value in self.reading.items()
        }
        return replace(
            source, reading=replace(said, **reading), steps=replace(source.steps, **self.steps)
        )


def advised(source: Source, read: Callable[[Source], Table]) -> tuple[Source, list[Hint]]:
    """The source with all options that seem to be needed, and why."""
    hints: list[Hint] = []

    def add(more: list[Hint]) -> None:
        nonlocal source
        for hint in more:
            source = hint.added_to(source)
        hints.extend(more)

    while True:
        try:
            table = read(source)
            break
        except UserError as error:
            add([_way_out(error, source.reading)])
    for look in (structure_hints, sample_hints):  # which are samples is seen once columns are known
        more = look(table, source.reading)
        add(more)
        table = read(source) if more else table
    for _ in range(MOST_CODES):
        more = value_hints(table, source.reading, source.steps)
        codes = [hint for hint in more if hint.reading]
        if not codes:
            break
        add(codes)  # the rest is seen without what is missing
        table = read(source)
    add([hint for hint in more if not hint.reading])
    return source, hints


def _way_out(error: UserError, reading: Reading) -> Hint:
    """What makes a file readable that is not; or the error again."""
    if isinstance(error, OtherEncoding) and reading.encoding is None:
        return Hint(
            "it is no UTF-8; files of older programs of western countries are written so",
            reading={"encoding": "cp1252"},
        )
    if isinstance(error, UnreadColumns) and not reading.columns:
        family = family_of(error.names)
        if family and not any(fnmatchcase(name, family) for name in error.columns):
            return Hint(f"samples are the columns {family!r}", reading={"columns": [family]})
    raise error


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
    why = None if reading.transpose else rows_are_features(table)
    if not reading.transpose and (family is not None or why is not None):
        why = why or "rows are features and columns samples"
        hints.append(Hint(why, reading={"transpose": True}))
        about = [*describing(names), *counting(table)]
        if family is None and about and not reading.drop:
            hints.append(
                Hint(f"{about[0]!r} describes features, it is no sample", reading={"drop": about})
            )
    elif not (reading.transpose or reading.columns or reading.drop):
        known = known_classes(table)
        if known:
            told = f"{known[0]!r} looks like a known class, no measurement"
            hints.append(Hint(told, reading={"drop": known}))
        taken = about_answers(table)
        if taken:
            told = f"{taken[0]!r} tells how the survey was taken, it is no answer"
            hints.append(Hint(told, reading={"drop": taken}))
        counted = counting(table)
        if counted:
            told = f"{counted[0]!r} looks like a running number, no measurement"
            hints.append(Hint(told, reading={"drop": counted}))
    rules = [] if reading.drop_rows else flagged_rows(table, reading.transpose)
    if rules:
        told = "decoys and contaminants are no measurements"
        hints.append(Hint(told, reading={"drop_rows": rules}))
    return hints


def sample_hints(table: Table, reading: Reading) -> list[Hint]:
    """Pools, blanks and totals, which are read like samples and are none."""
    hints = []
    if reading.transpose:
        beside = [] if reading.drop else control_patterns([str(name) for name in table.ids])
        if beside:
            told = "pools and blanks are no samples"
            hints.append(Hint(told, reading={"drop": beside}))
    elif not reading.drop_rows:
        beside = control_rows(table)
        if beside:
            hints.append(Hint("pools and blanks are no samples", reading={"drop_rows": beside}))
    names = table.features if reading.transpose else table.ids
    said = reading.drop_rows or ()
    summaries = [rule for rule in summary_rows(table, map(str, names)) if rule not in said]
    if summaries:
        name = summaries[0].rpartition("=")[2]
        told = f"{name!r} sums up other rows" if name else "rows without a name are no samples"
        hints.append(Hint(told, reading={"drop_rows": summaries}))
    return hints


# --- what the numbers are ---------------------------------------------------------------------


def value_hints(table: Table, reading: Reading, steps: Steps) -> list[Hint]:
    """Zeros that may be gaps, numbers that want a logarithm, rows and features out of scale."""
    look = Look.at(table)
    if look is None:
        return []
    code = look.code()
    if code is not None and f"{code:g}" not in reading.codes:
        return [_code_hint(look, code)]
    if steps.log1p or steps.log2:
        return _scale_hints(look, steps, log=None)
    hints = []
    zeros = look.zero_share >= MANY_ZEROS and look.gap_share < FEW_GAPS
    zeros = zeros and "0" not in reading.codes and not look.zero_may_be_a_value
    lost = zeros or "0" in reading.codes or sp.issparse(table.values) or look.gap_share >= MANY_GAPS
    log = look.logarithm() if look.least >= 0 and (lost or not look.answers) else None
    if zeros:
        hints.append(
            Hint(
                f"{look.zero_share:.0%} of the entries are exactly 0 and nothing else is marked as "
                "missing, as where 0 means not measured",
                reading={"missing_codes": ["0"]},
            )
        )
    if log is not None:
        hints.append(Hint(f"values run from {look.low:.2g} to {look.high:.2g}", steps={log: True}))
        uneven = look.uneven_rows
        profile = table.shape[1] >= PROFILE  # of a few features most may differ between clusters
        stand_out = uneven > UNEVEN_ROWS or (profile and uneven > NOTABLE and look.sizes_stand_out)
        if steps.normalize == Normalize.none and stand_out:
            kind = Normalize.total if look.counts else Normalize.median
            hints.append(Hint(f"rows differ {uneven:.1f}-fold in size", steps={"normalize": kind}))
    elif not (look.whole or lost) and table.shape[1] >= PROFILE and look.levels_stand_out():
        hints.append(
            Hint(
                "rows differ in level, in all features alike, as samples that were loaded "
                "differently; where these are logarithms take the median of each row off before, "
                "or give the intensities with --log2 --normalize median"
            )
        )
    rows = table.shape[0]
    few = look.observed_by_feature(zeros) * rows / len(look.values) < FEWEST_VALUES
    if few.any() and table.shape[1] >= MANY_FEATURES and steps.max_missing is None:
        hints.append(
            Hint(
                f"{few.sum():,} of {len(few):,} features were seen in fewer than {FEWEST_VALUES} "
                "rows, too few to tell clusters apart",
                steps={"max_missing": _share_beyond(rows)},
            )
        )
    return hints + _scale_hints(look, steps, log)


def _code_hint(look: Look, code: float) -> Hint:
    why = (
        f"{code:g} is found {look.share_of(code):.0%} of the time and lies far from the other "
        "values of its columns, as a code for missing does"
    )
    others = look.also_in(code)
    if others:
        more = f" and {len(others) - 1} other features" if len(others) > 1 else ""
        why += f"; it is taken as missing in {others[0]!r}{more} too, where it may be a value"
    return Hint(why, reading={"missing_codes": [f"{code:g}"]})


def _share_beyond(rows: int) -> float:
    """The missing share of a feature with just enough values, in few digits and not below half.

    Examples
    --------
    >>> _share_beyond(24), _share_beyond(600), _share_beyond(8)
    (0.8, 0.992, 0.5)
    """
    digits = 10 ** len(str(rows))
    return max(math.ceil((1 - FEWEST_VALUES / rows) * digits) / digits, 0.5)


def _scale_hints(look: Look, steps: Steps, log: str | None) -> list[Hint]:
    if log is not None or steps.log1p or steps.log2 or steps.scale != Scale.none:
        return []
    if look.loudest > LOUD:
        name = look.features[look.loudest_at]
        why = f"{name!r} spreads {look.loudest:.0f} times as far as the middle feature and would "
        why += "decide alone"
    elif look.units_differ and not look.answers:
        why = "features spread in proportion to their means, as those with units of their own do"
    else:
        return []
    return [Hint(why, steps={"scale": Scale.std})]
