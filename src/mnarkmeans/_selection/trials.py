"""One trial for each number of clusters: what it showed, how to remember it, which one wins."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._penalty.answer import Missingness
from .agreement import spread
from .criteria import Verdict, next_to_empty
from .evidence import Evidence

SAME_STABILITY = 0.02  # adjusted Rand index: more clusters are taken when they are as stable


@dataclass(frozen=True)
class Trial:
    """One k: the evidence, the verdict on it, and what the likelihood said."""

    evidence: Evidence
    verdict: Verdict
    missingness: Missingness | None

    @property
    def stability(self) -> float:
        """1 - instability of the choice; one cluster is trivially stable and says nothing."""
        if self.evidence.k == 1:
            return -math.inf
        return 1.0 - float(self.verdict.instability[:, self.verdict.choice].mean())

    @property
    def is_whole(self) -> bool:
        """Every cluster of the choice has rows: one row by itself comes back in any split."""
        return not next_to_empty(self.evidence)[self.verdict.choice]

    def columns(self) -> dict[str, np.ndarray]:
        evidence, instability = self.evidence, self.verdict.instability
        size = len(evidence.lams)
        held_out = evidence.held_out
        return {
            "param_n_clusters": np.full(size, evidence.k),
            "param_lam": evidence.lams.copy(),
            "mean_instability": instability.mean(axis=0),
            "std_instability": spread(instability),
            "mean_heldout_loss": held_out.mean(axis=0),
            "std_heldout_loss": spread(held_out),
            "smallest_cluster": evidence.smallest_cluster,
            "mean_fit_time": np.full(size, evidence.seconds.mean()),
            "std_fit_time": np.full(size, evidence.seconds.std()),
            "chosen_for_k": np.arange(size) == self.verdict.choice,
        }

    def to_plain(self) -> dict[str, Any]:
        """Numbers and arrays, for a file."""
        return {
            "evidence": asdict(self.evidence),
            "verdict": self.verdict._asdict(),
            "missingness": None if self.missingness is None else asdict(self.missingness),
        }

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> Trial:
        """The inverse of `to_plain`."""
        missingness = stored["missingness"]
        return cls(
            Evidence(**stored["evidence"]),
            Verdict(**stored["verdict"]),
            None if missingness is None else Missingness(**missingness),
        )


class Trials:
    """What is known of each k before it is tried: nothing. Subclasses remember."""

    def load(self, k: int) -> Trial | None:
        """The trial of an earlier run."""
        return None

    def done(self, k: int, trial: Trial) -> None:
        """Called with every trial, in the order of k."""


class Progress:
    """A line per finished part, with the time left."""

    def __init__(self, total: int, loud: bool):
        self.total, self.loud, self.done, self.begin = total, loud, 0, time.perf_counter()

    def step(self) -> None:
        self.done += 1
        if self.loud:
            spent = time.perf_counter() - self.begin
            left = spent / self.done * (self.total - self.done)
            print(f"fit {self.done}/{self.total}: {spent:.1f} s spent, about {left:.1f} s left")


def choose_k(trials: list[Trial]) -> int:
    """The last (largest k) that is as stable as the best, and has no cluster next to empty."""
    values = np.array([trial.stability for trial in trials])
    if not np.isfinite(values).any():
        return 0
    as_stable = values >= values.max() - SAME_STABILITY
    whole = as_stable & np.array([trial.is_whole for trial in trials])
    return int(np.flatnonzero(whole)[-1]) if whole.any() else int(np.argmax(values))
