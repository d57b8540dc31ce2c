"""What makes the choice of lam doubtful, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .agreement import spread
from .trials import Trial


def doubts(chosen: Trial, given: bool) -> Iterator[str]:
    """Sentences on the trial whose lam was taken. ``given``: the candidates were the user's."""
    evidence, choice = chosen.evidence, chosen.verdict.choice
    lams, k, instability = evidence.lams, evidence.k, chosen.verdict.instability
    mean = instability.mean(axis=0)
    error = spread(instability) / np.sqrt(len(evidence.labels))
    edge = choice == len(lams) - 1 or (choice == 0 and lams[0] > 0)
    if len(lams) > 2 and k > 1 and np.ptp(mean) <= error.min():
        yield f"{_equals(mean)}; reproducibility does not say which one to take."
    elif given and len(lams) > 1 and edge:
        yield (
            f"lam={lams[choice]:g} lies at the edge of the candidates ({lams[0]:g} to "
            f"{lams[-1]:g}); extend lams beyond it."
        )
    if evidence.smallest_cluster[choice] == 0:
        yield (
            f"With lam={lams[choice]:g} clusters collapse: fits to parts of the rows do not keep "
            f"{k} clusters. Try smaller lams or fewer clusters."
        )


def _equals(mean: np.ndarray) -> str:
    if mean.max() < 5e-4:
        return "All candidates for lam find the same clusters whichever rows are left out"
    return (
        f"All candidates for lam are equally unstable (instability {mean.min():.3f} to "
        f"{mean.max():.3f})"
    )
