"""Labels and confidence put back into a copy of the .h5ad file they were found in.

The copy has what `mnarkmeans.tl.mnar_kmeans` files under "mnar_kmeans": obs (cluster, distance,
confidence; nothing for rows that were dropped), varm (centres, as they were fitted) and uns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._io import require
from ._console import plain
from ._errors import UserError
from ._options import FitOutput, Source
from ._output import FileClaim, claimed_file
from ._results import Results

KEY = "mnar_kmeans"


@contextmanager
def maybe_claimed_copy(source: Source, output: FitOutput) -> Iterator[FileClaim | None]:
    """Claim the copy, if one was asked for and can be made."""
    if output.h5ad is None:
        yield None
        return
    if source.data.suffix.lower() != ".h5ad" or output.h5ad.suffix.lower() != ".h5ad":
        raise UserError("--write-h5ad makes a copy of an .h5ad file; both names must end so")
    if source.reading.transpose:
        raise UserError("--write-h5ad has labels for the rows of the file; leave --transpose out")
    require("anndata", "anndata")
    with claimed_file(output.h5ad, force=output.force, inputs=source.inputs) as claim:
        yield claim


def write_copy(claim: FileClaim | None, data: Path, results: Results) -> None:
    """The copy, with the results in it."""
    if claim is None:
        return
    from ..tl._filing import file_results

    adata = require("anndata", "anndata").read_h5ad(data)
    job, model = results.job, results.estimator
    rows = _rows(adata, job.table.ids)
    used = np.isin(adata.var_names.to_numpy(dtype=str), np.array(job.table.features, dtype=str))
    order = {name: j for j, name in enumerate(job.table.features)}
    told = {
        "command": results.summary["command"],
        "preparation": "; ".join(job.preparation.describe()),
    }
    if [order[str(name)] for name in adata.var_names[used]] != list(range(len(order))):
        raise UserError("--write-h5ad needs every feature of the model in the file, in its order")
    part = adata if len(rows) == adata.n_obs else adata[rows].copy()
    file_results(part, KEY, model, job.X, used, told, in_genes=True)
    if part is not adata:
        for name in (KEY, f"{KEY}_distance", f"{KEY}_confidence"):
            adata.obs[name] = part.obs[name].reindex(adata.obs_names)
        adata.varm[KEY] = part.varm[KEY]
        for name in (KEY, f"{KEY}_markers"):
            if name in part.uns:
                adata.uns[name] = part.uns[name]
    adata.uns[KEY]["lam"] = plain(adata.uns[KEY]["lam"])
    with claim.file() as path:
        adata.write_h5ad(path)


def _rows(adata: Any, ids: np.ndarray) -> np.ndarray:
    """Where the rows of the table are in the file."""
    if len(ids) == adata.n_obs:
        return np.arange(adata.n_obs)
    if not adata.obs_names.is_unique:
        raise UserError(
            "rows were dropped and the rows of the file have no names of their own, so that "
            "--write-h5ad cannot tell which is which"
        )
    return adata.obs_names.get_indexer(ids.astype(str))
