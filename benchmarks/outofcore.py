"""Beyond memory on one machine: a process limited to 2 GB fits 8 GB of data.

    python -m benchmarks.outofcore [--kind npy|parquet|zarr|h5ad] [--gigabytes 8] [--limit 2]

The table is written block by block, then read by Dask's own readers, as docs/scaling.md shows, in a
process of its own. What that may allocate is limited by the operating system (RLIMIT_DATA; pages of
mapped files, which the system drops when it needs room, do not count). The file is removed
afterwards.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from .memory import _status

P, K, ROWS = 50, 10, 100_000


def blocks(n_blocks: int, p: int, sparse: bool):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(K, p))
    for _ in range(n_blocks):
        X = centers[rng.integers(K, size=ROWS)]
        X += rng.normal(size=X.shape)
        X[rng.random(X.shape) < 0.3] = 0.0 if sparse else np.nan
        yield X


def write(kind: str, folder: Path, gigabytes: float) -> Path:
    n_blocks = max(2, round(gigabytes * 1e9 / (ROWS * P * (8 if kind != "h5ad" else 8.4))))
    if kind == "npy":
        path = folder / "table.npy"
        out = np.lib.format.open_memmap(path, "w+", np.float64, (n_blocks * ROWS, P))
        for number, X in enumerate(blocks(n_blocks, P, False)):
            out[number * ROWS : (number + 1) * ROWS] = X
        out.flush()
        return path
    if kind == "parquet":
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        path = folder / "table"
        path.mkdir()
        for number, X in enumerate(blocks(n_blocks, P, False)):
            columns = arrow.table({f"V{j + 1}": X[:, j] for j in range(P)})
            parquet.write_table(columns, path / f"{number:04}.parquet", compression="none",
                                use_dictionary=False)  # fmt: skip
        return path
    if kind == "zarr":
        import zarr

        path = folder / "table.zarr"
        out = zarr.create_array(path, shape=(n_blocks * ROWS, P), chunks=(ROWS, P), dtype="f8",
                                compressors=None)  # fmt: skip
        for number, X in enumerate(blocks(n_blocks, P, False)):
            out[number * ROWS : (number + 1) * ROWS] = X
        return path
    return _write_h5ad(folder / "table.h5ad", n_blocks)


def _write_h5ad(path: Path, n_blocks: int) -> Path:
    """A CSR AnnData file: 70 % stored, 8 bytes of value and 4 of index each."""
    import h5py
    from scipy import sparse

    with h5py.File(path, "w") as file:
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0",
                        "shape": [n_blocks * ROWS, P]})  # fmt: skip
        grow = dict(shape=(0,), maxshape=(None,), chunks=(1 << 20,))
        data = X.create_dataset("data", dtype="f8", **grow)
        indices = X.create_dataset("indices", dtype="i4", **grow)
        ends = [np.zeros(1, np.int64)]
        for part in blocks(n_blocks, P, True):
            rows = sparse.csr_array(part)
            begin, end = len(data), len(data) + rows.nnz
            for target, values in ((data, rows.data), (indices, rows.indices)):
                target.resize((end,))
                target[begin:] = values
            ends.append(rows.indptr[1:].astype(np.int64) + ends[-1][-1])
        X["indptr"] = np.concatenate(ends)
        for name, size in (("obs", 1), ("var", P)):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = np.array([f"V{i + 1}" for i in range(size)], dtype="S")
    return path


def lazily(path: Path):
    """A mapped array, or a Dask collection."""
    import dask.array as da

    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r")  # `da.from_array` would copy all of it
    if path.suffix == ".zarr":
        return da.from_zarr(path)
    if path.suffix == ".h5ad":
        import h5py
        from anndata.experimental import read_elem_lazy

        with h5py.File(path) as file:
            return read_elem_lazy(file["X"], chunks=(ROWS, P))
    import dask.dataframe as dd

    return dd.read_parquet(path)


def fit(path: Path, limit: float, iterations: int) -> None:
    """In the limited process."""
    if limit > 0:
        import resource  # not on Windows

        most = int(limit * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    import dask

    import mnarkmeans
    import mnarkmeans.dask

    options = {"lam": 0.5, "init": "k-means++", "n_init": 1, "max_iter": iterations}
    began, peaks = time.perf_counter(), []

    class Watch(logging.Handler):
        def emit(self, record):
            peaks.append(_status("RssAnon"))
            print(f"  {time.perf_counter() - began:.0f} s: {record.getMessage()}", flush=True)

    logger = logging.getLogger("mnarkmeans")
    logger.setLevel(logging.INFO)
    logger.addHandler(Watch())
    with dask.config.set(scheduler="threads", num_workers=2):
        X = lazily(path)
        if isinstance(X, np.ndarray):
            model = mnarkmeans.MNARKMeans(K, random_state=0, n_jobs=2, **options).fit(X)
        else:
            model = mnarkmeans.dask.MNARKMeans(K, random_state=0, persist=False, **options).fit(X)
    print(
        f"  {len(model.labels_):,} x {P}: loss "
        f"{model.inertia_:.6g} after {model.n_iter_} iterations and "
        f"{time.perf_counter() - began:.0f} s; {max(peaks) / 1e9:.2f} GB of memory of its own "
        f"after an iteration, of {limit:g} GB allowed"
    )


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.outofcore", description=__doc__)
    parser.add_argument("--kind", choices=["npy", "parquet", "zarr", "h5ad"], default="npy")
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--limit", type=float, default=2.0)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--folder", help="where to write the table (default: a temporary folder)")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit(Path(options.fit), options.limit, options.iterations)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = write(options.kind, Path(folder), options.gigabytes)
        print(f"{options.kind}, process limited to {options.limit:g} GB", flush=True)
        command = [sys.executable, "-m", "benchmarks.outofcore", "--fit", str(path)]
        command += ["--limit", str(options.limit), "--iterations", str(options.iterations)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
