"""BatchCenter: runs are removed, groups are kept, missing values below a limit do not mislead."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from mnarkmeans import MNARKMeans
from mnarkmeans.tables import BatchCenter


def proteomics_runs(seed, *, n_runs=3, shift=1.0, balanced=True, n_features=120):
    """Four groups of log2 intensities in several runs, values lost below a soft limit."""
    rng = np.random.default_rng(seed)
    run = np.repeat(np.arange(n_runs), 12)
    if balanced:
        group = np.tile(np.repeat(np.arange(4), 3), n_runs)
    else:
        group = np.concatenate(
            [rng.choice(4, 12, p=rng.dirichlet(np.full(4, 2.0))) for _ in range(n_runs)]
        )
    effect = np.where(rng.random((4, n_features)) < 0.3, rng.normal(0, 1.2, (4, n_features)), 0.0)
    runs = rng.normal(0, shift, (n_runs, n_features)) + rng.normal(0, shift, (n_runs, 1))
    X = rng.normal(25, 2, n_features) + effect[group] + rng.normal(0, 0.5, (len(run), n_features))
    X += runs[run]
    limit = np.quantile(X, 0.2)
    X[rng.random(X.shape) < 1 / (1 + np.exp(3 * (X - limit)))] = np.nan
    return X[:, (~np.isnan(X)).mean(axis=0) > 0.3], group, run


def agreement(X, group):
    labels = MNARKMeans(4, reference="min", random_state=0).fit_predict(X)
    return adjusted_rand_score(group, labels)


@pytest.mark.parametrize("balanced", [True, False])
def test_groups_are_found_behind_runs(balanced):
    X, group, run = proteomics_runs(1, balanced=balanced)
    corrected = BatchCenter(4, random_state=0).fit_transform(X, batch=run)
    assert agreement(X, group) < 0.5
    assert agreement(corrected, group) > 0.9
    both = make_pipeline(BatchCenter(4, random_state=0), MNARKMeans(4, random_state=0))
    labels = both.fit_predict(X, batchcenter__batch=run)
    assert adjusted_rand_score(group, labels) > 0.9


def test_nothing_is_lost_where_there_is_no_batch_effect():
    X, group, run = proteomics_runs(2, shift=0.0)
    model = BatchCenter(4, random_state=0).fit(X, batch=run)
    assert np.abs(model.shifts_).mean() < 0.05
    assert agreement(model.transform(X, batch=run), group) >= agreement(X, group) - 0.05


def test_values_lost_below_a_limit_do_not_bias_the_shift():
    rng = np.random.default_rng(3)
    run = np.repeat([0, 1], 200)
    X = rng.normal(20.0, 1.0, (400, 30)) - 1.0 * run[:, None]
    X[X < 19.0] = np.nan  # a sixth of the first run, half of the second
    observed = np.nanmean(X[run == 0]) - np.nanmean(X[run == 1])
    shifts = BatchCenter(1, lam=1.0, reference="min", random_state=0).fit(X, batch=run).shifts_
    assert abs((shifts[0] - shifts[1]).mean() - 1.0) < abs(observed - 1.0)


def test_missing_values_stay_missing_and_shifts_can_be_added_again():
    X, _, run = proteomics_runs(4)
    names = np.array(["b", "a", "c"])[run]
    model = BatchCenter(4, random_state=0)
    corrected = model.fit_transform(X, batch=names)
    np.testing.assert_array_equal(np.isnan(corrected), np.isnan(X))
    np.testing.assert_allclose(model.inverse_transform(corrected, batch=names), X)
    assert model.batches_.tolist() == ["a", "b", "c"]


def test_masks_and_numbers_by_name_are_those_of_the_estimators():
    X, _, run = proteomics_runs(4, n_features=20)
    masked = np.ma.array(np.where(np.isnan(X), 1e6, X), mask=np.isnan(X))
    frame, lam = pd.DataFrame(X).add_prefix("f"), np.arange(X.shape[1]) / 10
    by_name = dict(zip(frame.columns[::-1], lam[::-1], strict=True))
    one, two = (
        BatchCenter(4, lam=lam, reference="min", random_state=0).fit(table, batch=run)
        for table, lam in ((masked, lam), (frame, by_name))
    )
    np.testing.assert_array_equal(one.shifts_, two.shifts_)
    np.testing.assert_array_equal(np.isnan(one.transform(masked, batch=run)), np.isnan(X))


def test_shifting_a_run_changes_nothing_else():
    X, _, run = proteomics_runs(5)
    moved = X + np.array([0.0, 3.0, -2.0])[run][:, None]
    one, other = (BatchCenter(4, lam=0.0, random_state=0).fit(Y, batch=run) for Y in (X, moved))
    assert adjusted_rand_score(one.labels_, other.labels_) == 1.0


def test_mistakes():
    X, group, run = proteomics_runs(6)
    model = BatchCenter(4, random_state=0)
    with pytest.raises(TypeError, match="batch= is needed"):
        model.fit(X)
    n, text = len(X), pd.DataFrame(X).add_prefix("f").assign(tissue="liver")
    for table, batch, groups, message in (
        (X, run[:-1], None, "must name each of the"),
        (X, [*"aaaa", None, *"b" * (n - 5)], None, "1 row.* have no batch, the first is row 4"),
        (X, pd.Series(["a", pd.NA, *"b" * (n - 2)], dtype="string"), None, "the first is row 1"),
        (X, run, run, "cannot be told apart"),
        (X, np.arange(n), None, "Every row is a batch of its own"),
        (text, run, None, "column 'tissue' holds 'liver'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(table, batch=batch, groups=groups)
    model.fit(X, batch=run, groups=group)
    with pytest.raises(ValueError, match="Batch 5 was not among those of the fit"):
        model.transform(X, batch=run + 5)
