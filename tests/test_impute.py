"""Filled tables: where they are written, of what type, with how much memory."""

import subprocess
import sys

import numpy as np
import pytest
from places import grouped_rows, to_csr

from mnarkmeans import MNARKMeans

nan = np.nan


def table():
    return grouped_rows(200, 6, apart=4.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("into", ["C", "F", "rows apart", "backwards"])
def test_impute_writes_to_what_it_is_given(dtype, order, into):
    X = np.array(grouped_rows(5000, 6, apart=4.0), dtype=dtype, order=order)  # several blocks
    model = MNARKMeans(3, lam=0.5, n_init=1, random_state=0).fit(X)
    expected = np.where(np.isnan(X), model.cluster_centers_[model.predict(X)], X)
    room = {
        "C": np.empty_like(X, order="C"), "F": np.empty_like(X, order="F"),
        "rows apart": np.empty((2 * len(X), 9), dtype)[::2, 1:7],
        "backwards": np.empty_like(X, order="C")[::-1],
    }[into]  # fmt: skip
    filled = model.impute(X, out=room)
    assert filled is room
    assert np.array_equal(filled, expected)
    assert filled.dtype == dtype
    assert np.array_equal(model.impute(to_csr(X), out=room), expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("missing", [nan, -1.0])
def test_impute_works_in_place(order, missing):
    X = np.array(np.where(np.isnan(table()), missing, table()), order=order)
    model = MNARKMeans(3, lam=0.5, random_state=0, missing_values=missing).fit(X)
    expected = model.impute(X)
    assert model.impute(X, out=X) is X
    assert np.array_equal(X, expected)


def test_impute_refuses_what_it_cannot_write_to():
    X = table()
    model = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    closed = X.copy()
    closed.flags.writeable = False
    for out, message in [
        (X.tolist(), "got list"), (X.astype(np.float32), "float64 array"), (X[:5].copy(), "shape"),
        (closed, "read-only"), (X[::-1], "share no memory"),
    ]:  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=message):
            model.impute(X, out=out)


def test_impute_follows_the_type_of_the_table():
    model = MNARKMeans(3, lam=0.5, random_state=0).fit(table())
    assert model.impute(table().astype(np.float32)).dtype == np.float32
    assert model.impute(table()).dtype == np.float64


PEAK = """
import sys
import numpy as np
from scipy import sparse
from mnarkmeans import MNARKMeans

def memory(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

rng = np.random.default_rng(0)
X = rng.normal(size=(300_000, 50))
X[rng.random(X.shape) < 0.3] = np.nan
model = MNARKMeans(4, lam=0.5, random_state=0, n_jobs=2, max_iter=3, n_init=1).fit(X[:20_000])
size = X.nbytes
if sys.argv[1] == "csr":
    seen = ~np.isnan(X)
    starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    X = sparse.csr_array((X[seen], np.nonzero(seen)[1].astype(np.int32), starts.astype(np.int32)),
                         shape=X.shape)
    size = X.data.nbytes + X.indices.nbytes
    del seen, starts
out = None if sys.argv[1] == "new" else np.ones(X.shape)
model.impute(X[:1000])
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
filled = model.impute(X) if out is None else model.impute(X, out=out)
beyond = memory("VmHWM") - before - (filled.nbytes if out is None else 0)
print(beyond / size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", ["new", "given", "csr"])
def test_impute_needs_little_beyond_its_result(kind):
    done = subprocess.run(
        [sys.executable, "-c", PEAK, kind], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.15
