"""Preparation of a table before clustering, stored in the model and repeated on new data.

In this order: zeros become gaps (log2 only), features above a share of gaps are dropped, rows are
normalised, then logarithm, centring, scaling,

    x -> (f(x T / t_i) - m_j) / s_j,     f = log1p, log2 or nothing, m_j = 0 or the mean,
                                         s_j = 1 or the spread,

t_i the median or sum of the row's own observed entries and T the median of all t_i (T = t_i if rows
are not normalised). All numbers but t_i are taken from observed entries of the fitted table.

What this does to the reference c, the point near which values go missing: logarithm and scaling
carry it along, c -> f(c) / s_j, so zero stays zero (but for log2, which has none) and a detection
limit remains one. Centring is different: it makes each feature's observed mean the reference (the
paper does so on standardised data), a statement about the data that only the user can make. It
cannot be combined with another reference, because moving data and reference together would change
nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._errors import UserError
from ._frames import NEVER_OBSERVED
from ._options import Normalize, Scale, Steps
from ._table import Table


@dataclass(frozen=True)
class Preparation:
    """The steps, and the numbers they took from the fitted table."""

    features: tuple[str, ...]
    log1p: bool = False
    shift: np.ndarray | None = None
    spread: np.ndarray | None = None
    log2: bool = False
    normalize: str = "none"
    level: float = 1.0  # T, of the fitted rows

    def to_dict(self) -> dict[str, Any]:
        """For the model file."""
        return {name: value for name, value in vars(self).items() if name != "features"}

    @classmethod
    def from_dict(cls, stored: dict[str, Any], features: list[str]) -> Preparation:
        """From the model file, whose words are not trusted."""
        p = len(features)
        for name in ("shift", "spread"):
            values = stored.get(name)
            if values is not None and not _usable(values, p, positive=name == "spread"):
                raise UserError(f"preparation/{name} of the model is damaged; fit the model again")
        told: dict[str, Any] = {
            "log2": False,
            "normalize": "none",
            "level": 1.0,
        } | stored  # of older models
        right = {
            "log1p": isinstance(told.get("log1p"), bool),
            "log2": isinstance(told["log2"], bool),
            "normalize": told["normalize"] in tuple(Normalize),
            "level": isinstance(told["level"], float) and 0 < told["level"] < np.inf,
        }
        for name, is_right in right.items():
            if not is_right:
                raise UserError(f"preparation/{name} of the model is damaged; fit the model again")
        kept: dict[str, Any] = {name: told.get(name) for name in (*right, "shift", "spread")}
        return cls(tuple(features), **kept)

    def with_gaps(self, table: Table) -> Table:
        """The table as the steps see it: for log2, zero is a gap."""
        if not self.log2:
            return table
        values, zeros = without_zeros(table.values)
        if zeros:
            table = replace(table, values=values, notes=list(table.notes))
            table.notes.append(f"{zeros:,} zeros have no logarithm and became gaps (--log2)")
        return table

    def row_factors(self, table: Table) -> Any:
        """(n, 1) what every row is divided by, t_i / T, or 1."""
        if self.normalize == Normalize.none:
            return 1.0
        return (row_levels(table, self.normalize) / self.level)[:, None]

    def apply(self, table: Table) -> Any:
        """The prepared values of a table that has exactly these features."""
        values = self._logarithm(divided(table.values, self.row_factors(table)))
        if self.shift is None and self.spread is None:
            return values
        shift = 0.0 if self.shift is None else self.shift
        spread = 1.0 if self.spread is None else self.spread
        if not sp.issparse(values):
            return ((values - shift) / spread).astype(values.dtype, copy=False)
        out = values.copy()
        shift = np.broadcast_to(shift, values.shape[1])[out.indices]
        spread = np.broadcast_to(spread, values.shape[1])[out.indices]
        out.data = ((out.data - shift) / spread).astype(values.dtype, copy=False)
        return out

    def reference(self, given: float | np.ndarray) -> Any:
        """Where a reference given in the table's own units lies after preparation."""
        value = np.log1p(given) if self.log1p else np.log2(given) if self.log2 else given
        return value if self.spread is None else value / self.spread

    def _logarithm(self, values: Any) -> Any:
        if self.log1p:
            return _log_of(values, np.log1p, -1.0, "--log1p needs values above -1")
        if self.log2:
            return _log_of(values, np.log2, 0.0, "--log2 needs values that are not negative")
        return values

    def undo(self, values: np.ndarray) -> np.ndarray:
        """Prepared values in the table's own units."""
        if self.spread is not None:
            values = values * self.spread
        if self.shift is not None:
            values = values + self.shift
        if self.log2:
            return np.exp2(values)
        return np.expm1(values) if self.log1p else values

    def describe(self) -> list[str]:
        """The steps in words."""
        steps = []
        if self.normalize != Normalize.none:
            steps.append(f"rows brought to the same {self.normalize} of their observed entries")
        if self.log2:
            steps.append("log2(x), zeros are gaps")
        if self.log1p:
            steps.append("log(1 + x)")
        if self.shift is not None:
            steps.append("centred: each feature's observed mean is the reference")
        if self.spread is not None:
            steps.append("scaled per feature")
        return steps


def _usable(values: Any, p: int, positive: bool) -> bool:
    """One finite number for each feature."""
    if not isinstance(values, np.ndarray) or values.shape != (p,) or values.dtype.kind != "f":
        return False
    return bool(np.isfinite(values).all() and (not positive or (values > 0).all()))


def learn(table: Table, steps: Steps) -> tuple[Table, Preparation]:
    """Drop features and learn the numbers of the other steps.

    Returns
    -------
    (table, preparation)
        The table with the features kept, in its own units, and the steps to apply to it.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table(np.array([[1.0, 2.0], [3.0, np.nan]]), np.array(["r", "s"]), ["a", "b"])
    >>> table, preparation = learn(table, Steps(scale=Scale.maxabs, max_missing=0.4))
    >>> table.features, preparation.apply(table).ravel(), preparation.reference(0.0)
    (['a'], array([0.33333333, 1.        ]), array([0.]))
    """
    if steps.log1p and steps.log2:
        raise UserError("--log1p and --log2 are two logarithms; choose one of them")
    base = Preparation((), steps.log1p, log2=steps.log2, normalize=str(steps.normalize))
    table = _drop_features(base.with_gaps(table), steps.max_missing)
    base = replace(base, features=tuple(table.features))
    if steps.normalize != Normalize.none:
        levels = row_levels(table, base.normalize)
        base = replace(base, level=float(np.median(levels)))
    values = base.apply(table)
    if steps.scale == Scale.none and not steps.center:
        return table, base
    mean, std, largest = _observed_moments(values)
    spread = {Scale.none: None, Scale.std: std, Scale.maxabs: largest}[steps.scale]
    if spread is not None:
        # A feature without spread says nothing about clusters; dividing by 1 leaves it so.
        flat = ~(spread > 0)
        if flat.any():
            table.notes.append(f"{flat.sum()} features do not vary and were not scaled")
        spread = np.where(flat, 1.0, spread)
    shift = mean if steps.center else None
    return table, replace(base, shift=shift, spread=spread)


def _drop_features(table: Table, max_missing: float | None) -> Table:
    share = table.missing_by_feature()
    limit = 1.0 if max_missing is None else max_missing
    keep = (share <= limit) & (share < 1.0)
    if keep.all():
        return table
    if not keep.any():
        raise UserError(
            f"every feature has more than {limit:.0%} missing (the fullest one {share.min():.0%}); "
            "raise --max-missing"
        )
    kept = table.with_features(keep)
    for j in np.flatnonzero(~keep):
        reason = f"{share[j]:.0%} missing" if share[j] < 1.0 else NEVER_OBSERVED
        kept.left_out.append((table.features[j], reason))
    return kept


def without_zeros(values: Any) -> tuple[Any, int]:
    """The values with every zero a gap, and how many there were."""
    if sp.issparse(values):
        zeros = int((values.data == 0).sum())
        if zeros:
            values = values.copy()
            values.eliminate_zeros()
        return values, zeros
    zero = values == 0
    zeros = int(zero.sum())
    return (
        np.where(zero, np.array(np.nan, dtype=values.dtype), values) if zeros else values
    ), zeros


def row_levels(table: Table, kind: str) -> np.ndarray:
    """(n,) median or sum of the observed entries of every row; 1 where there are none."""
    if sp.issparse(table.values):
        csr = table.values
        rows = [csr.data[a:b] for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)]
    else:
        rows = [row[~np.isnan(row)] for row in table.values]
    measure = np.median if kind == Normalize.median else np.sum
    levels = np.array([measure(row.astype(float)) if row.size else 1.0 for row in rows])
    if not (levels > 0).all():
        worst = int(np.argmin(levels))
        raise UserError(
            f"--normalize {kind} divides each row by the {kind} of its observed entries, but that "
            f"of row {table.ids[worst]!r} is {levels[worst]:g}; it is for intensities and counts "
            "that are not logarithms yet"
        )
    return levels


def divided(values: Any, factors: Any) -> Any:
    """Each row divided by its factor, (n, 1) or 1."""
    if np.ndim(factors) == 0:
        return values
    if not sp.issparse(values):
        return (values / factors).astype(values.dtype, copy=False)
    out = values.copy()
    out.data = (out.data / np.repeat(factors[:, 0], np.diff(out.indptr))).astype(values.dtype)
    return out


def _log_of(values: Any, log: Any, above: float, need: str) -> Any:
    stored = values.data if sp.issparse(values) else values
    with np.errstate(invalid="ignore"):
        bad = stored <= above
    if bad.any():
        worst = float(stored[bad].min())
        raise UserError(f"{need}, but the table holds {worst:g}")
    if not sp.issparse(values):
        return log(values)
    out = values.copy()
    out.data = log(out.data)
    return out


def _observed_moments(values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation and largest size of the observed entries of every feature."""
    if sp.issparse(values):
        csc = values.tocsc()
        columns = [csc.data[a:b] for a, b in zip(csc.indptr[:-1], csc.indptr[1:], strict=True)]
    else:
        columns = [column[~np.isnan(column)] for column in values.T]
    moments = [(c.mean(), c.std(), np.abs(c).max()) for c in (c.astype(float) for c in columns)]
    mean, std, largest = np.array(moments).T
    return mean, std, largest


def matched(table: Table, features: tuple[str, ...]) -> Table:
    """The table with exactly the model's features, found by name, in the model's order.

    A column that is there but wholly missing is a column of gaps. So is one that is not there at
    all: a new run does not find every feature. A table that lacks more than half of them is another
    table, and a column that is there and holds no numbers is a mistake.
    """
    if tuple(table.features) == tuple(features):
        return table
    position = {name: j for j, name in enumerate(table.features)}
    told = dict(table.left_out)
    absent = [name for name in features if name not in position]
    lacking = [name for name in absent if told.get(name) != NEVER_OBSERVED]
    unread = [name for name in lacking if name in told]
    if unread or 2 * len(lacking) > len(features):
        first = (unread or lacking)[0]
        why = f" ({told[first]})" if first in told else ""
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        raise UserError(
            f"the model was fitted on {len(features):,} features, but the table lacks "
            f"{first!r}{why}{more}; give a table with the same names"
        )
    known = [name for name in features if name in position]
    out = table.with_features(np.array([position[name] for name in known], dtype=np.intp))
    if absent:
        out = _with_gaps(out, features)
    if lacking:
        some = ", ".join(map(repr, lacking[:3])) + (" ..." if lacking[3:] else "")
        out.notes.append(
            f"{len(lacking):,} of the model's {len(features):,} features are not in the table "
            f"({some}) and count as missing in every row"
        )
    return out


def _with_gaps(table: Table, features: tuple[str, ...]) -> Table:
    """Columns of gaps put in where the table has no observed value."""
    position = {name: j for j, name in enumerate(table.features)}
    where = [j for j, name in enumerate(features) if name in position]
    n, p = table.shape[0], len(features)
    if sp.issparse(table.values):
        coo = table.values.tocoo()
        columns = np.asarray(where)[coo.col]
        values = sp.csr_matrix((coo.data, (coo.row, columns)), shape=(n, p))
    else:
        values = np.full((n, p), np.nan, dtype=table.values.dtype)
        values[:, where] = table.values
    return replace(table, values=values, features=list(features))
