"""Labels, losses and sums of the core, against plain NumPy, at every instruction set.

The oracle adds up features one by one, as the core does where it decides: results are compared
bit for bit.
"""

import numpy as np
import oracle
import pytest
from backends import to_csr
from inputs import starts_of, tables, with_gaps

from mnarkmeans import _core as core


def problem(rng, p, k, groups=2):
    """Centres (G, k, p), penalties (G, p) and a reference for a table of that shape."""
    mu = rng.normal(size=(groups, k, p))
    lam = rng.choice([0.0, 0.3, 1.0, 7.0], size=(groups, 1)) * np.ones((groups, p))
    return mu, lam, rng.normal(size=p)


def check_labels(X, mu, lam, reference, shift=None, forms=None):
    shift = np.zeros(X.shape[1]) if shift is None else shift
    centers = core.Centers(mu, lam, reference, shift)
    for table in forms or tables(X).values():
        fast = core.assign(table, centers, 2)
        for g, own in enumerate(fast):
            np.testing.assert_array_equal(own, oracle.labels(X, mu[g], lam[g], reference))
        np.testing.assert_array_equal(core.assign(table, centers, 1, plain=True), fast)


def test_rows_whose_scores_lose_digits_with_every_addition(each_level):
    """Of x . (m_1 - m_0) float32 keeps the 1 and loses 62 products just below half of its last
    digit: the error is near the largest that rounding can make, so a smaller bound would show."""
    p, unit = 64, 2.0**-24
    for share in (0.5, 0.9, 0.99, -0.4, -0.49):
        small = float(np.float32(np.sqrt(abs(share) * unit)))
        center = np.full(p, small)
        center[[0, -1]] = 1.0
        X = np.full((200, p), np.sign(share) * small)
        X[:, 0] = 1.0
        X[:, -1] = np.float32(-1.0 - unit * np.arange(-100, 100))
        mu = np.stack([-center, center])[None]
        check_labels(X, mu, np.ones((1, p)), np.zeros(p))
        check_labels(-X, mu, np.zeros((1, p)), np.zeros(p))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("penalty", ["one", "each", "some"])
def test_labels_are_those_of_direct_differences_for_every_shape(share, penalty, each_level):
    rng = np.random.default_rng(1)
    for p in (1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 65, 130):
        n, k = int(rng.integers(1, 300)), int(rng.integers(1, 15))
        mu, lam, reference = problem(rng, p, k)
        if penalty != "one":
            lam = lam * (rng.random(lam.shape) if penalty == "each" else np.arange(p) < p / 2)
        check_labels(with_gaps(n, p, share, seed=p), mu, lam, reference)


@pytest.mark.parametrize("scale", [1e-100, 1e-25, 1e-3, 1e10, 1e19, 1e25, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e9])
def test_numbers_of_any_size(scale, offset, each_level):
    """Beyond float32, or lost in its rounding, the plain loop decides."""
    rng = np.random.default_rng(4)
    X = (with_gaps(150, 9, 0.3) + offset) * scale
    mu, lam, reference = problem(rng, 9, 5)
    shift = np.nan_to_num(np.nanmean(X, axis=0))
    forms = [
        core.Table(form, np.nan, np.ones(150)) for form in (X, np.asfortranarray(X), to_csr(X))
    ]
    check_labels(X, (mu + offset) * scale, lam, reference * scale, shift, forms)


def test_without_gaps_no_lam_is_felt(each_level):
    """Not even where the reference is a billion away."""
    rng = np.random.default_rng(6)
    X = np.column_stack([1.7e9 + rng.normal(size=300), rng.normal(size=300)])
    mu = X[rng.integers(300, size=(1, 6))]
    for lam in (0.0, 1.0, 1e6):
        table = core.Table(X, np.nan, np.ones(300), has_gaps=np.zeros(2, bool))
        centers = core.Centers(mu, np.full((1, 2), lam), np.zeros(2), X.mean(axis=0))
        expected = ((X[:, None] - mu[0]) ** 2).sum(axis=2).argmin(axis=1)
        np.testing.assert_array_equal(core.assign(table, centers, 1)[0], expected)


def test_distances_and_losses_are_the_same_bits_everywhere(each_level):
    rng = np.random.default_rng(7)
    X = with_gaps(120, 13, 0.4)
    mu, lam, reference = problem(rng, 13, 5, groups=1)
    expected = oracle.distances(X, mu[0], lam[0], reference)
    centers = core.Centers(mu, lam, reference, np.zeros(13))
    for table in tables(X).values():
        found = core.distances(table, centers, np.float64, 2, roots=False)
        np.testing.assert_array_equal(found, expected)
        labels, loss, members = core.label_and_loss(table, centers, 2)
        each = np.empty(120)
        assert core.loss_of(table, centers, labels, 1, each) == loss
        own = expected[np.arange(120), labels]
        np.testing.assert_allclose(each, own, rtol=1e-13)
        assert loss == pytest.approx(own.sum(), rel=1e-13)
        np.testing.assert_array_equal(members, np.bincount(labels, minlength=5))


def test_arrays_that_are_not_what_they_should_be_are_refused():
    X, weights = np.zeros((3, 2)), np.ones(3)
    with pytest.raises(TypeError, match="float32 and float64"):
        core.Table(X.astype(int), np.nan, weights)
    with pytest.raises(TypeError, match="float64 here; got float32"):
        core.Table(X, np.nan, weights.astype(np.float32))
    with pytest.raises(TypeError, match=r"of shape \(1, 2\)"):
        core.Centers(np.zeros((1, 4, 2)), np.zeros((1, 3)), np.zeros(2), np.zeros(2))
    with pytest.raises(TypeError, match="contiguous"):
        core.Centers(np.zeros((1, 4, 4))[:, :, ::2], np.zeros((1, 2)), np.zeros(2), np.zeros(2))
    table = core.Table(X, np.nan, weights)
    centers = core.Centers(np.zeros((1, 4, 2)), np.zeros((1, 2)), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="labels must be from 0 to 3"):
        core.loss_of(table, centers, np.array([0, 4, 0], np.int32), 1)


def one_iteration(index):
    """A pass, new centres and a decision for starts 1 and 2 of 3, in numbers of this type."""
    X = with_gaps(60, 4, seed=5)
    table = core.Table(X, np.nan, np.ones(60))
    starts = starts_of(np.nan_to_num(X[:9]).reshape(3, 3, 4), 1.0, 60)
    which = np.arange(3, dtype=index)[1:]
    core.pass_(table, starts, which, fresh=True, bounds=None, threads=1)
    losses, inexact = core.update(starts, which)
    active, _ = core.decide(starts, 0, losses, inexact, 0.0, which)
    core.hartigan(table, starts, which, 1)
    return starts.labels, starts.mu, losses, active


@pytest.mark.parametrize("index", [np.int32, np.uint8])
def test_numbers_of_starts_may_be_integers_of_any_type(index):
    for here, there in zip(one_iteration(index), one_iteration(np.int64), strict=True):
        np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("which", [[3], [-1], [0.0], [[0]]])
def test_numbers_of_starts_are_checked_before_the_core_reads_them(which):
    X = with_gaps(20, 2)
    table, which = core.Table(X, np.nan, np.ones(20)), np.array(which)
    starts = starts_of(np.zeros((3, 2, 2)), 1.0, 20)
    for use in (
        lambda: core.pass_(table, starts, which, fresh=True, bounds=None, threads=1),
        lambda: core.update(starts, which),
        lambda: core.decide(starts, 0, np.zeros(1), np.zeros(1, np.bool_), 0.0, which),
        lambda: core.hartigan(table, starts, which, 1),
        lambda: core.fill_rows(table, which + 20 * (which == 3), np.zeros(2)),
    ):
        with pytest.raises((IndexError, TypeError)):
            use()


@pytest.mark.parametrize("p", [1, 5, 8, 13, 17, 63, 64, 67, 130])
def test_sums_of_a_pass_count_every_feature_with_the_weight_of_its_row(p, each_level):
    """Also in the last features of a row, which fill no vector: those of the plain loop, which are
    near those of NumPy. A second pass moves rows from cluster to cluster; one start rests."""
    rng = np.random.default_rng(p)
    X, weights = with_gaps(150, p, seed=p), rng.integers(0, 5, 150) / 4.0
    mu, lam, reference = problem(rng, p, 3, groups=3)
    shift, seen, active = rng.normal(size=p), ~np.isnan(X), np.array([0, 2])
    options = {"reference": reference, "shift": shift, "weights": (False, weights.sum())}
    for table in tables(X, weights).values():
        starts = starts_of(mu, lam, 150, **options)
        for fresh in (True, False):
            changed, _ = core.pass_(table, starts, active, fresh=fresh, bounds=None, threads=2)
            assert changed > 0
            for r in active:
                labels, plain = starts.labels[r], core.Stats.zeros(1, 3, p)
                assert np.array_equal(labels, oracle.labels(X, starts.mu[r], lam[r], reference))
                core.add_rows(table, starts.centers(np.array([r])), labels, plain, threads=1)
                members = weights[:, None] * (labels[:, None] == np.arange(3))
                sums = members.T @ np.where(seen, X - shift, 0.0)
                np.testing.assert_allclose(plain.sums[0], sums, rtol=1e-9, atol=1e-9)
                np.testing.assert_array_equal(plain.counts[0], members.T @ seen)
                np.testing.assert_array_equal(plain.sizes[0], members.sum(axis=0))
                for name, fast, slow in zip(plain._fields, starts.stats, plain, strict=True):
                    inexact = name in ("sums", "squares") and not fresh
                    np.testing.assert_allclose(fast[r], slow[0], rtol=0, atol=1e-11 * inexact)
            starts.mu += rng.normal(size=mu.shape)
        assert not starts.stats.sizes[1].any()
