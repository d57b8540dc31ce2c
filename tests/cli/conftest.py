"""One table in every format, and a fit of it."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from commands import do


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands of a test run and its files are."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def frame():
    rng = np.random.default_rng(3)
    centers = np.array([[4.0, 0.3, 4.0, 0.3, 2.0], [0.3, 4.0, 0.3, 4.0, 2.0]])
    X = np.abs(centers[np.arange(60) % 2] + rng.normal(size=(60, 5)) * 0.6)
    X[rng.random(X.shape) < 0.9 * np.exp(-(X**2))] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    odd = ["=1+1", "+x", "@y", "-z", "007"]  # names are written as they are
    frame.insert(0, "sample", [*odd, *(f"s{i}" for i in range(5, 60))])
    return frame.assign(kind=np.where(np.arange(60) % 2, "odd", "even"))


@pytest.fixture(scope="session")
def tables(tmp_path_factory, frame):
    """The same table in every format."""
    folder = tmp_path_factory.mktemp("tables")
    numbers = frame[["a", "b", "c", "d", "e"]].to_numpy()
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t", na_rep="Filtered")
    frame.to_parquet(folder / "t.parquet")
    np.save(folder / "t.npy", numbers)
    stored = sp.csr_matrix(np.nan_to_num(numbers))
    sp.save_npz(folder / "t.npz", stored)
    if find_spec("anndata"):
        import anndata

        obs = frame[["kind"]].set_index(frame["sample"].rename(None))
        var = pd.DataFrame(index=list("abcde"))
        anndata.AnnData(stored, obs, var).write_h5ad(folder / "t.h5ad")
    return folder


@pytest.fixture(scope="session")
def fitted(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "out"
    do("fit", tables / "t.csv", "-k", 2, "--lam", 0.5, "-o", out)
    return out
