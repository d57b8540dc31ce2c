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

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._table import Table, TableError, typed_options, unknown_name
from ._tidy import NEVER_OBSERVED, without_codes

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
            value = str(getattr(self, name) or "none")
            if value not in allowed:
                raise TableError(f"--{name} must be one of {', '.join(allowed)}, not {value!r}")
            object.__setattr__(self, name, value)
        if self.log1p and self.log2:
            raise TableError("--log1p and --log2 are two logarithms; choose one of them")
        if self.center_rows and self.zscore_rows:
            raise TableError("--zscore-rows centres rows already; leave --center-rows out")

    # --- learning and applying ------------------------------------------------------------------

    def fit(self, table: Table, n_clusters: int = 8) -> Preparation:
        """The same steps with the features and numbers of this table (see `fit_apply`)."""
        return self.fit_apply(table, n_clusters)[0]

    def fit_apply(self, table: Table, n_clusters: int = 8) -> tuple[Preparation, Table, Any]:
        """The fitted steps, the table with the features they keep, and its prepared values.

        n_clusters : the number of clusters beside which shifts of batches are estimated
        """
        table = self._drop_features(self._zeros_missing(table))
        fitted = Preparation(**{f.name: getattr(self, f.name) for f in fields(self)
                                if not f.metadata})  # fmt: skip
        fitted = replace(fitted, features=tuple(table.features))
        if self.normalize != "none":
            levels = _row_levels(table, self.normalize)
            fitted = replace(fitted, level=float(np.median(levels)))
        values = fitted.apply(table)
        if self.batch is not None:
            fitted = fitted._with_batches(table, values, n_clusters)
            values = fitted.apply(table)
        if self.scale == "none" and not self.center:
            return fitted, table, values
        mean, std, largest = _feature_moments(values)
        spread = {"none": None, "std": std, "maxabs": largest}[self.scale]
        if spread is not None:
            flat = ~(spread > 0)
            if flat.any():
                table.notes.append(f"{flat.sum()} features do not vary and were not scaled")
            spread = np.where(flat, 1.0, spread)
        fitted = replace(fitted, shift=mean if self.center else None, spread=spread)
        return fitted, table, fitted.apply(table)

    def select(self, table: Table) -> Table:
        """A new table with exactly the features of the fitted one, in their order.

        Features that the table lacks are missing in every row; a table that lacks more than half
        of them is another table, and a column that holds no numbers is a mistake.
        """
        return self._zeros_missing(_matched(table, self.features))

    def apply(self, table: Table) -> Any:
        """The prepared values of a table that has exactly these features (see `select`)."""
        values = _rowwise(table.values, 0.0, self._row_factors(table))
        values = self._logarithm(values)
        if self.center_rows or self.zscore_rows:
            values = _rowwise(values, *self._row_moments(values))
        if self.batch_shifts is not None:
            values = (values - self.batch_shifts[self._batch_codes(table)]).astype(values.dtype)
        if self.shift is None and self.spread is None:
            return values
        shift = np.zeros(values.shape[1]) if self.shift is None else self.shift
        spread = np.ones(values.shape[1]) if self.spread is None else self.spread
        if not sp.issparse(values):
            return ((values - shift) / spread).astype(values.dtype, copy=False)
        out = values.copy()
        out.data = ((out.data - shift[out.indices]) / spread[out.indices]).astype(values.dtype)
        return out

    def undo(self, values: np.ndarray, table: Table | None = None) -> np.ndarray:
        """Prepared values in the units of the table.

        What was taken from rows is undone with the rows of `table`; without it, values (such as
        centres) stay normalised and, where rows were centred, in the units of the clustering.
        """
        values = np.asarray(values, dtype=float)
        if self.spread is not None:
            values = values * self.spread
        if self.shift is not None:
            values = values + self.shift
        if self.batch_shifts is not None and table is not None:
            values = values + self.batch_shifts[self._batch_codes(table)]
        if self.center_rows or self.zscore_rows:
            if table is None:
                return values
            before = self._logarithm(_rowwise(table.values, 0.0, self._row_factors(table)))
            mean, std = self._row_moments(before)
            values = values * std[:, None] + mean[:, None]
        values = np.exp2(values) if self.log2 else np.expm1(values) if self.log1p else values
        return values if table is None else values * self._row_factors(table)[:, None]

    @property
    def own_units(self) -> bool:
        """Whether centres can be given in the units of the table."""
        return not (self.center_rows or self.zscore_rows)

    def reference(self, given: Any) -> Any:
        """Where a reference in the units of the table lies after preparation."""
        if not self.own_units:
            raise TableError(
                "a --reference in the units of the table has no place where rows are centred; "
                "leave it out, or give auto or min"
            )
        lowest = -1.0 if self.log1p else 0.0 if self.log2 else -np.inf
        if not np.isfinite(given).all() or np.min(given) <= lowest:
            above = f" above {lowest:g}" if np.isfinite(lowest) else ""
            raise TableError(f"--reference must be finite{above}, not {np.min(given):g}")
        value = np.log1p(given) if self.log1p else np.log2(given) if self.log2 else given
        return value if self.spread is None else value / self.spread

    # --- words ----------------------------------------------------------------------------------

    @property
    def units(self) -> str:
        """The units of the clustering in a word or two; empty if they are those of the table."""
        parts = ["log2"] if self.log2 else ["log(1 + x)"] if self.log1p else []
        parts += ["centred by row"] if self.center_rows else []
        parts += ["z-score by row"] if self.zscore_rows else []
        scales = {"std": "in standard deviations", "maxabs": "relative to the largest value"}
        return ", ".join(parts + ([scales[self.scale]] if self.scale != "none" else []))

    def describe(self) -> list[str]:
        """The steps in words."""
        steps = {
            f"rows divided by their {self.normalize} (observed entries)": self.normalize != "none",
            "log2(x), zeros are missing": self.log2,
            "log(1 + x)": self.log1p,
            "rows centred by their mean": self.center_rows,
            "rows z-scored": self.zscore_rows,
            f"differences between batches ({self.batch}) removed": self.batch is not None,
            "features centred: their observed mean is the reference": self.center,
            "features divided by their standard deviation": self.scale == "std",
            "features divided by their largest absolute value": self.scale == "maxabs",
        }
        return [words for words, done in steps.items() if done]

    def typed(self) -> list[str]:
        """The steps as options of the command line."""
        return typed_options(self)

    # --- model files ----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """For a model file; the features are stored with the model."""
        stored = {name: value for name, value in vars(self).items() if name != "features"}
        return stored | {"batches": list(self.batches)}

    @classmethod
    def from_dict(cls, stored: Any, features: list[str]) -> Preparation:
        """From a model file, whose content is not trusted."""
        if not isinstance(stored, dict):
            raise TableError("the preparation of the model is damaged; fit the model again")
        known = {f.name for f in fields(cls)} - {"features"}
        given = {name: value for name, value in stored.items() if name in known}
        given.setdefault("center", given.get("shift") is not None)
        if given.get("spread") is not None:
            given.setdefault("scale", "std")
        for name, value in given.items():
            if not _is_usable(name, value, len(features)):
                raise TableError(f"preparation/{name} of the model is damaged; fit it again")
        given["batches"] = tuple(given.get("batches") or ())
        shifts = given.get("batch_shifts")
        if len(given["batches"]) != (0 if shifts is None else len(shifts)):
            raise TableError("preparation/batches of the model is damaged; fit it again")
        return cls(**given, features=tuple(features))

    # --- parts ----------------------------------------------------------------------------------

    def _zeros_missing(self, table: Table) -> Table:
        if not self.log2:
            return table
        values = table.values
        zeros = int(((values.data if sp.issparse(values) else values) == 0).sum())
        if zeros:
            note = f"{zeros:,} zeros have no logarithm and became missing"
            table = replace(table, values=without_codes(values, ["0"]), notes=[*table.notes, note])
        return table

    def _drop_features(self, table: Table) -> Table:
        share = table.missing_by_feature()
        limit = 1.0 if self.max_missing is None else self.max_missing
        keep = (share <= limit) & (share < 1.0)
        if keep.all():
            return replace(table, notes=list(table.notes))
        if not keep.any():
            raise TableError(
                f"every feature has more than {limit:.0%} missing (the fullest {share.min():.0%}); "
                "raise --max-missing"
            )
        kept = table.with_features(keep)
        for j in np.flatnonzero(~keep):
            reason = f"{share[j]:.0%} missing" if share[j] < 1.0 else NEVER_OBSERVED
            kept.left_out.append((table.features[j], reason))
        return kept

    def _with_batches(self, table: Table, values: Any, n_clusters: int) -> Preparation:
        from ._batch import BatchCenter  # it clusters, which reading does not need

        if sp.issparse(values):
            raise TableError("--batch is for dense tables; this one is sparse")
        names = self._batch_names(table)
        try:
            center = BatchCenter(n_clusters, random_state=0).fit(values, batch=names)
        except ValueError as error:
            raise TableError(str(error)) from error
        return replace(self, batches=tuple(center.batches_.tolist()), batch_shifts=center.shifts_)

    def _batch_names(self, table: Table) -> np.ndarray:
        """(n,) the batch of every row, as text."""
        known: dict[str, Any] = {**table.labels, **table.annotations}
        if self.batch not in known:
            raise unknown_name("column for --batch", str(self.batch), known)
        names = list(known[self.batch])
        unknown = [str(i) for i, b in zip(table.ids, names, strict=True) if b is None or b != b]
        if unknown:
            raise TableError(f"{len(unknown)} rows have no batch in {self.batch!r}, such as "
                             f"{unknown[0]!r}; name it, or leave them out")  # fmt: skip
        return np.array([str(b).removesuffix(".0") for b in names])

    def _batch_codes(self, table: Table) -> np.ndarray:
        place = {batch: b for b, batch in enumerate(self.batches)}
        names = self._batch_names(table).tolist()
        strange = next((name for name in names if name not in place), None)
        if strange is not None:
            raise TableError(
                f"batch {strange!r} was not in the fitted table ({', '.join(self.batches[:5])}), "
                "so its shift is not known; fit again with its rows"
            )
        return np.array([place[name] for name in names], dtype=np.intp)

    def _row_factors(self, table: Table) -> np.ndarray:
        """(n,) what every row is divided by: t_i / T, or 1."""
        if self.normalize == "none":
            return np.ones(table.shape[0])
        return _row_levels(table, self.normalize) / self.level

    def _row_moments(self, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """(n,) mean and (for z-scores) standard deviation of each row; 0 and 1 if it has none."""
        rows = _observed_rows(values)
        mean = np.array([row.mean() if row.size else 0.0 for row in rows])
        std = np.array([row.std() if self.zscore_rows and row.size else 1.0 for row in rows])
        return mean, np.where(std > 0, std, 1.0)

    def _logarithm(self, values: Any) -> Any:
        if not (self.log1p or self.log2):
            return values
        lowest, name = (-1.0, "log1p") if self.log1p else (0.0, "log2")
        stored = values.data if sp.issparse(values) else values
        with np.errstate(invalid="ignore"):
            bad = stored <= lowest
        if bad.any():
            raise TableError(
                f"--{name} needs values above {lowest:g}, but the table holds "
                f"{float(stored[bad].min()):g}"
            )
        log = np.log1p if self.log1p else np.log2
        if not sp.issparse(values):
            return log(values)
        out = values.copy()
        out.data = log(out.data)
        return out


def _is_usable(name: str, value: Any, p: int) -> bool:
    """Whether a value from a model file is what this field may be."""
    if name in ("shift", "spread"):
        if value is None:
            return True
        if not isinstance(value, np.ndarray) or value.shape != (p,) or value.dtype.kind != "f":
            return False
        return bool(np.isfinite(value).all() and (name == "shift" or (value > 0).all()))
    if name == "batch_shifts":
        right = isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f"
        return value is None or (right and value.shape[1] == p and bool(np.isfinite(value).all()))
    if name == "batches":
        return isinstance(value, list) and all(isinstance(batch, str) for batch in value)
    if name == "level":
        return isinstance(value, float) and 0 < value < np.inf
    if name == "max_missing":
        return value is None or (isinstance(value, (int, float)) and 0 <= value <= 1)
    if name in CHOICES:
        return value in CHOICES[name]
    return value is None or isinstance(value, str if name == "batch" else bool)


def _observed_rows(values: Any) -> list[np.ndarray]:
    """The observed entries of every row, as floats."""
    if sp.issparse(values):
        ends = zip(values.indptr[:-1], values.indptr[1:], strict=True)
        return [values.data[a:b].astype(float) for a, b in ends]
    return [row[~np.isnan(row)].astype(float) for row in values]


def _row_levels(table: Table, kind: str) -> np.ndarray:
    """(n,) median or sum of the observed entries of every row; 1 where there are none."""
    measure = np.median if kind == "median" else np.sum
    rows = _observed_rows(table.values)
    levels = np.array([measure(row) if row.size else 1.0 for row in rows])
    if not (levels > 0).all():
        worst = int(np.argmin(levels))
        raise TableError(
            f"--normalize {kind} divides each row by its {kind}, but that of row "
            f"{table.ids[worst]!r} is {levels[worst]:g}; it is for intensities and counts, not for "
            "logarithms"
        )
    return levels


def _rowwise(values: Any, minus: Any, by: np.ndarray) -> Any:
    """(x_ij - minus_i) / by_i."""
    minus = np.broadcast_to(minus, by.shape)
    if not minus.any() and (by == 1.0).all():
        return values
    if not sp.issparse(values):
        return ((values - minus[:, None]) / by[:, None]).astype(values.dtype, copy=False)
    out, times = values.copy(), np.diff(values.indptr)
    out.data = ((out.data - np.repeat(minus, times)) / np.repeat(by, times)).astype(values.dtype)
    return out


def _feature_moments(values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation and largest absolute value of the observed entries of features."""
    columns = _observed_rows(values.T.tocsr() if sp.issparse(values) else values.T)
    moments = [(c.mean(), c.std(), np.abs(c).max()) for c in columns]
    mean, std, largest = np.array(moments).T
    return mean, std, largest


def _matched(table: Table, features: tuple[str, ...]) -> Table:
    if tuple(table.features) == features:
        return table
    position = {name: j for j, name in enumerate(table.features)}
    reasons = dict(table.left_out)
    absent = [name for name in features if name not in position]
    lacking = [name for name in absent if reasons.get(name) != NEVER_OBSERVED]
    unread = [name for name in lacking if name in reasons]
    if unread or 2 * len(lacking) > len(features):
        first = (unread or lacking)[0]
        why = f" ({reasons[first]})" if first in reasons else ""
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        raise TableError(
            f"the model was fitted on {len(features):,} features, but the table lacks "
            f"{first!r}{why}{more}; give a table with the same names"
        )
    known = [name for name in features if name in position]
    out = table.with_features(np.array([position[name] for name in known], dtype=np.intp))
    if absent:
        where = np.array([j for j, name in enumerate(features) if name in position], dtype=np.intp)
        shape = (table.shape[0], len(features))
        if sp.issparse(out.values):
            coo = out.values.tocoo()
            values: Any = sp.csr_matrix((coo.data, (coo.row, where[coo.col])), shape=shape)
        else:
            values = np.full(shape, np.nan, dtype=out.values.dtype)
            values[:, where] = out.values
        out = replace(out, values=values, features=list(features))
    if lacking:
        some = ", ".join(map(repr, lacking[:3])) + (" ..." if lacking[3:] else "")
        out.notes.append(
            f"{len(lacking):,} of the model's {len(features):,} features are not in the table "
            f"({some}) and count as missing in every row"
        )
    return out
