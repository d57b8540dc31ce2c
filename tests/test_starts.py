"""Starts: drawn alike from every form of a table, and led to the same ends alone or together, with
and without the bounds that pass over rows that cannot change cluster."""

from unittest import mock

import numpy as np
import pytest
from backends import FORMS, Backend, chunks, grouped_rows, to_csr
from core.inputs import starts_of
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MissingDataWarning, MNARKMeans, _core, _solver
from mnarkmeans._solver import STARTS, Bounds, run_starts
from mnarkmeans._validation import observe


def table(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = (100.0 + 3.0 * rng.normal(size=(n, p))).astype(np.float32).astype(np.float64)
    X[rng.random((n, p)) < 0.3] = np.nan
    return X


def draw(init, X, n_starts=7, k=4, threads=1, **how):
    rng = np.random.RandomState(0)
    return STARTS[init](observe(X, **how), n_starts, k, rng, threads)


@pytest.mark.parametrize("init", STARTS)
def test_another_precision_or_a_jitter_draws_the_same_rows(init):
    X = 25.0 + grouped_rows(2000, 12, apart=4.0, share=0.2)
    rng = np.random.default_rng(1)
    expected = draw(init, X)
    for near in (X.astype(np.float32), X + rng.uniform(-1e-9, 1e-9, X.shape), X * (1 + 1e-12)):
        np.testing.assert_allclose(draw(init, near), expected, rtol=1e-6)


@pytest.mark.parametrize("init", STARTS)
def test_starts_are_different_rows_of_some_weight_filled_with_the_means(init):
    X, weights = table(100, 5), np.ones(100)
    weights[20:] = 0.0
    filled = np.where(np.isnan(X), observe(X, sample_weight=weights).means, X)
    for centers in draw(init, X, n_starts=20, k=6, sample_weight=weights):
        assert len(np.unique(centers, axis=0)) == 6
        for center in centers:
            assert (filled[:20] == center).all(axis=1).any()


@pytest.mark.parametrize("init", STARTS)
def test_more_centres_than_distinct_rows_repeat_some(init):
    X = np.repeat([[0.0, 1.0], [2.0, np.nan]], 5, axis=0)
    for centers in draw(init, X, n_starts=20, k=8):
        assert len(np.unique(centers, axis=0)) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_a_start_does_not_depend_on_how_many_there_are(threads, each_level):
    X = table(120, 9)
    many = draw("k-means++", X, n_starts=100, threads=threads)
    assert np.array_equal(many[:7], draw("k-means++", X))
    assert np.array_equal(many, draw("k-means++", to_csr(X), n_starts=100))


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_a_start_ends_where_it_would_have_ended_alone(k, each_level):
    """Whatever lam the others have: with lam = 1 alone, gaps would be filled beforehand."""
    observed = observe(table(150, 70) - 100.0)
    centers = STARTS["k-means++"](observed, 9, k, np.random.RandomState(0), 1)
    centers[1::3, 0] = 1e3  # nobody's: it takes the row that costs most in its own start
    lams = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 2.0, 1.0, 0.0, 1.0])
    how = dict(max_iter=30, tol=0.0)
    together = run_starts(observed, centers, lams[:, None], threads=2, **how)
    for r, lam in enumerate(lams):
        alone = run_starts(observed, centers[[r]], lam, threads=1, **how)
        assert np.array_equal(together.centers[r], alone.centers[0])
        assert np.array_equal(together.path(r), alone.path(0))


@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_a_loss_that_sums_do_not_tell_is_that_of_its_own_start(form, each_level):
    """Tight groups far apart: next to nothing is left of the sums, in some starts or in all."""
    rng = np.random.default_rng(8)
    X = 100.0 * rng.normal(size=(5, 6))[rng.integers(5, size=90)] + 0.1 * rng.normal(size=(90, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    observed = observe(form(X), reference="min")
    centers = STARTS["random"](observed, 12, 5, np.random.RandomState(0), 1)
    how = dict(max_iter=30, tol=0.0, threads=1)
    together = run_starts(observed, centers, 0.0, **how)
    alone = [run_starts(observed, start[None], 0.0, **how).losses[0] for start in centers]
    np.testing.assert_allclose(together.losses, alone, rtol=1e-12)
    assert max(alone) > 1e3 * min(alone)


def test_many_starts_of_a_large_table_all_count(monkeypatch):
    """Memory may hold a few starts at a time."""
    X = np.random.default_rng(0).normal(size=(200, 6))
    X[::7, 1] = np.nan
    settings = {"lam": 0.5, "n_init": 7, "algorithm": "lloyd", "random_state": 3}
    with chunks():  # the table is cut, as large ones are
        whole = MNARKMeans(4, **settings).fit(X)
        monkeypatch.setattr("mnarkmeans._solver.BYTES_OF_LABELS", 3 * 4 * len(X))
        parts = MNARKMeans(4, **settings).fit(X)
    np.testing.assert_array_equal(parts.start_losses_, whole.start_losses_)
    assert len(parts.start_losses_) == 7
    np.testing.assert_array_equal(parts.cluster_centers_, whole.cluster_centers_)


def wide_table():
    """Six groups of unequal size among many features, half of the values missing."""
    rng = np.random.default_rng(0)
    groups = rng.choice(6, 600, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    centers = np.where(rng.random((6, 400)) < 0.1, rng.normal(0, 2, (6, 400)), 0.0)
    X = 3.0 + centers[groups] + rng.normal(0, 1.2, (600, 400))
    X[rng.random(X.shape) < 0.5] = np.nan
    return X, groups


def test_seeds_agree_on_a_wide_table():
    X, groups = wide_table()
    fits = [MNARKMeans(6, lam=0.2, random_state=seed).fit(X) for seed in range(4)]
    for fit in fits:
        assert adjusted_rand_score(fits[0].labels_, fit.labels_) > 0.98
        assert adjusted_rand_score(groups, fit.labels_) > 0.95


def test_a_feature_that_nobody_observes_changes_no_start():
    X = wide_table()[0]
    more = np.insert(X, 7, np.nan, axis=1)
    with pytest.warns(MissingDataWarning, match="1 feature.s. have no observed value"):
        other = MNARKMeans(6, lam=0.0, random_state=0).fit(more)
    model = MNARKMeans(6, lam=0.0, random_state=0).fit(X)
    np.testing.assert_allclose(other.start_losses_, model.start_losses_, rtol=1e-10)


def test_seeds_agree_on_simulated_cells():
    cells = pytest.importorskip("studies.cells", reason="the studies are not part of the package")
    X, types = cells.draw(2000, 1000, 103)
    for seed in range(2):
        labels = MNARKMeans(8, random_state=seed).fit_predict(X)
        assert adjusted_rand_score(types, labels) > 0.97


# --- bounds ---------------------------------------------------------------------------------------


def grouped(rng, n=3000, p=20, k=6, spread=1.0, share=0.3):
    centers = spread * rng.normal(size=(k, p))
    X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, p))
    X[rng.random((n, p)) < share] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    return X, np.nan_to_num(X[:k])


def same_without_bounds(X, start, lam, form, entries=60):
    """The fit. It must have had bounds: without them this would be no test."""

    def fit():
        how = {"algorithm": "lloyd", "max_iter": 60, "tol": 0.0}
        model = MNARKMeans(len(start), lam=lam, init=start, **how)
        return model.fit(Backend("chunks", form).table(X))

    follow = mock.patch.object(Bounds, "follow", autospec=True, side_effect=Bounds.follow)
    with chunks(entries), follow as followed:
        pruned = fit()
    assert followed.call_count > 1
    with chunks(entries), mock.patch.object(_solver, "FEWEST_FEATURES", 10**9):
        plain = fit()
    for name in ("labels_", "cluster_centers_", "loss_path_"):
        np.testing.assert_array_equal(getattr(pruned, name), getattr(plain, name))
    return pruned


@pytest.mark.filterwarnings("ignore:.*have a single row")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0, 5.0, "per feature"])
@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_fits_are_the_same_without_bounds(form, lam, spread):
    rng = np.random.default_rng(int(10 * spread))
    X, start = grouped(rng, spread=spread, share=0.3 if form == "dense" else 0.7)
    if lam == "per feature":
        lam = rng.choice([0.0, 0.5, 1.0, 6.0], X.shape[1])
    assert same_without_bounds(X, start, lam, form).n_iter_ > 5
    start[-1] = 1e6  # nobody's centre: an empty cluster is filled alike
    filled = same_without_bounds(X, start, lam, form)
    assert len(np.unique(filled.labels_)) == len(start)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exponent", [-330, -134, -126, 64, 127, 300])
def test_fits_are_the_same_without_bounds_where_float32_ends(form, exponent):
    """Bounds are kept as float32, which has no such numbers, or few digits of them; chunks of
    many rows, of which later ones are no longer looked at in float32."""
    X, start = grouped(np.random.default_rng(6), spread=0.3, share=0.3 if form == "dense" else 0.7)
    same_without_bounds(2.0**exponent * X, 2.0**exponent * start, 0.4, form, entries=30_000)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0, 3.0])
def test_margins_never_exceed_the_true_ones(form, lam):
    X, start = grouped(np.random.default_rng(7), n=1500, p=13, k=5)
    rows = _core.Table(Backend("block", form).table(X), np.nan, np.ones(len(X)))
    starts, bounds = starts_of(start[None], lam, len(X)), Bounds(len(X), len(start))
    bounds.follow(0, start, starts.lam[0])
    _core.pass_(rows, starts, np.array([0]), fresh=True, bounds=bounds, threads=1)
    margins, seen = bounds.margins, ~np.isnan(X)
    filled = np.where(seen, X, 0.0)[:, None]
    near = np.sum(seen[:, None] * (filled - start) ** 2, axis=2)
    distances = np.sort(np.sqrt(near + lam * np.sum(~seen[:, None] * start**2, axis=2)), axis=1)
    true = distances[:, 1] - distances[:, 0]
    assert np.all(margins <= true)
    assert np.median(margins[true > 0.01] / true[true > 0.01]) > 0.99
