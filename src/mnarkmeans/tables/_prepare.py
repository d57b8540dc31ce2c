"""Preparation of a table before clustering, stored in the model and repeated on new data.

In this order: zeros become missing (log2 only), features above a share of missing values are
dropped, rows are normalised, then logarithm, rows centred or z-scored, features centred, scaled:

    y_ij = f(x_ij T / t_i),            f = log1p, log2 or nothing
    z_ij = (y_ij - a_i) / b_i,         a_i, b_i: mean and standard deviation of the row, or 0 and 1
    w_ij = z_ij - d_bj,                d_bj: shift of the batch of the row (`BatchCenter`), or 0
    result = (w_ij - m_j) / s_j,       m_j = 0 or the mean, s_j = 1 or the spread of the feature

t_i is the median or sum of the row and T the median of all t_i (T = t_i without normalisation).
All are taken over observed entries; those of rows from each table itself, T, d_bj, m_j and s_j
from the fitted one.

The reference c, the value near which data go missing, goes through logarithm and scaling,
c -> f(c) / s_j: zero stays zero (log2 has none), a detection limit remains one. Centring features
makes their means the reference, as the paper does on standardised data. Centring rows gives every
row a reference of its own, so that none can be given in the units of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._batch import BatchCenter, batch_codes, batch_names, check_design
from ._cells import without_codes
from ._table import Table, TableError, abbreviated, typed_options, unknown_name
from ._tidy import NEVER_OBSERVED

CHOICES = {"normalize": ("none", "median", "total"), "scale": ("none", "std", "maxabs")}
LEARNED = {"learned": True}


@dataclass(frozen=True)
class Preparation:
    """Steps between a table and clustering, and the numbers they take from the fitted table.

    Parameters
    ----------
    max_missing : float, optional
        Drop features with a larger share of missing values.
    normalize : {"none", "median", "total"}
        Divide each row by its median or sum.
    log2, log1p : bool
        Logarithm; with log2 zeros become missing.
    center_rows, zscore_rows : bool
        Subtract the mean of each row; z-score: and divide by its standard deviation. For
        clustering proteins or genes by their profile.
    center : bool
        Subtract the mean of each feature, which becomes its reference.
    scale : {"none", "std", "maxabs"}
        Divide each feature by its standard deviation or largest absolute value.
    batch : str, optional
        The column of the annotations (or labels) that names the batch of each row; what differs
        between batches is removed by :class:`BatchCenter`.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table(np.array([[1.0, 2.0], [3.0, np.nan]]), np.array(["r", "s"]), ["a", "b"])
    >>> preparation, table, X = Preparation(scale="maxabs", max_missing=0.4).fit_apply(table)
    >>> table.features, X.ravel(), preparation.reference(0.0)
    (['a'], array([0.33333333, 1.        ]), array([0.]))
    """

    max_missing: float | None = None
    normalize: str = "none"
    log2: bool = False
    log1p: bool = False
    center_rows: bool = False
    zscore_rows: bool = False
    center: bool = False
    scale: str = "none"
    batch: str | None = None
    features: tuple[str, ...] = field(default=(), metadata=LEARNED)
    level: float = field(default=1.0, metadata=LEARNED)  # T
    shift: np.ndarray | None = field(default=None, metadata=LEARNED)  # m_j
    spread: np.ndarray | None = field(default=None, metadata=LEARNED)  # s_j
    batches: tuple[str, ...] = field(default=(), metadata=LEARNED)
    batch_shifts: np.ndarray | None = field(default=None, metadata=LEARNED)  # (B, p), d_bj

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            object.__setattr__(self, name, getattr(self, name) or "none")
            if getattr(self, name) not in allowed:
                raise TableError(f"--{name} must be one of {', '.join(allowed)}")
        if (self.log1p and self.log2) or (self.center_rows and self.zscore_rows):
            raise TableError("--log1p and --log2 exclude each other, as --center-rows and "
                             "--zscore-rows do; choose one")  # fmt: skip

    # --- learning and applying ------------------------------------------------------------------

    def fit_apply(self, table: Table, n_clusters: int = 8) -> tuple[Preparation, Table, Any]:
        """The fitted steps, the table with the features they keep, and its prepared values.

        n_clusters : the number of clusters beside which shifts of batches are estimated
        """
        table = self._drop_features(self._zeros_missing(table))
        fitted = replace(self, features=tuple(table.features))
        fitted, values, _ = fitted._run(table, n_clusters)
        return fitted, table, values

    def select(self, table: Table) -> Table:
        """A new table with exactly the features of the fitted one, in their order.

        Features that the table lacks are missing in every row; a table that lacks more than half
        of them is another table, and a column that holds no numbers is a mistake.
        """
        return self._zeros_missing(_matched(table, self.features))

    def apply(self, table: Table) -> Any:
        """The prepared values of a table that has exactly these features (see `select`)."""
        return self._run(table)[1]

    def undo(self, values: np.ndarray, table: Table | None = None) -> np.ndarray:
        """Prepared values in the units of the table.

        What was taken from rows is undone with the rows of `table`; without it, values (such as
        centres) stay normalised and, where rows were centred, in the units of the clustering.
        """
        values = np.asarray(values, dtype=float)
        numbers = {"features": self._of_features} if table is None else self._run(table)[2]
        for step in reversed(self._steps):
            if step == "log":
                values = np.exp2(values) if self.log2 else np.expm1(values)
            elif step in numbers:
                minus, by = numbers[step]
                values = values * by + minus
            elif step == "rows":
                break
        return values

    def _run(
        self, table: Table, n_clusters: int | None = None
    ) -> tuple[Preparation, Any, dict[str, tuple[Any, Any]]]:
        """These steps (fitted if n_clusters is given), the values after them, and what each took.

        A step subtracts and divides by a number, or one for each row, feature or entry.
        """
        fitted, values, numbers = self, table.values, {}
        for step in self._steps:
            try:
                if n_clusters is not None:
                    fitted = replace(fitted, **fitted._learned(step, values, table, n_clusters))
                if step == "log":
                    values = self._logarithm(values)
                else:
                    numbers[step] = fitted._numbers(step, values, table)
                    values = _rescaled(values, *numbers[step])
            except ValueError as error:
                if step != "batch" or isinstance(error, TableError):
                    raise
                raise TableError(f"--batch {self.batch}: {error}") from error
        return fitted, values, numbers

    def _learned(self, step: str, values: Any, table: Table, n_clusters: int) -> dict[str, Any]:
        """The numbers that a step takes from the fitted table; values: after the steps before."""
        if step == "normalize":
            return {"level": float(np.median(_row_levels(table, self.normalize)))}
        if step == "batch":
            if sp.issparse(values):
                raise TableError("--batch is for dense tables; this one is sparse")
            names = self._batches_of_rows(table)
            for name, groups in table.labels.items():
                if name != self.batch:
                    check_design(np.unique(names, return_inverse=True)[1], groups)
            center = BatchCenter(n_clusters, random_state=0).fit(values, batch=names)
            return {"batches": tuple(center.batches_.tolist()), "batch_shifts": center.shifts_}
        if step != "features":
            return {}
        columns = values.T.tocsr() if sp.issparse(values) else values.T
        spread = None
        if self.scale != "none":
            measure = np.std if self.scale == "std" else lambda column: np.abs(column).max()
            spread = by_row(columns, measure)
            if n_flat := int((spread == 0).sum()):
                table.notes.append(f"{n_flat} features do not vary and were not scaled")
            spread[spread == 0] = 1.0
        return {"spread": spread, "shift": by_row(columns, np.mean) if self.center else None}

    def _numbers(self, step: str, values: Any, table: Table) -> tuple[Any, Any]:
        """What a step subtracts, and what it divides by."""
        if step == "normalize":
            return 0.0, (_row_levels(table, self.normalize) / self.level)[:, None]
        if step == "rows":
            std = by_row(values, np.std) if self.zscore_rows else np.ones(values.shape[0])
            return by_row(values, np.mean)[:, None], np.where(std > 0, std, 1.0)[:, None]
        if step == "batch":
            codes = batch_codes(self._batches_of_rows(table), np.array(self.batches))
            return np.asarray(self.batch_shifts)[codes], 1.0
        return self._of_features

    @property
    def _of_features(self) -> tuple[Any, Any]:
        shift, spread = self.shift, self.spread
        return 0.0 if shift is None else shift, 1.0 if spread is None else spread

    def _logarithm(self, values: Any) -> Any:
        log, lowest = (np.log1p, -1.0) if self.log1p else (np.log2, 0.0)
        out = values.copy()
        stored = out.data if sp.issparse(out) else out
        if (stored <= lowest).any():
            raise TableError(f"--{log.__name__} needs values above {lowest:g}, but the table holds "
                             f"{np.nanmin(stored):g}")  # fmt: skip
        log(stored, out=stored)
        return out

    @property
    def own_units(self) -> bool:
        """Whether centres can be given in the units of the table: rows are not centred."""
        return not (self.center_rows or self.zscore_rows)

    def reference(self, given: Any) -> Any:
        """Where a reference in the units of the table lies after preparation."""
        if not self.own_units:
            raise TableError("a --reference in the units of the table has no place where rows are "
                             "centred; leave it out, or give auto or min")  # fmt: skip
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log1p(given) if self.log1p else np.log2(given) if self.log2 else given
        if not np.isfinite(value).all():
            raise TableError(f"--reference {np.min(given):g} has no place among prepared values")
        return value / self._of_features[1]

    # --- words ----------------------------------------------------------------------------------

    @property
    def _words(self) -> list[tuple[str, str, str]]:
        """What is done: the step, the units of the clustering after it, and a sentence."""
        every = [
            (self.normalize != "none", "normalize", "",
             f"rows divided by their {self.normalize} (observed entries)"),
            (self.log2, "log", "log2", "log2(x), zeros are missing"),
            (self.log1p, "log", "log(1 + x)", "log(1 + x)"),
            (self.center_rows, "rows", "centred by row", "rows centred by their mean"),
            (self.zscore_rows, "rows", "z-score by row", "rows z-scored"),
            (self.batch is not None, "batch", "",
             f"an estimated shift per batch ({self.batch}) and feature subtracted"),
            (self.center, "features", "",
             "features centred: their observed mean is the reference"),
            (self.scale == "std", "features", "in standard deviations",
             "features divided by their standard deviation"),
            (self.scale == "maxabs", "features", "relative to the largest value",
             "features divided by their largest absolute value"),
        ]  # fmt: skip
        return [tuple(words) for asked, *words in every if asked]  # type: ignore[misc]

    @property
    def _steps(self) -> list[str]:
        """The steps in the order in which they are taken."""
        return list(dict.fromkeys(step for step, _, _ in self._words))

    @property
    def units(self) -> str:
        """The units of the clustering in a word or two; empty if they are those of the table."""
        return ", ".join(units for _, units, _ in self._words if units)

    def describe(self) -> list[str]:
        """The steps in words."""
        return [sentence for _, _, sentence in self._words]

    typed = typed_options

    # --- model files ----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """For a model file; the features are stored with the model."""
        return {name: value for name, value in vars(self).items() if name != "features"}

    @classmethod
    def from_dict(cls, stored: Any, features: list[str]) -> Preparation:
        """From a model file, whose checksum has been verified."""
        try:
            batches = tuple(stored.get("batches", ()))
            steps = cls(**stored | {"features": tuple(features), "batches": batches})
            for numbers in (steps.shift, steps.spread, steps.batch_shifts):
                if numbers is not None:
                    np.reshape(numbers, (-1, len(features)))
        except (AttributeError, TypeError, ValueError) as error:
            raise TableError("the preparation of the model is damaged; fit it again") from error
        return steps

    def _zeros_missing(self, table: Table) -> Table:
        values = table.values
        zeros = int(((values.data if sp.issparse(values) else values) == 0).sum())
        if not (zeros and self.log2):
            return table
        note = f"{zeros:,} zeros have no logarithm and became missing"
        return replace(table, values=without_codes(values, ["0"]), notes=[*table.notes, note])

    def _drop_features(self, table: Table) -> Table:
        share = table.missing_by_feature()
        limit = 1.0 if self.max_missing is None else self.max_missing
        keep = (share <= limit) & (share < 1.0)
        if keep.all():
            return replace(table, notes=list(table.notes))
        if not keep.any():
            raise TableError(f"every feature has more than {limit:.0%} missing (the fullest "
                             f"{share.min():.0%}); raise --max-missing")  # fmt: skip
        kept = table.with_features(keep)
        for j in np.flatnonzero(~keep):
            reason = f"{share[j]:.0%} missing" if share[j] < 1.0 else NEVER_OBSERVED
            kept.left_out.append((table.features[j], reason))
        return kept

    def _batches_of_rows(self, table: Table) -> np.ndarray:
        """(n,) the batch of every row, as text."""
        known = table.labels | table.annotations
        if self.batch not in known:
            raise unknown_name("column for --batch", str(self.batch), known)
        given = [None if b != b or b is None else str(b).removesuffix(".0")
                 for b in known[self.batch]]  # fmt: skip
        return batch_names(given, len(given))


def _rescaled(values: Any, minus: Any, by: Any) -> Any:
    """(values - minus) / by for the observed entries, in the precision of the values."""
    if not sp.issparse(values):
        return ((values - minus) / by).astype(values.dtype, copy=False)
    at = values.tocoo()
    minus, by = (np.broadcast_to(x, values.shape)[at.row, at.col] for x in (minus, by))
    data = ((values.data - minus) / by).astype(values.dtype)
    return sp.csr_matrix((data, values.indices, values.indptr), shape=values.shape)


def by_row(values: Any, measure: Callable[[np.ndarray], Any], empty: float = 0.0) -> np.ndarray:
    """(n,) a measure of the observed entries of every row; `empty` of a row without any."""
    rows = values
    if sp.issparse(values):
        rows = np.split(values.data, values.indptr[1:-1])
    parts = (row[~np.isnan(row)].astype(float) for row in rows)
    return np.array([measure(part) if part.size else empty for part in parts])


def _row_levels(table: Table, kind: str) -> np.ndarray:
    """(n,) median or sum of the observed entries of every row; 1 where there are none."""
    levels = by_row(table.values, np.median if kind == "median" else np.sum, empty=1.0)
    if not (levels > 0).all():
        worst = int(np.argmin(levels))
        raise TableError(f"--normalize {kind} divides each row by its {kind}, but that of row "
                         f"{table.ids[worst]!r} is {levels[worst]:g}; it is for intensities and "
                         "counts, not for logarithms")  # fmt: skip
    return levels


def _matched(table: Table, features: tuple[str, ...]) -> Table:
    if tuple(table.features) == features:
        return table
    place, reasons = {name: j for j, name in enumerate(table.features)}, dict(table.left_out)
    absent = [name for name in features if name not in place]
    lacking = [name for name in absent if reasons.get(name) != NEVER_OBSERVED]
    unread = [name for name in lacking if name in reasons]
    if unread or 2 * len(lacking) > len(features) or len(absent) == len(features):
        names = unread or lacking or absent
        what = "lacks" if lacking else "holds no value of"
        why = f" ({reasons[names[0]]})" if unread else ""
        raise TableError(
            f"the model was fitted on {len(features):,} features, but "
            f"{table.source.get('file', 'the table')} {what} {abbreviated(names, 1)}{why}; give "
            "one with values under these names"
        )
    if absent:  # they are taken from a column without values
        stack, empty = np.hstack, np.full((table.shape[0], 1), np.nan, table.values.dtype)
        if sp.issparse(table.values):
            stack, empty = sp.hstack, sp.csr_matrix(empty.shape)
        table = replace(table, values=stack([table.values, empty]), features=[*table.features, ""])
    at = np.array([place.get(name, len(place)) for name in features], dtype=np.intp)
    out = replace(table.with_features(at), features=list(features))
    if lacking:
        out.notes.append(
            f"{len(lacking):,} of the model's {len(features):,} features are not in "
            f"the table ({abbreviated(lacking, 3)}) and count as missing in every row"
        )
    return out
