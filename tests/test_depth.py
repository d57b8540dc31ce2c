"""Rows read unevenly: single cells whose depth would be taken for clusters."""

import numpy as np
import pytest
from scipy import sparse

from mnarkmeans import MNARKMeans
from mnarkmeans._penalty.choice import first_fits
from mnarkmeans._penalty.depth import Entries, read_unevenly, without_levels
from mnarkmeans._penalty.rows import Rows
from mnarkmeans._solver import k_means_plus_plus
from mnarkmeans._validation import observe
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.missingness import ampute, diagnose

FITS = dict(max_iter=100, tol=1e-5, threads=1)


def cells(seed=0, n=240, p=300, k=4):
    """Counts divided by the total of their cell, logarithms, zeros as gaps; and the classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(k, size=n)
    level = np.exp(rng.normal(size=p) + rng.normal(size=(k, p)) * (rng.random((k, p)) < 0.12))
    mean = np.exp(0.5 * rng.normal(size=(n, 1))) * level[classes]
    counts = rng.poisson(rng.gamma(2.0, mean / 2.0)).astype(float)
    total = counts.sum(axis=1, keepdims=True)
    values = np.log1p(counts * (np.median(total) / total))
    return np.where(values > 0, values, np.nan), classes


def by_depth_alone(seed=0, n=240, p=200, k=3):
    """Rows of high level lose more of their values, whichever those are."""
    rng = np.random.default_rng(seed)
    centers = 5.0 + rng.normal(size=p) + rng.normal(size=(k, p)) * (rng.random((k, p)) < 0.3)
    level = rng.normal(size=(n, 1))
    X = centers[rng.integers(k, size=n)] + 0.5 * level + 0.7 * rng.normal(size=(n, p))
    return np.where(rng.random((n, p)) < 1 / (1 + np.exp(-0.8 * level)), np.nan, X)


def is_uneven(X, k=3, **given):
    observed = observe(X, **{"reference": 0.0, **given})
    starts = k_means_plus_plus(observed, 4, k, np.random.RandomState(0), 1)
    return read_unevenly(observed, Rows(observed), first_fits(observed, starts, **FITS)[0])


@pytest.mark.parametrize("seed", range(3))
def test_cells_are_grouped_by_class_not_by_depth(seed):
    X, classes = cells(seed)
    error = {
        lam: clustering_error_rate(classes, MNARKMeans(4, lam=lam, random_state=0).fit_predict(X))
        for lam in ("auto", 0.0, 1.0)
    }
    assert error["auto"] <= error[1.0] + 0.03
    assert error["auto"] < error[0.0] - 0.1


@pytest.mark.parametrize("seed", range(4))
def test_gaps_by_depth_alone_ask_for_no_penalty(seed):
    X = by_depth_alone(seed)
    assert is_uneven(X)
    model = MNARKMeans(3, random_state=0).fit(X)
    assert model.lam_ == 0.0
    assert model.missingness_.mechanism == "mcar"


def test_depth_is_seen_only_where_rows_with_more_gaps_have_larger_values():
    assert is_uneven(cells()[0], k=4)
    rng = np.random.default_rng(0)
    X = 10.0 + rng.normal(size=(300, 1)) + rng.normal(size=(300, 40))
    for mechanism in ("limit", "mcar"):  # rows of low level lose more, or all alike
        assert not is_uneven(ampute(X, mechanism, fraction=0.4, rng=0), reference="min")
    assert not is_uneven(ampute(X - 10.0, "mnar0", fraction=0.4, rng=0))  # both sides of zero


def test_levels_and_how_features_follow_them():
    rng = np.random.default_rng(0)
    level, follows = rng.normal(size=400), np.repeat([0.5, 1.0, 1.5], 40)
    X = rng.normal(size=120) + np.outer(level, follows) + 0.1 * rng.normal(size=(400, 120))
    X[rng.random(X.shape) < 0.3] = np.nan
    X += 20.0
    found = Entries.of(observe(X)).levels(np.zeros(400, np.intp), 1)
    np.testing.assert_allclose(found.of_rows, level - level.mean(), atol=0.2)
    assert np.abs(found.rest).mean() < 0.15
    assert np.nanstd(without_levels(observe(X)).source - np.nanmean(X, axis=0)) < 0.2


def test_a_coded_and_a_sparse_table_lose_the_same_levels():
    X, _ = cells(n=60, p=50)
    filled = np.nan_to_num(X)
    level = without_levels(observe(X)).source
    coded = without_levels(observe(np.where(np.isnan(X), -1.0, X), missing_values=-1.0)).source
    stored = without_levels(observe(sparse.csr_array(filled))).source
    np.testing.assert_allclose(coded, level)
    np.testing.assert_allclose(stored.toarray()[filled > 0], level[filled > 0])


def test_weights_storage_and_order_of_the_rows_do_not_matter():
    X, _ = cells(n=200)  # twice as many are still judged whole
    usual = MNARKMeans(4, random_state=0).fit(X)
    assert usual.lam_ > 0.0
    order = np.random.default_rng(1).permutation(len(X))
    twice = MNARKMeans(4, random_state=0).fit(np.vstack([X, X]))
    doubled = MNARKMeans(4, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    stored = MNARKMeans(4, random_state=0).fit(sparse.csr_array(np.nan_to_num(X)))
    assert stored.lam_ == usual.lam_ == MNARKMeans(4, random_state=0).fit(X[order]).lam_
    assert doubled.lam_ == twice.lam_


def test_the_diagnosis_says_what_the_fit_does():
    X, _ = cells()
    fit = MNARKMeans(4, random_state=0).fit(X).missingness_
    told = diagnose(X, 0.0, n_clusters=4).missingness
    assert (told.lam, told.sentence) == (fit.lam, fit.sentence)
