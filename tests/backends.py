"""Where a table can be and in what form: the laws of the suite hold in every backend.

block   one call of the core does the whole fit
chunks   the table is cut, as large ones are, and the driver in Python runs pass after pass
dask    pieces on Dask, of different sizes
"""

import contextlib
import importlib.util
import itertools
import warnings
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from scipy.special import ndtr

from mnarkmeans import MNARKMeans, _core

FORMS = ["dense", "csr"]


def to_csr(X):
    """CSR whose stored entries are the observed ones, zeros included."""
    rows, columns = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


def grouped_rows(n, p, *, k=3, apart=3.0, share=0.3, seed=0):
    """Groups along the diagonal, with gaps; every row has a value."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + apart * rng.integers(0, k, size=(n, 1))
    X[rng.random(X.shape) < share] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def two_clusters(loss, n=200, p=3, seed=0, heavy=False):
    """Two overlapping clusters, normal or t, that lose values in one of the five ways."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    noise = rng.standard_t(3, size=(n, p)) if heavy else rng.normal(size=(n, p))
    X = np.where(labels[:, None] == 0, -0.5, 2.0) + noise * (1 + 0.3 * labels)[:, None]
    lost = {
        "mcar": np.full(X.shape, 0.3),
        "class": np.where(labels == 0, 0.1, 0.5)[:, None] + np.zeros(p),
        "decay": 0.9 * np.exp(-2.0 * X**2),
        "threshold": (np.abs(X) < 0.5).astype(float),
        "limit": ndtr((-0.3 - X) / 0.4),
    }[loss]
    X[rng.random(X.shape) < lost] = np.nan
    some = ~np.isnan(X).all(axis=1)
    return X[some], labels[some]


def on_dask(table, n_blocks=3):
    """A Dask array of blocks of different sizes, dense or CSR; one of them is empty."""
    import dask
    import dask.array as da

    n, p = table.shape
    edges = (n * np.linspace(0.0, 1.0, n_blocks + 1) ** 1.5).astype(int)
    edges = np.insert(edges, 1, edges[1])
    blocks = [
        da.from_delayed(
            dask.delayed(table[start:stop], traverse=False), (stop - start, p), meta=table[:0]
        )
        for start, stop in itertools.pairwise(edges)
    ]
    return da.concatenate(blocks)


def chunks(entries=60):
    """Small tables are cut as large ones are, with about so many ``entries`` in each chunk."""
    return mock.patch.multiple(_core, ENTRIES_OF_ONE_CHUNK=24, ENTRIES_PER_CHUNK=entries)


def fit_on_dask(table, k, sample_weight, options):
    import dask

    import mnarkmeans.dask

    assert options.pop("algorithm", "lloyd") in ("lloyd", "auto")
    with dask.config.set(scheduler="synchronous"):
        model = mnarkmeans.dask.MNARKMeans(k, **options)
        model.fit(on_dask(table), sample_weight=sample_weight)
        model.labels_ = np.asarray(model.labels_)
    return model


class Backend(NamedTuple):
    where: str
    form: str

    def table(self, X):
        return to_csr(X) if self.form == "csr" else X

    def there(self):
        """A context: the core finds tables in one block, or cut into chunks."""
        return chunks() if self.where == "chunks" else contextlib.nullcontext()

    def fit(self, X, init, lam, reference, /, *, sample_weight=None, **options):
        """One fit of Lloyd's loop from given centres, unless the options say otherwise."""
        options = {"max_iter": 50, "tol": 0.0, "algorithm": "lloyd", "init": init} | options
        options |= {"lam": lam, "reference": reference}
        table, k = self.table(X), len(init)
        with warnings.catch_warnings(), self.there():
            warnings.simplefilter("ignore")  # random tables have empty rows, features and clusters
            if self.where == "dask":
                return fit_on_dask(table, k, sample_weight, options)
            return MNARKMeans(k, **options).fit(table, sample_weight=sample_weight)

    def ask(self, model, method, X):
        """What a method of the fitted model says of X, asked in this backend."""
        table = self.table(X)
        if self.where == "dask":
            return getattr(model, method)(on_dask(table)).compute(scheduler="synchronous")
        with self.there():
            return getattr(model, method)(table)


IN_MEMORY = [Backend(where, form) for where in ("block", "chunks") for form in FORMS]
BACKENDS = IN_MEMORY.copy()
if importlib.util.find_spec("dask") is not None:
    BACKENDS += [Backend("dask", form) for form in FORMS]
everywhere = pytest.mark.parametrize("backend", BACKENDS, ids="-".join)
in_memory = pytest.mark.parametrize("backend", IN_MEMORY, ids="-".join)
