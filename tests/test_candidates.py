"""Candidates for lam: all of them wherever there are gaps, however these arose."""

from types import SimpleNamespace

import numpy as np
import pytest

from mnarkmeans import MNARKMeansCV
from mnarkmeans._selection.trials import choose_k
from mnarkmeans.missingness import ampute


@pytest.mark.filterwarnings("ignore::mnarkmeans.SelectionWarning")
@pytest.mark.parametrize("mechanism", ["limit", "mcar", "mnar0", "mnar2"])
def test_gaps_of_every_kind_are_tried_with_more_than_one_penalty(mechanism):
    """Loss below a limit has no share at random and no decay, and has gaps all the same."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 150)
    complete = rng.normal(size=(3, 8))[kind] * 3 + 6 + rng.normal(size=(150, 8))
    X = ampute(complete, mechanism, fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    search = MNARKMeansCV(3, n_splits=2, n_init=2, reference="min", random_state=0).fit(X)
    assert len(search.cv_results_["param_lam"]) > 3


def test_without_gaps_one_penalty_is_enough():
    X = np.random.default_rng(0).normal(size=(60, 3))
    search = MNARKMeansCV(2, n_splits=2, n_init=2, random_state=0).fit(X)
    assert search.cv_results_["param_lam"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("stability", "whole", "best"),
    [
        ([1.0, 0.99, 0.985], [True, True, False], 1),  # one row by itself comes back in any split
        ([1.0, 0.99, 0.985], [True, True, True], 2),
        ([0.8, 1.0, 0.9], [True, False, True], 1),  # but it may be all there is
        ([-np.inf, -np.inf], [True, True], 0),
    ],
)
def test_more_clusters_are_taken_if_as_stable_and_none_is_next_to_empty(stability, whole, best):
    trials = [
        SimpleNamespace(stability=s, is_whole=w) for s, w in zip(stability, whole, strict=True)
    ]
    assert choose_k(trials) == best
