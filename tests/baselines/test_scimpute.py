"""scImpute: its mixture against scipy, its regression by hand, and the whole on toy cells."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import gamma

from mnarkmeans.baselines import ScImputeKMeans
from mnarkmeans.baselines._scimpute import (
    FLOOR,
    _fit_gamma,
    fit_mixture,
    group_cells,
    impute_group,
    scimpute,
)
from mnarkmeans.datasets import load_usoskin
from mnarkmeans.metrics import clustering_error_rate


def test_weighted_gamma_is_the_maximum_likelihood_one():
    y = gamma.rvs(2.5, scale=0.4, size=(400, 1), random_state=0)
    shape, inverse_scale = _fit_gamma(y, np.ones_like(y), np.array([400.0]))
    expected_shape, _, expected_scale = gamma.fit(y, floc=0)
    assert shape[0] == pytest.approx(expected_shape, rel=1e-4)
    assert 1 / inverse_scale[0] == pytest.approx(expected_scale, rel=1e-4)


def test_mixture_separates_dropouts_from_expression():
    rng = np.random.default_rng(0)
    dropped = rng.random((600, 2)) < [0.3, 0.6]
    y = np.where(dropped, FLOOR, rng.normal(2.0, 0.3, size=(600, 2)))
    mixture = fit_mixture(y)
    np.testing.assert_allclose(mixture.rate, dropped.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(mixture.mean, 2.0, atol=0.05)
    np.testing.assert_allclose(mixture.spread, 0.3, atol=0.05)
    np.testing.assert_array_equal(mixture.dropout(y) > 0.5, dropped)


def test_a_dropout_is_rebuilt_from_the_other_cells():
    """All cells are one profile, so any non-negative fit must return the profile's value."""
    rng = np.random.default_rng(0)
    profile = rng.uniform(2, 3, size=12)
    cells = np.repeat(profile[None], 10, axis=0) + rng.normal(0, 1e-3, size=(10, 12))
    holed = cells.copy()
    holed[0, 3] = holed[4, 7] = FLOOR
    completed = impute_group(holed, 0.5)
    assert completed[0, 3] == pytest.approx(profile[3], abs=0.02)
    assert completed[4, 7] == pytest.approx(profile[7], abs=0.02)
    kept = holed > FLOOR
    np.testing.assert_array_equal(completed[kept], holed[kept])


def test_imputed_values_never_exceed_the_genes_maximum():
    rng = np.random.default_rng(1)
    y = np.where(rng.random((20, 15)) < 0.3, FLOOR, rng.normal(2, 0.5, size=(20, 15)))
    assert (impute_group(y, 0.5).max(axis=0) <= y.max(axis=0) + 1e-12).all()


def test_a_far_cell_is_set_aside():
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(40, 6)) + 6 * np.repeat([0, 1], 20)[:, None]
    cells[0] += 60
    groups = group_cells(cells, 2, 0)
    assert groups[0] == -1
    one, two = set(groups[1:20]) - {-1}, set(groups[20:]) - {-1}
    assert len(one) == len(two) == 1
    assert one != two


def test_counts_keep_their_units_and_their_clusters():
    rng = np.random.default_rng(0)
    means = np.array([[50, 5] * 10, [5, 50] * 10])
    target = np.repeat([0, 1], 30)
    counts = rng.poisson(means[target]).astype(float)
    holes = np.where(rng.random(counts.shape) < 0.2, 0.0, counts)
    model = ScImputeKMeans(2, random_state=0).fit(np.where(holes == 0, np.nan, holes))
    assert clustering_error_rate(target, model.labels_) == 0
    order = [model.labels_[0], model.labels_[-1]]
    np.testing.assert_allclose(model.cluster_centers_[order], means, atol=20)
    imputed, _ = scimpute(counts, 2, random_state=0)
    np.testing.assert_allclose(imputed[counts > 20], counts[counts > 20])


def test_negative_values_are_refused():
    with pytest.raises(ValueError, match=r"negative values \(down to -2\)"):
        ScImputeKMeans(2).fit(np.array([[1.0, -2.0], [3.0, 4.0], [1.0, 1.0]]))


def test_usoskin_in_minutes():
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("MNARKMEANS_DATA", beside))
    if not (folder / "GSE59739_cleardata_significant.txt").is_file():
        pytest.skip("real data not found: set MNARKMEANS_DATA to the folder that holds them")
    cells = load_usoskin(folder, preparation="counts", max_missing=None)
    start = time.perf_counter()
    model = ScImputeKMeans(4, n_init=10, random_state=0).fit(cells.data)
    assert time.perf_counter() - start < 120
    assert clustering_error_rate(cells.target, model.labels_) < 0.2
