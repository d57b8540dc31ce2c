"""Rows that cannot change cluster are passed over, and nothing else changes."""

from unittest import mock

import numpy as np
import pytest
from places import FORMS, Place, slabs

from mnarkmeans import MNARKMeans
from mnarkmeans import _core as core
from mnarkmeans._solver import FEWEST_FEATURES, Bounds


def table(rng, n=3000, p=20, k=6, spread=1.0, share=0.3):
    centers = spread * rng.normal(size=(k, p))
    X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, p))
    X[rng.random((n, p)) < share] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    return X, np.nan_to_num(X[:k])


def fit(X, start, lam, form, entries=60, **options):
    options = {
        "algorithm": "lloyd",
        "max_iter": 60,
        "tol": 0.0,
        "lam": lam,
        "init": start,
    } | options
    with slabs(entries):
        return MNARKMeans(len(start), **options).fit(Place("slabs", form).table(X))


def with_and_without(X, start, lam, form, **options):
    """Two fits. The first one must have had bounds: without them this would be no test."""
    follow = mock.patch.object(Bounds, "follow", autospec=True, side_effect=Bounds.follow)
    with follow as followed:
        pruned = fit(X, start, lam, form, **options)
    assert followed.call_count > 1
    with mock.patch.object(Bounds, "for_table", return_value=None):
        return pruned, fit(X, start, lam, form, **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0, 5.0, "per feature"])
@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_fits_are_the_same_without_bounds(form, lam, spread):
    rng = np.random.default_rng(int(10 * spread))
    share = 0.3 if form == "dense" else 0.7
    X, start = table(rng, spread=spread, share=share)
    if lam == "per feature":
        lam = rng.choice([0.0, 0.5, 1.0, 6.0], X.shape[1])
    pruned, plain = with_and_without(X, start, lam, form)
    assert pruned.n_iter_ == plain.n_iter_ > 5
    np.testing.assert_array_equal(pruned.labels_, plain.labels_)
    np.testing.assert_array_equal(pruned.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(pruned.loss_path_, plain.loss_path_)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [2.0**-330, 2.0**-134, 2.0**-126, 2.0**64, 2.0**127, 2.0**300])
def test_fits_are_the_same_without_bounds_where_float32_ends(form, scale):
    """Bounds are kept as float32, which has no such numbers, or only a few digits of them; slabs of
    many rows, of which later ones are no longer looked at in float32."""
    X, start = table(np.random.default_rng(6), spread=0.3, share=0.3 if form == "dense" else 0.7)
    pruned, plain = with_and_without(scale * X, scale * start, 0.4, form, entries=30_000)
    np.testing.assert_array_equal(pruned.labels_, plain.labels_)
    np.testing.assert_array_equal(pruned.loss_path_, plain.loss_path_)


@pytest.mark.parametrize("form", FORMS)
def test_bounds_that_promise_too_much_are_found_out(form, monkeypatch):
    """The test above can fail: with moves that count for half, labels differ."""
    X, start = table(np.random.default_rng(3), spread=0.3)
    monkeypatch.setattr("mnarkmeans._solver.MARGIN", 0.5)
    pruned, plain = with_and_without(X, start, 0.4, form)
    assert np.any(pruned.labels_ != plain.labels_) or pruned.n_iter_ != plain.n_iter_


@pytest.mark.parametrize("form", FORMS)
def test_empty_clusters_are_filled_alike(form):
    X, start = table(np.random.default_rng(5))
    start[-1] = 1e6  # nobody's centre
    pruned, plain = with_and_without(X, start, 0.5, form)
    np.testing.assert_array_equal(pruned.labels_, plain.labels_)
    np.testing.assert_array_equal(pruned.cluster_centers_, plain.cluster_centers_)
    assert len(np.unique(pruned.labels_)) == len(start)


@pytest.mark.parametrize("n_features", [FEWEST_FEATURES - 1, FEWEST_FEATURES])
def test_short_rows_have_no_bounds(n_features):
    assert (Bounds.for_table(100, 3, n_features) is None) == (n_features < FEWEST_FEATURES)
    assert Bounds.for_table(100, 1, n_features) is None  # nor has a single cluster


def passes(X, start, lam, form, count):
    """Some passes with the same centres: labels and bounds."""
    k, p = start.shape
    rows = core.Table(Place("block", form).table(X), np.nan, np.ones(len(X)))
    starts = core.Starts(
        start[None], np.full((1, p), lam), np.zeros(p), np.zeros(p), n_rows=len(X), max_iter=1,
        tol=0.0, weights=(True, float(len(X))),
    )  # fmt: skip
    bounds, one = Bounds(len(X), k), np.zeros(1, np.int64)
    for number in range(count):
        known = bounds.follow(0, start, starts.lam[0])
        core.pass_(rows, starts, one, fresh=number == 0, known=known, threads=1)
    return starts, bounds


@pytest.mark.parametrize("form", FORMS)
def test_separated_clusters_are_not_looked_at_again(form):
    X, start = table(np.random.default_rng(6), n=2000, spread=5.0)
    starts, bounds = passes(X, start, 0.5, form, 2)
    known = bounds.known
    assert np.mean(known.expiry > known.drop[starts.labels[0]]) > 0.9
    bounds.follow(0, start + 100.0, starts.lam[0])
    assert not np.any(known.expiry > known.drop[starts.labels[0]])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0, 3.0])
def test_margins_never_exceed_the_true_ones(form, lam):
    X, start = table(np.random.default_rng(7), n=1500, p=13, k=5)
    _, bounds = passes(X, start, lam, form, 1)
    margins, seen = bounds.known.expiry, ~np.isnan(X)
    filled = np.where(seen, X, 0.0)[:, None]
    near = np.sum(seen[:, None] * (filled - start) ** 2, axis=2)
    distances = np.sort(np.sqrt(near + lam * np.sum(~seen[:, None] * start**2, axis=2)), axis=1)
    true = distances[:, 1] - distances[:, 0]
    assert np.all(margins <= true)
    assert np.median(margins[true > 0.01] / true[true > 0.01]) > 0.99
