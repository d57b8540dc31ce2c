"""Every rule on one table: the fits are shared, so that rules differ by nothing but the rule."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from mnarkmeans._penalty.choice import likelihood_choice
from mnarkmeans._selection.criteria import CRITERIA, SHARE_OF_ROWS, Asked, held_out_penalty
from mnarkmeans._selection.evidence import (
    Evidence,
    gather,
    subsamples,
    thirds,
    warm_starts,
)
from mnarkmeans._selection.fits import Settings
from mnarkmeans._selection.grid import candidate_lams
from mnarkmeans._selection.predicted import predicted_by

from benchmarks.study.designs import Data, Design
from mnarkmeans import MNARKMeans
from mnarkmeans._observed import Observed
from mnarkmeans._solver import STARTS, assign_rows
from mnarkmeans._validation import observe
from mnarkmeans.metrics import center_mse, clustering_error_rate

SETTINGS = Settings(init="k-means++", n_init=10, max_iter=100, tol=1e-5, threads=2)
EVIDENCE = {"paper": "thirds", "heldout": "shared"}  # rule -> its fits; the others': "alone"
FIXED = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)


def evaluate(design: Design, data: Data, seed: int) -> list[dict]:
    """One row per grid and rule."""
    observed = observe(data.X, reference=design.reference)
    rng = np.random.RandomState(seed)
    k = design.k
    begin = time.perf_counter()
    starts = STARTS["k-means++"](observed, 10, k, rng, SETTINGS.threads)
    likelihood = likelihood_choice(
        observed, starts, max_iter=100, tol=1e-5, threads=SETTINGS.threads
    )
    auto_time = time.perf_counter() - begin
    grids = {
        "default": candidate_lams(likelihood.lam, bool(np.isnan(data.X).any())),
        "paper": np.array(design.paper_lams, dtype=float),
    }
    lams = np.unique(np.concatenate([*grids.values(), FIXED, [likelihood.lam]]))
    penalty = held_out_penalty(likelihood)
    evidence, times = _evidence(observed, k, lams, penalty, rng)
    begin = time.perf_counter()
    predicted = predicted_by(observed, evidence["shared"], penalty, SETTINGS)
    times["shared"] += time.perf_counter() - begin
    errors, distances, labels = _fits(observed, data, evidence["shared"], seed)

    rows = []

    def note(grid: str, rule: str, index: int, seconds: float) -> None:
        rows.append(
            {
                "group": design.group,
                "design": design.name,
                "seed": seed,
                "grid": grid,
                "rule": rule,
                "lam": lams[index],
                "cer": errors[index],
                "mse": distances[index],
                "seconds": seconds,
            }
        )

    for name, grid in grids.items():
        index = np.searchsorted(lams, grid)
        for rule, criterion in CRITERIA.items():
            kind = EVIDENCE.get(rule, "alone")
            asked = Asked(
                full_labels=labels[:, index],
                likelihood_lam=likelihood.lam,
                predicted=predicted[:, index],
            )
            begin = time.perf_counter()
            choice = criterion(_only(evidence[kind], index), asked).choice
            spent = times[kind] * len(grid) / len(lams)
            note(name, rule, index[choice], spent + time.perf_counter() - begin)
        note(name, "middle of the grid", index[len(index) // 2], 0.0)
        note(name, "oracle", index[int(np.argmin(errors[index]))], 0.0)
    note("none", "auto", int(np.searchsorted(lams, likelihood.lam)), auto_time)
    for lam in FIXED:
        note("none", f"lam = {lam:g}", int(np.searchsorted(lams, lam)), 0.0)
    return rows


def _fits(observed: Observed, data: Data, evidence: Evidence, seed: int):
    """CER, centre MSE and labels of the fit to all rows, for every lam, as MNARKMeansCV refits."""
    k, lams = evidence.k, evidence.lams
    models = [MNARKMeans(k, lam=lam, n_init=10, random_state=seed) for lam in lams]
    fresh = models[0]._starts(observed, data.X, np.random.RandomState(seed))
    found = []
    for g, model in enumerate(models):
        warm = warm_starts(observed, evidence, g, SETTINGS)
        found.append(model._solve(observed, np.concatenate([fresh, warm]), model.lam).centers)
    centers = np.stack(found)
    labels = assign_rows(observed, centers, lams, SETTINGS.threads)
    errors = np.array([clustering_error_rate(data.classes, own) for own in labels.T])
    if data.centers is None:
        distances = np.full(len(lams), np.nan)
    else:
        distances = np.array([center_mse(data.centers, found) for found in centers])
    return errors, distances, labels


def _evidence(observed: Observed, k: int, lams: np.ndarray, held_out_lam: float, rng):
    """As MNARKMeansCV gathers it: thirds, and subsamples that share starts or do not."""
    n = observed.n_rows
    parts = {
        "shared": subsamples(n, 10, SHARE_OF_ROWS, rng),
        "thirds": thirds(n, 10, rng),
        "alone": subsamples(n, 12, SHARE_OF_ROWS, rng),
    }
    evidence, times = {}, {}
    for name, own in parts.items():
        begin = time.perf_counter()
        seeds = rng.randint(2**31 - 1, size=len(own))
        settings = replace(SETTINGS, thorough=name != "shared")
        penalty = held_out_lam if name == "shared" else None
        evidence[name] = gather(observed, k, lams, own, seeds, settings, penalty)
        times[name] = time.perf_counter() - begin
    return evidence, times


def _only(evidence: Evidence, index: np.ndarray) -> Evidence:
    return replace(
        evidence,
        lams=evidence.lams[index],
        labels=np.ascontiguousarray(evidence.labels[:, :, index]),
        held_out=evidence.held_out[:, index],
    )
