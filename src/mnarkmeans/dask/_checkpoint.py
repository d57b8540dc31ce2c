"""Checkpoints: where a fit stands, in one file that is whole at every moment.

The file holds arrays only (``.npz``; loading it executes nothing). It is written beside its place
and then moved there, so a fit that is killed at any time leaves the last whole one.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Starts
from .._io import atomic

KEPT = ("mu", "lam", "n_iter", "twins", "settled", "seen")
FORMAT = 2  # 1: centres were measured from a shift, and lam was a number


def save(
    path: str | os.PathLike[str],
    starts: Starts,
    it: int,
    active: np.ndarray,
    problem: dict[str, Any],
) -> None:
    """Write atomically. ``problem`` (name -> number or array) tells what is being fitted."""
    kept = {name: getattr(starts, name) for name in KEPT}
    kept["sizes"] = starts.stats.sizes
    kept["paths"] = starts.paths[:, :it]
    with atomic.replacing(path) as draft, open(draft, "wb") as file:
        np.savez(
            file, format=FORMAT, iteration=it, active=active, **kept,
            **{f"problem_{name}": value for name, value in problem.items()},
        )  # fmt: skip


def load(path: str | os.PathLike[str], problem: dict[str, Any]) -> dict[str, np.ndarray] | None:
    """What ``save`` wrote, or None if there is no file yet; refuses that of another problem."""
    path = Path(path)
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
            version = int(found["format"])
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a checkpoint of a fit; name another file or remove it."
        ) from error
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}; this version reads {FORMAT}.")
    for name, value in problem.items():
        kept = found.get(f"problem_{name}")
        if kept is None or kept.shape != np.shape(value) or not _agree(kept, value):
            raise ValueError(
                f"{path} is the checkpoint of another fit: its {name} differs "
                f"({_short(kept)} there, {_short(value)} here). Use resume=False to start over."
            )
    return found


def restore(starts: Starts, found: dict[str, np.ndarray]) -> tuple[int, np.ndarray]:
    """INOUT starts: as they stood. Returns the iterations done and the active starts."""
    it = int(found["iteration"])
    if it > starts.max_iter:  # more than are asked for now: they are what there is
        starts.max_iter, starts.paths = it, np.zeros((len(starts.mu), it))
    for name in KEPT:
        getattr(starts, name)[:] = found[name]
    starts.paths[:, :it] = found["paths"]
    starts.stats.sizes[:] = found["sizes"]
    return it, found["active"]


def _agree(kept: np.ndarray, value: Any) -> bool:
    # Sums over the rows depend on how they are cut into blocks, in the last digits.
    return bool(np.allclose(kept, value, rtol=1e-9, atol=0.0, equal_nan=True))


def _short(value: Any) -> str:
    if value is None:
        return "unknown"
    values = np.asarray(value)
    return str(values.item()) if values.size == 1 else f"an array of shape {values.shape}"
