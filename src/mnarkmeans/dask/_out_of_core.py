"""Fit a table on disk without reading it whole: what the command line needs beyond memory.

needs_blocks    whether a table is too large for memory, or comes in parts
connect         a Dask cluster by its address, or the threads of this process
prepare_blocks  codes of missing values and log(1 + x), block by block
labelled        labels and distances of all rows, some blocks at a time
sample          some rows in memory, for a report
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._io.memory import machine_memory
from .._io.optional import require
from .._solver.threads import slices
from ._files import TableFile, kind_of, open_table, row_blocks
from ._lazy import Model, labels_and_distances

SHARE_OF_MEMORY = 0.4  # a table beyond this share is read in blocks: fitting needs room too
SMALL_FILE = 0.02  # files below this share of memory are not looked into
BLOCKS_AT_ONCE = 8


def needs_blocks(path: Path, layer: str | None = None) -> bool:
    """Whether a table comes in parts (a folder, Zarr) or is too large for memory."""
    kind = kind_of(path)
    if kind is None or not path.exists():
        return False
    if path.is_dir():
        return True
    memory = machine_memory()
    if path.stat().st_size < SMALL_FILE * memory:
        return False
    try:
        return open_table(path, layer=layer).n_bytes > SHARE_OF_MEMORY * memory
    except ValueError:  # the reader of whole tables will say what is wrong
        return False


@contextmanager
def connect(address: str | None) -> Iterator[str]:
    """Use the cluster at this address, or threads; yields words about it."""
    if address is None:
        dask = require("dask", "dask")
        with dask.config.set(scheduler="threads"):
            yield "the threads of this machine"
        return
    distributed = require("distributed", "dask")
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address}; check the address and that it runs"
        ) from error
    with client:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise ConnectionError(f"the Dask scheduler at {address} has no workers; start some")
        yield f"the Dask cluster at {address} ({workers} workers)"


def prepare_blocks(X: Any, missing_code: float | None, log1p: bool) -> Any:
    """The Dask array with the code turned into gaps, and log(1 + x) taken if asked for."""
    if missing_code is None and not log1p:
        return X
    kind = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    return X.map_blocks(
        _prepare_block, missing_code, log1p, kind, dtype=kind, meta=X._meta.astype(kind)
    )


def _prepare_block(block: Any, missing_code: float | None, log1p: bool, kind: np.dtype[Any]) -> Any:
    block = block.astype(kind)  # a copy: the file may be mapped
    values = block.data if sparse.issparse(block) else block
    if missing_code is not None:
        values[values == kind.type(missing_code)] = np.nan
    if log1p:
        if (values <= -1.0).any():
            raise ValueError(
                f"log(1 + x) is not defined for {np.nanmin(values):g}, the least value of a block"
            )
        np.log1p(values, out=values)
    return block


def labelled(
    model: Any, X: Any, table: TableFile
) -> Iterator[tuple[list[str], np.ndarray, np.ndarray]]:
    """(names, labels, distances to the own centre) of the rows, some blocks at a time."""
    dask = require("dask", "dask")
    fitted = dask.delayed(Model.of(model), traverse=False)
    blocks, edges = list(X.to_delayed().ravel()), list(row_blocks(table))
    for start, stop in slices(len(blocks), BLOCKS_AT_ONCE):
        found = dask.compute(
            *(dask.delayed(labels_and_distances)(block, fitted) for block in blocks[start:stop])
        )
        for (first, last), (labels, own) in zip(edges[start:stop], found, strict=True):
            yield table.ids(first, last), labels, own


def sample(X: Any, table: TableFile, size: int, seed: int) -> tuple[list[str], Any]:
    """Names and values of at most ``size`` rows drawn at random, in memory."""
    dask = require("dask", "dask")
    n = table.shape[0]
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, size, replace=False)) if n > size else np.arange(n)
    names, parts = [], []
    for (first, last), block in zip(row_blocks(table), X.to_delayed().ravel(), strict=True):
        own = rows[(rows >= first) & (rows < last)] - first
        if len(own):
            parts.append(dask.delayed(_take)(block, own))
            ids = table.ids(first, last)
            names += [ids[i] for i in own]
    values = dask.compute(*parts)
    return names, sparse.vstack(values, "csr") if sparse.issparse(values[0]) else np.vstack(values)


def _take(block: Any, rows: np.ndarray) -> Any:
    return block[rows]
