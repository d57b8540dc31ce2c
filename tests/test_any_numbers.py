"""What a row gets depends on the row and the model alone; numbers too large are refused."""

import numpy as np
import pytest
from places import grouped_rows, to_csr

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, _core

nan = np.nan


def table(p=6, **how):
    return grouped_rows(200, p, apart=4.0, **how)


# --- the row and the model alone --------------------------------------------------------------


@pytest.mark.parametrize("far", [1e9, 1e10, 1e15, 1e100, -1e60])
@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_a_far_row_does_not_change_the_labels_of_others(far, form):
    X = np.r_[np.zeros((5, 1)), np.ones((5, 1))]
    model = MNARKMeans(2, lam=0.5, init=[[0.0], [1.0]]).fit(X)
    assert model.predict(form(np.array([[0.0], [1.0], [far]])))[:2].tolist() == [0, 1]


@pytest.mark.parametrize("form", [np.asarray, to_csr], ids=["dense", "csr"])
@pytest.mark.parametrize("lam", [0.0, 0.5, 3.0])
def test_every_answer_is_one_of_the_row_and_the_model(form, lam):
    model = MNARKMeans(3, lam=lam, random_state=0, reference=0.3).fit(table())
    X = table(seed=1)
    company = np.r_[X, np.full((1, 6), 1e12), table(seed=2) * 1e6]
    alone = [
        np.concatenate([getattr(model, name)(form(row[None])) for row in X])
        for name in ("predict", "transform", "impute")
    ]
    for name, expected in zip(("predict", "transform", "impute"), alone, strict=True):
        assert np.array_equal(getattr(model, name)(form(company))[: len(X)], expected), name
    scores = [model.score(form(row[None])) for row in X]
    weights = np.r_[np.ones(len(X)), np.zeros(len(company) - len(X))]
    assert model.score(form(company), sample_weight=weights) == pytest.approx(
        sum(scores), rel=1e-12
    )


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 2.0], [1.0, 0.5, 0.5, 3.0]])
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_labels_are_those_of_predict(weights, algorithm):
    X = np.array([[0.0], [2.0], [2.0], [0.0]])
    model = MNARKMeans(3, lam=0.5, init=[[1.0], [0.0], [2.0]], algorithm=algorithm)
    with pytest.warns(match="distinct clusters"):
        model.fit(X, sample_weight=weights)
    assert np.array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("form", [np.asarray, to_csr], ids=["dense", "csr"])
@pytest.mark.parametrize("lam", [0.0, 0.5, [0.0, 2.0]])
def test_a_row_without_values_gets_the_centre_nearest_to_the_reference(form, lam):
    X = np.array([[9.0, 9.0], [8.0, 9.0], [0.1, nan], [nan, 0.2], [0.1, 0.2]])
    model = MNARKMeans(2, lam=lam, init=[[9.0, 9.0], [0.0, 0.0]], reference=0.0).fit(form(X))
    empty = np.full((1, 2), nan)
    assert model.predict(form(empty)).tolist() == [1]
    filled = model.impute(form(np.r_[X, empty]))
    assert np.array_equal(filled[-1], model.cluster_centers_[1])


# --- large and small --------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, to_csr], ids=["dense", "csr"])
@pytest.mark.parametrize("scale", [1e-130, 1e-60, 1e60, 1e140])
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_any_scale_between_gives_the_same_clusters(form, scale, algorithm):
    scale, init = 2.0 ** np.round(np.log2(scale)), np.arange(3.0)[:, None] * np.full(6, 4.0)
    one, other = (
        MNARKMeans(3, lam=0.5, init=by * init, algorithm=algorithm).fit(form(by * table()))
        for by in (1.0, scale)
    )
    assert np.array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(other.cluster_centers_, scale * one.cluster_centers_, rtol=1e-12)
    assert other.inertia_ == pytest.approx(scale**2 * one.inertia_, rel=1e-12)


def fits(X, lam=0.5, **settings):
    yield lambda: MNARKMeans(2, lam=lam, random_state=0, **settings).fit(X)
    yield lambda: MNARKMeans(2, lam=lam, random_state=0, **settings).fit(to_csr(X))
    yield lambda: MiniBatchMNARKMeans(2, lam=lam, random_state=0, **settings).fit(X)


@pytest.mark.parametrize("value", [1e153, -1e153, 1e200, 1.7e308])
def test_values_whose_squares_overflow_are_refused(value):
    X = table()
    X[3, 2] = value
    for fit in fits(X):
        with pytest.raises(ValueError, match="column 2 are too large"):
            fit()
    model = MNARKMeans(2, lam=0.5, random_state=0).fit(table())
    for ask in (model.predict, model.transform, model.score, model.impute):
        with pytest.raises(ValueError, match="column 2 are too large"):
            ask(X)
    weights = np.ones(len(X))
    weights[3] = 0.0  # it gets a label all the same
    with pytest.raises(ValueError, match="column 2 are too large"):
        MNARKMeans(2, lam=0.5).fit(X, sample_weight=weights)


def test_blocks_are_judged_as_one_table():
    da = pytest.importorskip("dask.array")
    from mnarkmeans.dask import MNARKMeans as OnDask

    X = table()
    model = OnDask(2, lam=0.5, random_state=0).fit(da.from_array(X, chunks=(50, 6)))
    X[150, 2] = 1e160
    blocks = da.from_array(X, chunks=(50, 6))
    with pytest.raises(ValueError, match="column 2 are too large"):
        OnDask(2, lam=0.5, random_state=0).fit(blocks)
    with pytest.raises(ValueError, match="column 2 are too large"):
        model.predict(blocks).compute()
    with pytest.raises(ValueError, match="lam=1e\\+90 is too large"):
        OnDask(2, lam=1e90).fit(da.from_array(1e110 * table(), chunks=(50, 6)))


def test_the_value_is_named():
    X = np.array([[1.0, 2.0], [0.0, 1e160], [3.0, nan]])
    with pytest.raises(ValueError, match="reach over 1e\\+160"):
        MNARKMeans(2, lam=0.5).fit(X)


@pytest.mark.parametrize("lam", [1e300, 1e101, [0.5] * 5 + [1e200]])
def test_a_penalty_beyond_all_measure_is_refused(lam):
    for fit in fits(table(), lam=lam):
        with pytest.raises(ValueError, match="lam may be 1e\\+100 at most"):
            fit()


def test_a_penalty_that_overflows_with_these_values_is_refused():
    for fit in fits(1e110 * table(), lam=1e90):
        with pytest.raises(ValueError, match="lam=1e\\+90 is too large for the values of column"):
            fit()


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("lam", [1e20, 1e100])
def test_the_largest_penalty_puts_centres_at_the_reference(lam, algorithm):
    X = table()
    model = MNARKMeans(3, lam=lam, random_state=0, algorithm=algorithm).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)
    for l in np.unique(model.labels_):
        gaps = np.isnan(X[model.labels_ == l]).any(axis=0)
        assert np.abs(model.cluster_centers_[l, gaps]).max(initial=0.0) < 1e-15


def test_starting_centres_and_references_count_too():
    with pytest.raises(ValueError, match="too large"):
        MNARKMeans(2, lam=0.5, init=np.array([[0.0] * 6, [1e170] * 6])).fit(table())
    with pytest.raises(ValueError, match="too large"):
        MNARKMeans(2, lam=0.5, reference=1e170).fit(table())


def test_weights_beyond_all_measure_are_refused():
    with pytest.raises(ValueError, match="adds up to 2e\\+62"):
        MNARKMeans(2, lam=0.5).fit(table(), sample_weight=np.full(200, 1e60))


def test_values_whose_squares_vanish_are_refused():
    for fit in fits(1e-170 * table()):
        with pytest.raises(ValueError, match="too small"):
            fit()
    constant = MNARKMeans(1, lam=0.5).fit(np.zeros((5, 2)))
    assert not constant.cluster_centers_.any()


@pytest.mark.parametrize("scale", [1e19, 1e-25, 1e37, 1e-37])
def test_distances_of_float32_are_rounded_once(scale):
    X = (scale * table()).astype(np.float32)
    model = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    found = model.transform(X)
    wide = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    wide.cluster_centers_ = wide.cluster_centers_.astype(np.float64)
    expected = wide.transform(X.astype(np.float64))
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert (found > 0).any()
    assert np.array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("scale", [1e16, 1e18, 1e19, 1e20, 1e30])
@pytest.mark.parametrize("lam", [0.0, 1e-15, 0.5, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_are_the_nearest_where_float32_scores_overflow(scale, lam, dtype, each_level):
    X = (scale * table(p=3, k=8)).astype(dtype)
    centers = scale * np.random.default_rng(1).normal(size=(1, 12, 3)) * 10
    mu, lams = np.ascontiguousarray(centers), np.full((1, 3), lam)
    own = _core.Centers(mu, lams, np.zeros(3), mu.mean(axis=(0, 1)))
    rows = _core.Table(X, nan, np.ones(len(X)))
    assert np.array_equal(_core.assign(rows, own, 1), _core.assign(rows, own, 1, plain=True))
