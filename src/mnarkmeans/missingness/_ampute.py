"""Ways for a value to go missing. With x read as the distance from the reference:

    mcar   P(missing) = a                        whatever the value
    mar    P(missing) = exp(-a d^2)              d: the row's value in a feature that stays complete
    mnar0  P(missing) = exp(-a x^2)
    mnar1  P(missing) = 1 / (1 + exp(a x^2))
    mnar2  missing when |x| < the a-quantile of |x| in the feature
    limit  P(missing) = Phi((c_j - x) / zeta_j)  c_j: the limit below which the feature loses the
                                                 share a; zeta_j: softness times its deviation

"decay" is another word for mnar0, "threshold" for mnar2. The strength a is given, or solved for so
that the expected share of missing values is the one wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit, ndtr
from sklearn.utils import check_array

from .._observed import without_mask
from .._validation import check_choice, check_number, check_reference

WORDS = {"decay": "mnar0", "threshold": "mnar2"}


def ampute(
    X: Any,
    mechanism: str = "mnar0",
    *,
    strength: float | None = None,
    fraction: float | None = None,
    softness: float = 0.0,
    reference: Any = 0.0,
    rng: int | np.random.Generator | None = None,
) -> Any:
    """A copy of `X`, an array or a DataFrame, in which some values have gone missing (NaN).

    Parameters
    ----------
    X : array-like or pandas DataFrame of shape (n_samples, n_features)
        Numbers; entries that are missing already stay missing.
    mechanism : {"mcar", "mar", "mnar0", "mnar1", "mnar2", "limit", "decay", "threshold"}
        What decides whether a value is lost: nothing ("mcar"), the first complete feature of its
        row ("mar"), its distance from the reference (the paper's mnar0 or "decay", mnar1, mnar2 or
        "threshold"), or that it lies below a limit of its feature ("limit").
    strength, fraction : float, optional
        Give one. ``strength`` is the parameter a of the mechanism: a probability (mcar), a quantile
        (mnar2), the share that each feature loses (limit), or how fast missingness decays with the
        squared distance (others). ``fraction`` is the expected share of missing entries.
    softness : float, default=0.0
        Width of the curve of "limit", in standard deviations of the feature; with 0, all values
        below the limit are lost and none above it.
    reference : float, array of shape (n_features,) or "min", default=0.0
        The point near which values go missing (mar, mnar0, mnar1, mnar2).
    rng : int, numpy Generator or None
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.missingness import ampute
    >>> X = np.random.default_rng(0).normal(size=(1000, 4))
    >>> holes = ampute(X, "mnar0", fraction=0.3, rng=0)
    >>> round(float(np.isnan(holes).mean()), 1)
    0.3
    >>> bool(np.abs(X[np.isnan(holes)]).mean() < np.abs(X[~np.isnan(holes)]).mean())
    True
    """
    if sp.issparse(X):
        raise TypeError(
            "X is sparse: entries that are not stored already count as missing. "
            "Give a dense array of the complete data."
        )
    values = check_array(
        without_mask(X), dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
    )
    mechanism = WORDS.get(mechanism, mechanism)
    if mechanism == "class":
        raise ValueError(
            'mechanism="class" needs the classes, which X does not have: remove values class '
            'by class, ampute(X[y == c], "mcar", strength=rate_of_c).'
        )
    check_choice("mechanism", mechanism, (*CURVES, *WORDS))
    if check_number("softness", softness) > 0 and mechanism != "limit":
        raise ValueError(f"softness belongs to mechanism='limit'; got it with {mechanism!r}.")
    if (strength is None) == (fraction is None):
        raise ValueError(f"Give either strength= or fraction=; got {strength!r} and {fraction!r}.")
    minimum, names = np.fmin.reduce(values, axis=0), getattr(X, "columns", None)
    distance = values - check_reference(reference, values.shape[1], minimum, names)
    missing = np.isnan(values)

    def probability(a: float) -> np.ndarray:
        return np.where(missing, 1.0, CURVES[mechanism](distance, a, softness))

    is_share = mechanism in ("mcar", "mnar2", "limit")
    if strength is None:
        squares = distance[distance**2 > 0] ** 2
        scale = float(np.median(squares)) if squares.size else 1.0
        strength = _strength_for(fraction, mechanism, probability, None if is_share else scale)
    if not (0 <= strength <= (1.0 if is_share else np.finfo(float).max)):
        wanted = "between 0 and 1" if is_share else "a finite number >= 0"
        raise ValueError(f"strength of {mechanism!r} must be {wanted}; got {strength!r}.")
    lost = np.random.default_rng(rng).random(values.shape) < probability(strength)
    if hasattr(X, "iloc"):
        return X.astype(float).mask(lost | missing)
    return np.where(lost, values.dtype.type(np.nan), values)


def _strength_for(
    fraction: Any, mechanism: str, probability: Callable[[float], np.ndarray], scale: float | None
) -> float:
    """The strength at which the expected share of missing entries is `fraction`; ``scale``: of the
    squared distances, None where strengths are shares."""
    ends = (0.0, 1.0) if scale is None else (np.log(1e-12 / scale), np.log(1e12 / scale))
    strength: Callable[[float], float] = float if scale is None else np.exp

    def share(at: float) -> float:
        return float(probability(strength(at)).mean())

    least, most = sorted(map(share, ends))
    if not least - 1e-9 <= fraction <= most + 1e-9:
        raise ValueError(
            f"{mechanism!r} cannot make {fraction} of this table missing: it reaches from "
            f"{least:.3f} (what is missing already) to {most:.3f}."
        )
    wanted = min(max(fraction, least), most)
    return strength(brentq(lambda at: share(at) - wanted, *ends, xtol=1e-12))


# --- the mechanisms: distance from the reference (NaN where missing), strength -> probability -----


def _mar(x: np.ndarray, a: float, _: float) -> np.ndarray:
    complete = np.flatnonzero(~np.isnan(x).any(axis=0))
    if x.shape[1] < 2 or complete.size == 0:
        raise ValueError(
            'mechanism="mar" needs at least two features, one of them complete; got '
            f"{x.shape[1]} feature(s), {complete.size} complete."
        )
    lost = np.tile(np.exp(-a * x[:, complete[:1]] ** 2), x.shape[1])
    lost[:, complete[0]] = 0.0
    return lost


def _mnar2(x: np.ndarray, a: float, _: float) -> np.ndarray:
    size = np.abs(x)
    seen = ~np.isnan(size).all(axis=0)
    cut = np.zeros(size.shape[1])
    cut[seen] = np.nanquantile(size[:, seen], a, axis=0)
    return (size < cut).astype(float)


def _limit(x: np.ndarray, a: float, softness: float) -> np.ndarray:
    out = np.zeros(x.shape)
    for j, column in enumerate(x.T):
        seen = column[~np.isnan(column)]
        if seen.size == 0 or a <= 0:
            continue
        width = softness * float(seen.std())
        if width == 0:
            below = column <= np.quantile(seen, a, method="inverted_cdf")
            out[:, j] = below if a < 1 else 1.0
            continue
        # Beyond 9 widths of all values nothing, or everything, is lost.
        ends = float(seen.min()) - 9 * width, float(seen.max()) + 9 * width
        c = brentq(lambda c, s=seen, w=width: ndtr((c - s) / w).mean() - min(a, 1 - 1e-9), *ends)
        out[:, j] = ndtr((c - column) / width)
    return out


CURVES: dict[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    "mcar": lambda x, a, _: np.full(x.shape, a),
    "mar": _mar,
    "mnar0": lambda x, a, _: np.exp(-a * x**2),
    "mnar1": lambda x, a, _: expit(-a * x**2),
    "mnar2": _mnar2,
    "limit": _limit,
}
