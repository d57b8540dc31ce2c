"""One small file per contender. Each has

    NAME
    supports(job) -> bool
    fit(data, iterations) -> (centres, iterations done)

and imports what it needs inside ``fit``, so that a contender that is not installed is left out.
``iterations`` is None where every contender seeds its own starts and stops by its own rule.
"""

from . import (
    faiss_kmeans,
    kpod_pypi,
    numpy_reference,
    ours,
    sklearn_elkan,
    sklearn_lloyd,
    sklearnex_kmeans,
)

RIVALS = [
    ours,
    sklearn_lloyd,
    sklearn_elkan,
    sklearnex_kmeans,
    faiss_kmeans,
    kpod_pypi,
    numpy_reference,
]
