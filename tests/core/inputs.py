"""The same table in every form the core takes."""

import numpy as np
from backends import to_csr

from mnarkmeans import _core

CODE = -77.0


def with_gaps(n, p, share=0.3, seed=0, scale=1.0):
    """float32 values as float64, NaN in gaps: what survives every form below."""
    rng = np.random.default_rng(seed)
    X = (scale * rng.normal(size=(n, p))).astype(np.float32).astype(np.float64)
    X[rng.random((n, p)) < share] = np.nan
    return X


def sources(X):
    """(source, code of gaps) by name."""
    n, p = X.shape
    wide = np.full((n, 2 * p + 3), 9.0)
    wide[:, 1 : 2 * p + 1 : 2] = X
    apart = np.full((2 * n, p + 5), 8.0)
    apart[::2, :p] = X
    return {
        "rows": (X, np.nan),
        "columns": (np.asfortranarray(X), np.nan),
        "float32": (X.astype(np.float32), np.nan),
        "float32 columns": (np.asfortranarray(X.astype(np.float32)), np.nan),
        "every other": (wide[:, 1 : 2 * p + 1 : 2], np.nan),
        "apart": (apart[::2, :p], np.nan),
        "backwards": (np.ascontiguousarray(X[::-1])[::-1], np.nan),
        "coded": (np.where(np.isnan(X), CODE, X), CODE),
        "csr": (to_csr(X), np.nan),
        "csr float32": (to_csr(X.astype(np.float32)), np.nan),
    }


def tables(X, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return {name: _core.Table(source, code, weights) for name, (source, code) in sources(X).items()}


def starts_of(mu, lam, n_rows, *, reference=None, shift=None, **how):
    """Starts (R, k, p) of Lloyd's loop on so many rows of weight 1, unless it is said otherwise."""
    mu, p = np.asarray(mu, np.float64), np.shape(mu)[2]
    lam = np.array(np.broadcast_to(lam, (len(mu), p)), np.float64)
    reference, shift = (np.zeros(p) if one is None else one for one in (reference, shift))
    how = {"max_iter": 5, "tol": 0.0, "weights": (True, float(n_rows))} | how
    return _core.Starts(mu, lam, reference, shift, n_rows=n_rows, **how)


def at_every_level(run, *arguments):
    """What ``run`` gives at each instruction set of this machine, in one list."""
    before, found = _core.level(), []
    for level in _core.available_levels():
        _core.set_level(level)
        found += run(*arguments)
    _core.set_level(before)
    return found


def assert_same_bits(found):
    """Of tuples of arrays."""
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
