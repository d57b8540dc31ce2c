"""Preparation of a table before clustering, stored in the model and repeated on new data.

In this order: drop features above a share of gaps, log1p, centre, scale,

    x -> (f(x) - m_j) / s_j,     f = log1p or nothing, m_j = 0 or the mean, s_j = 1 or the spread,

all numbers taken from observed entries of the table the model was fitted on.

What this does to the reference c, the point near which values go missing: log1p and scaling carry
it along, c -> f(c) / s_j, so zero stays zero and a detection limit remains one. Centring
is different: it makes each feature's observed mean the reference (the paper does so on
standardised data), a statement about the data that only the user can make. It cannot be combined
with another reference, because moving data and reference together would change nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._errors import UserError
from ._frames import NEVER_OBSERVED, Table
from ._options import Scale, Steps


@dataclass(frozen=True)
class Preparation:
    """The steps, and the numbers they took from the fitted table."""

    features: tuple[str, ...]
    log1p: bool = False
    shift: np.ndarray | None = None
    spread: np.ndarray | None = None

    def to_dict(self) -> dict[str, Any]:
        """For the model file."""
        return {
            "log1p": self.log1p,
            "shift": self.shift,
            "spread": self.spread,
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any], features: list[str]) -> Preparation:
        """From the model file, whose words are not trusted."""
        p = len(features)
        for name in ("shift", "spread"):
            values = stored.get(name)
            if values is not None and not _usable(values, p, positive=name == "spread"):
                raise UserError(f"preparation/{name} of the model is damaged; fit the model again")
        if not isinstance(stored.get("log1p"), bool):
            raise UserError("preparation/log1p of the model is damaged; fit the model again")
        return cls(tuple(features), stored["log1p"], stored.get("shift"), stored.get("spread"))

    def apply(self, table: Table) -> Any:
        """The prepared values of a table that has exactly these features."""
        values = _log1p(table) if self.log1p else table.values
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
        value = np.log1p(given) if self.log1p else given
        return value if self.spread is None else value / self.spread

    def undo(self, values: np.ndarray) -> np.ndarray:
        """Prepared values in the table's own units."""
        if self.spread is not None:
            values = values * self.spread
        if self.shift is not None:
            values = values + self.shift
        return np.expm1(values) if self.log1p else values

    def describe(self) -> list[str]:
        """The steps in words."""
        steps = []
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
    table = _drop_features(table, steps.max_missing)
    base = Preparation(tuple(table.features), steps.log1p)
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


def _log1p(table: Table) -> Any:
    values = table.values
    stored = values.data if sp.issparse(values) else values
    with np.errstate(invalid="ignore"):
        bad = stored <= -1.0
    if bad.any():
        worst = float(stored[bad].min())
        raise UserError(f"--log1p needs values above -1, but the table holds {worst:g}")
    if not sp.issparse(values):
        return np.log1p(values)
    out = values.copy()
    out.data = np.log1p(out.data)
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

    A column that is there but wholly missing is a column of gaps; one that is not there at all is
    a mistake.
    """
    if tuple(table.features) == tuple(features):
        return table
    position = {name: j for j, name in enumerate(table.features)}
    told = dict(table.left_out)
    absent = [name for name in features if name not in position]
    lacking = [name for name in absent if told.get(name) != NEVER_OBSERVED]
    if lacking:
        why = f" ({told[lacking[0]]})" if lacking[0] in told else ""
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise UserError(
            f"the model was fitted on {len(features)} columns, but the table lacks "
            f"{lacking[0]!r}{why}{more}; give a table with the same column names"
        )
    known = [name for name in features if name in position]
    out = table.with_features(np.array([position[name] for name in known], dtype=np.intp))
    if absent:
        out = _with_gaps(out, features)
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
