"""`mnarkmeans fit` on tables that are read in blocks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from backends import grouped_rows
from numpy.testing import assert_allclose

import mnarkmeans

pytest.importorskip("dask.array")
pytest.importorskip("typer")
pd = pytest.importorskip("pandas")

from mnarkmeans.cli._main import run  # noqa: E402
from mnarkmeans.dask import _files as outofcore  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


OPTIONS = ["-k", "3", "--lam", "0.5", "--reference", "0"]


@pytest.fixture(scope="module")
def X():
    return grouped_rows(600, 3, apart=6.0, share=0.2)


@pytest.fixture
def parts(X, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    frame = pd.DataFrame(X, columns=list("abc")).assign(name=[f"row {i}" for i in range(len(X))])
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        frame.iloc[rows].to_parquet(folder / f"{number}.parquet", index=False)
    return folder


def assert_results(out, X):
    memory = mnarkmeans.MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["inertia"] == pytest.approx(memory.inertia_, rel=1e-4)
    assert sum(summary["cluster_sizes"]) == len(X)
    labels = pd.read_csv(out / "labels.csv")
    assert len(labels) == len(X)
    assert_allclose((labels["distance"] ** 2).sum(), summary["inertia"], rtol=1e-9)
    assert (out / "report.html").read_text().startswith("<!")
    return labels


def test_a_folder_of_parquet_files(X, parts, tmp_path, capsys):
    out = tmp_path / "out"
    options = [*OPTIONS, "--starts", "3", "--id-column", "name"]
    assert run(["fit", str(parts), *options, "-o", str(out)]) == 0
    printed = capsys.readouterr().err
    assert "in 3 blocks" in printed
    assert "it is read in blocks" in printed
    assert "iteration 1, loss" in printed
    labels = assert_results(out, X)
    assert labels["id"].tolist() == [f"row {i}" for i in range(len(X))]
    # The model is one like any other.
    code = run(["predict", str(out), str(parts / "0.parquet"), "-o", str(tmp_path / "new.csv")])
    assert code == 0
    assert_allclose(pd.read_csv(tmp_path / "new.csv")["cluster"], labels["cluster"][:200])


def test_the_summary_has_the_fields_of_one_in_memory(X, parts, tmp_path):
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False)
    for source, out in (parts, "blocks"), (tmp_path / "t.csv", "memory"):
        assert run(["fit", str(source), "-k", "3", "-q", "-o", str(tmp_path / out)]) == 0
    blocks, memory = (
        json.loads((tmp_path / out / "summary.json").read_text()) for out in ("blocks", "memory")
    )
    assert set(blocks) == set(memory)
    assert set(blocks["missingness"]) == set(memory["missingness"])
    assert blocks["missingness"]["lam"] == blocks["lam"]


def test_a_file_larger_than_memory(X, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(outofcore, "machine_memory", lambda: 10_000.0)
    np.save(tmp_path / "t.npy", np.where(np.isnan(X), -9.0, X))
    options = [*OPTIONS, "--starts", "3", "--missing-value", "-9"]
    out = tmp_path / "out"
    assert run(["fit", str(tmp_path / "t.npy"), *options, "-o", str(out)]) == 0
    assert "it is read in blocks" in capsys.readouterr().err
    assert_results(out, X)


def test_on_a_running_cluster(X, parts, tmp_path, capsys):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp",
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address
        options = [*OPTIONS, "--scheduler", address]
        assert run(["fit", str(parts), *options, "-o", str(tmp_path / "out")]) == 0
    assert f"the Dask cluster at {address} (1 worker)" in capsys.readouterr().err
    assert_results(tmp_path / "out", X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scale", "std"], "--scale needs the whole table in memory"),
        (["--transpose"], "--transpose needs the whole table"),
        (["--labels", "name"], "--labels needs the whole table"),
        (["--missing-value", "x"], "takes one number as --missing-value"),
        (["--id-column", "who"], "has no column 'who'"),
    ],
)
def test_what_blocks_cannot_do_is_refused(parts, tmp_path, capsys, options, message):
    assert run(["fit", str(parts), "-k", "3", *options, "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_nobody_answers_at_the_address(parts, tmp_path, capsys, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def silent(address, timeout):
        raise TimeoutError("timed out")

    monkeypatch.setattr(distributed, "Client", silent)
    options = ["-k", "3", "--scheduler", "tcp://127.0.0.1:1"]
    assert run(["fit", str(parts), *options, "-o", str(tmp_path / "out")]) == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err


def test_log1p_and_sparse_codes_in_blocks():
    da = pytest.importorskip("dask.array")
    from scipy import sparse

    values = np.array([[0.0, 3.0], [7.0, 1.0]])
    found = outofcore.prepare_blocks(da.from_array(values, chunks=1), 7.0, True).compute()
    assert_allclose(found, np.log1p([[0.0, 3.0], [np.nan, 1.0]]))
    kept = outofcore._prepare_block(sparse.csr_array(values), 3.0, False, np.dtype(float))
    assert np.isnan(kept.data).sum() == 1
    with pytest.raises(ValueError, match="not defined for -2"):
        outofcore._prepare_block(values - 2.0, None, True, np.dtype(float))
