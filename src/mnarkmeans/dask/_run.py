"""Run passes over all pieces on whatever scheduler Dask uses, and add the results in a tree.

    pass(piece_0) ... pass(piece_B)  ->  merge 8 at a time  ->  one result

A pass is a Dask graph of its own, or, if it is short and on a cluster, a message to each worker
(``_messages``). Pieces are kept where they are (``persist``) when they fit into memory; otherwise
every pass reads the blocks anew.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._data.first_pass import Found, merged
from .._io.memory import machine_memory
from .._io.optional import require
from .._solver.threads import slices
from ._blocks import LazyTable, lazy_weights
from ._messages import Messenger, messenger_for
from ._passes import take_rows
from ._pieces import Kind, Piece, make_piece

FAN_IN = 8
SHARE_OF_MEMORY = 0.6  # pieces that need more than this share are read anew in every pass

Work = Callable[..., Any]  # (piece, number of its first row, *common) -> part
Merge = Callable[[list[Any]], Any]  # parts, or promises of them, -> one of their kind


class ClusterLostError(RuntimeError):
    """The Dask cluster went away, or cancelled the work, in the middle of a fit."""


@dataclass(frozen=True)
class Pieces:
    """All rows: lazy pieces, the number of the first row of each, and the totals."""

    lazy: list[Any]  # of Delayed, each a Piece
    firsts: np.ndarray  # (B + 1,)
    found: Found
    is_sparse: bool
    dtype: Any  # float32 if all blocks are
    messenger: Messenger | None = None  # where the pieces are kept on a cluster

    def release(self) -> None:
        """Let the workers forget the pieces, even if a traceback still refers to them."""
        _release(self.lazy)

    @property
    def n_rows(self) -> int:
        return self.found.n_rows

    def reduce(self, work: Work, merge: Merge, *common: Any) -> Any:
        """merge of [work(piece, number of its first row, *common) for every piece]."""
        if self.messenger is None:
            return self._by_graph(work, merge, common)
        with self.messenger.timed():
            parts = self.messenger.parts(work, self.firsts[:-1].tolist(), common)
            if parts is None:
                return self._by_graph(work, merge, common)
            return _tree(parts, merge)

    def _by_graph(self, work: Work, merge: Merge, common: tuple[Any, ...]) -> Any:
        delayed = require("dask", "dask").delayed
        literals = [_literal(value) for value in common]
        parts = [
            delayed(work, pure=False)(piece, int(first), *literals)
            for piece, first in zip(self.lazy, self.firsts, strict=False)
        ]
        return compute(_tree(parts, delayed(merge, pure=False)))[0]

    def take(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """The rows with these (ascending) numbers and their weights."""
        delayed = require("dask", "dask").delayed
        owner = np.searchsorted(self.firsts, rows, side="right") - 1
        asked = [
            delayed(take_rows, pure=False)(self.lazy[b], rows[owner == b] - self.firsts[b])
            for b in np.unique(owner)
        ]
        parts = compute(*asked)
        values = [part[0] for part in parts]
        stack = sparse.vstack(values, format="csr") if self.is_sparse else np.vstack(values)
        return stack, np.concatenate([part[1] for part in parts])


def _literal(value: Any) -> Any:
    """A value that travels once, as a task of its own, and not within every task that needs it."""
    delayed = require("dask", "dask").delayed
    return delayed(value, name=f"mnarkmeans-{uuid.uuid4().hex}", traverse=False)


def _tree(parts: list[Any], merge: Merge) -> Any:
    """The sum of all parts, lazy or not, always added in the same order."""
    while True:
        parts = [merge(parts[start:stop]) for start, stop in slices(len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def compute(*lazy: Any) -> tuple[Any, ...]:
    """Run on Dask's current scheduler; a cluster that is lost is answered in plain words."""
    dask = require("dask", "dask")
    with warnings.catch_warnings():
        # The centres travel inside the graph on purpose: a task whose worker died can be run again.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        try:
            return dask.compute(*lazy)
        except Exception as error:
            if _is_loss(error):
                raise ClusterLostError(
                    f"the Dask cluster stopped working on the fit ({type(error).__name__}: {error})"
                ) from error
            raise


def _is_loss(error: Exception) -> bool:
    """Whether an error is the cluster's and not that of the data or the program."""
    import concurrent.futures

    if isinstance(error, concurrent.futures.CancelledError):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names
        & {"KilledWorker", "CommClosedError", "FutureCancelledError", "NoValidWorkerError",
           "CancelledError", "SchedulerRestartedError", "ClosedClientError"}
    )  # fmt: skip


def gather_pieces(
    table: LazyTable, sample_weight: Any, missing_values: float, persist: bool | str
) -> Pieces:
    """The first pass: every block is read, judged and counted, and kept if it is to be."""
    dask = require("dask", "dask")
    delayed, n_blocks = dask.delayed, len(table.blocks)
    weights = lazy_weights(sample_weight, table, lambda: count_rows(table))
    make = delayed(make_piece, pure=False)
    lazy = [
        make(block, weight, number, n_blocks, table.n_features, missing_values)
        for number, (block, weight) in enumerate(zip(table.blocks, weights, strict=True))
    ]
    keep = persist is True or (persist == "auto" and table.n_bytes <= memory_for_pieces())
    if keep:
        lazy = list(dask.persist(*lazy))
    try:
        total, *kinds = compute(
            _tree([delayed(_found)(piece) for piece in lazy], delayed(merged, pure=False)),
            *(delayed(_kind)(piece) for piece in lazy),
        )
        is_sparse, dtype = _common_kind(kinds)
    except BaseException:
        _release(lazy)
        raise
    n_bytes = sum(kind.n_bytes for kind in kinds)
    if not keep and persist == "auto" and n_bytes <= memory_for_pieces():
        keep, lazy = True, list(dask.persist(*lazy))
    firsts = np.concatenate([[0], np.cumsum([kind.n_rows for kind in kinds])])
    messenger = messenger_for(current_client(), lazy) if keep else None
    return Pieces(lazy, firsts, total, is_sparse, dtype, messenger)


def _release(lazy: list[Any]) -> None:
    if current_client() is not None:
        for future in require("distributed", "dask").futures_of(lazy):
            future.release()


def count_rows(table: LazyTable) -> list[int]:
    """The lengths of the blocks, where they are not known."""
    delayed = require("dask", "dask").delayed
    return list(compute(*(delayed(_n_rows)(block) for block in table.blocks)))


def _n_rows(block: Any) -> int:
    return block.shape[0]


def _found(piece: Piece) -> Found:
    return piece.found


def _kind(piece: Piece) -> Kind:
    return piece.kind


def _common_kind(kinds: list[Kind]) -> tuple[bool, Any]:
    """Whether the blocks are sparse, and the type of their values; empty ones do not count."""
    known = {
        kind.is_sparse: number for number, kind in reversed([*enumerate(kinds)]) if kind.n_rows
    }
    if len(known) > 1:
        raise ValueError(
            f"Block {known[True]} is sparse and block {known[False]} is dense; "
            "in a sparse block what is not stored is missing, so the two do not mix. "
            "Convert one kind."
        )
    single = all(kind.is_single for kind in kinds if kind.n_rows)
    return True in known, np.dtype(np.float32 if single and known else np.float64)


def current_client() -> Any:
    """The distributed client Dask would use now, or None."""
    dask = require("dask", "dask")
    try:
        from distributed import get_client
    except ImportError:
        return None
    if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
        return None
    try:
        return get_client()
    except ValueError:
        return None


def memory_for_pieces() -> float:
    """Bytes that pieces may take: of the cluster's workers, or of this machine."""
    client = current_client()
    if client is not None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker.get("memory_limit") or 0 for worker in workers]
        return SHARE_OF_MEMORY * sum(limits)
    return SHARE_OF_MEMORY * machine_memory()
