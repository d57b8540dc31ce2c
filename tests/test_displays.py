"""Displays store the right numbers, draw them, and follow scikit-learn's conventions."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from mnarkmeans import MNARKMeans, MNARKMeansCV, MNARMixture, SelectionWarning
from mnarkmeans.displays import (
    CentersDisplay,
    ClustersDisplay,
    FlowDisplay,
    InstabilityDisplay,
    LossPathDisplay,
    MissingnessDisplay,
)

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("Agg")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    centers = np.array([[4.0, 0.0, 4.0, 0.0], [0.0, 4.0, 0.0, -4.0]])
    X = centers[rng.integers(0, 2, 80)] + rng.normal(size=(80, 4)) * 0.5
    X[rng.random(X.shape) < 0.8 * np.exp(-(X**2))] = np.nan
    return X


@pytest.fixture(scope="module")
def model(data):
    return MNARKMeans(2, lam=0.5, random_state=0).fit(data)


@pytest.fixture(scope="module")
def search(data):
    found = MNARKMeansCV([2, 3], lams=[0.0, 0.1, 4.0], n_splits=3, n_init=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        return found.fit(data)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "kind",
    [LossPathDisplay, MissingnessDisplay, ClustersDisplay, CentersDisplay, InstabilityDisplay,
     FlowDisplay],
)  # fmt: skip
def test_every_display_draws_on_given_axes(kind, model, search, data):
    fitted = search if kind in (InstabilityDisplay, FlowDisplay) else model
    table = () if kind in (LossPathDisplay, InstabilityDisplay) else (data,)
    ax = plt.subplots()[1]
    display = kind.from_estimator(fitted, *table, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_title(loc="left")
    assert display.plot() is display
    assert display.ax_ is not ax
    with pytest.raises(NotFittedError):
        kind.from_estimator(type(fitted)(), *table)
    if hasattr(kind, "from_predictions"):
        assert kind.from_predictions(data, model.labels_, ax=ax).ax_ is ax


def test_the_loss_of_the_best_start_is_a_line(model, data):
    display = LossPathDisplay.from_estimator(model, color="red")
    assert len(display.line_.get_ydata()) == model.n_iter_
    assert display.line_.get_color() == "red"
    assert list(display.ax_.lines[1].get_ydata()) == list(model.start_losses_)
    with pytest.raises(ValueError, match="'pca' or 'umap', got 'tsne'"):
        ClustersDisplay.from_estimator(model, data, method="tsne")


def test_mixtures_are_drawn_by_their_means_and_probabilities(data):
    mixture = MNARMixture(2, mechanism="mcar", random_state=0).fit(data)
    display = ClustersDisplay.from_estimator(mixture, data)
    np.testing.assert_array_equal(display.confidence, mixture.predict_proba(data).max(axis=1))
    display = CentersDisplay.from_estimator(mixture, data)
    np.testing.assert_array_equal(display.centers, mixture.means_)
    assert display.sizes.sum() == len(data)


def test_labels_may_be_names_and_are_one_for_each_row(data):
    numbers = np.arange(len(data)) % 2
    labels = np.array(["a", "b"])[numbers]
    display = CentersDisplay.from_predictions(data, labels)
    np.testing.assert_array_equal(
        display.centers, CentersDisplay.from_predictions(data, numbers).centers
    )
    assert [text.get_text()[0] for text in display.ax_.get_xticklabels()] == ["a", "b"]
    drawn = ClustersDisplay.from_predictions(data, labels).points_
    assert [part.get_label() for part in drawn] == ["a (40)", "b (40)"]
    for kind in (ClustersDisplay, CentersDisplay, MissingnessDisplay):
        with pytest.raises(ValueError, match="inconsistent numbers"):
            kind.from_predictions(data, labels[1:])


def test_the_choice_of_lam_and_k_is_drawn(search):
    display = InstabilityDisplay.from_estimator(search)
    assert [line.get_label() for line in display.lines_] == ["k = 2", "k = 3"]
    drawn = np.concatenate([line.get_ydata() for line in display.lines_])
    np.testing.assert_array_equal(drawn, search.cv_results_["mean_instability"])
    assert display.ax_.lines[-1].get_xdata()[0] == search.lam_  # the ring


def test_missing_share_against_the_mean_has_its_peak_at_the_reference(model, data):
    display = MissingnessDisplay.from_estimator(model, data)
    assert display.missing_share[np.abs(display.magnitude).argmin()] > 0.4
    assert display.missing_share[np.abs(display.magnitude).argmax()] < 0.1
    np.testing.assert_allclose(display.feature_mean, np.nanmean(data, axis=0))
    np.testing.assert_allclose(display.feature_share, np.isnan(data).mean(axis=0))
    with_empty = np.c_[data, np.full(len(data), np.nan)]  # a feature without a value has no point
    same = MissingnessDisplay.from_predictions(with_empty, model.labels_)
    np.testing.assert_array_equal(same.missing_share, display.missing_share)
    np.testing.assert_array_equal(same.feature_mean, display.feature_mean)


def test_the_labels_colour_the_rows_and_do_not_place_them(model, data):
    other = MNARKMeans(5, lam=0.5, random_state=1).fit(data)
    for draw in (
        lambda model: ClustersDisplay.from_estimator(model, data),
        lambda model: ClustersDisplay.from_predictions(data, model.labels_),
    ):
        display = draw(other)
        np.testing.assert_array_equal(display.points, draw(model).points)
        sizes = [len(part.get_offsets()) for part in display.points_]
        assert sizes == np.bincount(other.labels_).tolist()
    display = ClustersDisplay.from_estimator(model, data)
    for cluster, part in enumerate(display.points_):  # rows that are not sure are faint
        sure = display.confidence[display.labels == cluster]
        np.testing.assert_allclose(part.get_facecolors()[:, 3], 0.1 + 0.65 * sure**2)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == [f"{i} ({(model.labels_ == i).sum()})" for i in range(2)]


def test_rows_with_few_values_are_drawn_towards_the_middle():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20)) + 5 * np.outer(rng.normal(size=200), rng.normal(size=20))
    X[:20, 2:] = np.nan
    fitted = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    points = ClustersDisplay.from_estimator(fitted, X).points
    distance = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    assert np.median(distance[:20]) < 0.9 * np.median(distance[20:])


def test_sparse_rows_and_coded_gaps_give_the_same_pictures(data):
    filled = np.nan_to_num(data)
    tables = (np.where(filled == 0, np.nan, filled), sp.csr_matrix(filled), filled)
    pictures = []
    for X, code in zip(tables, (np.nan, np.nan, 0), strict=True):
        model = MNARKMeans(2, lam=0.5, missing_values=code, random_state=0).fit(X)
        rows = ClustersDisplay.from_estimator(model, X)
        centers = CentersDisplay.from_estimator(model, X)
        pictures.append((rows.points, rows.explained, centers.missing_share))
    for picture in pictures[1:]:
        for part, expected, atol in zip(picture, pictures[0], (1e-6, 1e-9, 1e-9), strict=True):
            np.testing.assert_allclose(part, expected, atol=atol)


def test_the_heatmap_shows_gaps_and_the_distance_from_the_reference(data):
    model = MNARKMeans(2, lam=0.5, reference=[1.0, -2.0, 0.5, 3.0], random_state=0).fit(data)
    display = CentersDisplay.from_estimator(model, data)
    share = [np.isnan(data[model.labels_ == cluster]).mean(axis=0) for cluster in range(2)]
    np.testing.assert_allclose(display.missing_share, share)
    assert sum(bar.get_width() for bar in display.gaps_) == pytest.approx(np.sum(share))
    colored = display.image_.get_array().reshape(4, 2)
    np.testing.assert_allclose(colored, (model.cluster_centers_ - model.reference_).T)
    # With labels alone the centres are observed means, or the reference where there are none.
    X, labels = data.copy(), model.labels_
    X[labels == 1, 2] = np.nan
    display = CentersDisplay.from_predictions(X, labels, reference=model.reference_)
    means = np.array([np.nanmean(X[labels == 0], axis=0), np.nanmean(data[labels == 1], axis=0)])
    means[1, 2] = 0.5
    np.testing.assert_allclose(display.centers, means)
    assert display.missing_share[1, 2] == 1.0
    assert list(display.sizes) == np.bincount(labels).tolist()


def test_names_come_from_the_frame_keep_both_ends_and_are_no_mathematics(data):
    columns = ["a", "$\\bad", "LFQ " * 9 + "1", "LFQ " * 9 + "2"]
    frame = pytest.importorskip("pandas").DataFrame(data, columns=columns)
    model = MNARKMeans(2, lam=0.5, random_state=0).fit(frame)
    display = CentersDisplay.from_estimator(model, frame)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names[:2] == ["a", "$\\bad"]
    assert max(map(len, names)) <= 24
    assert [name[-1] for name in names[2:]] == ["1", "2"]
    display.figure_.canvas.draw()
    centers = np.zeros((2, 100))  # of many features those that differ most are shown
    centers[1, [7, 50]] = 3.0
    display = CentersDisplay(centers=centers, max_features=2).plot()
    assert list(display.shown_) == [7, 50]


def side(ribbon, end):
    """Where a ribbon begins (np.min) or ends (np.max)."""
    x, y = ribbon.get_paths()[0].vertices.T
    return y[x == end(x)]


def span(box):
    return box.get_y(), box.get_y() + box.get_height()


def test_a_flow_keeps_every_row_and_tells_how_many_move():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 200)
    second = np.where(np.arange(200) < 20, (first + 1) % 3, first)
    display = FlowDisplay(partitions=[first, second, second], names=["a", "b", "$c$"]).plot()
    assert display.moved_ == [pytest.approx(0.1), 0.0]
    assert [int(table.sum()) for table in display.shared_] == [200, 200]
    display.figure_.canvas.draw()
    # A ribbon is as wide as its share of the boxes it joins, of which 0.88 are the height of all.
    shares = np.concatenate([table[table > 0] for table in display.shared_]) / 200
    for end in (np.min, np.max):
        widths = [np.ptp(side(ribbon, end)) for ribbon in display.ribbons_]
        np.testing.assert_allclose(sorted(widths), np.sort(0.88 * shares))
    boxes = [span(box) for box in display.ax_.patches]
    for column in range(3):
        low, high = np.sort(boxes[3 * column :][:3], axis=0).T
        np.testing.assert_allclose(low, [0.0, *(high[:-1] + 0.06)], atol=1e-12)
    # One cluster has no gaps, so that a row is higher in it than in the four beside it.
    display = FlowDisplay(partitions=[np.zeros(8, int), np.arange(8) % 4]).plot()
    left = np.concatenate([side(ribbon, np.min) for ribbon in display.ribbons_])
    assert (left.min(), left.max()) == pytest.approx((0.0, 1.0))
    for box, ribbon in zip(display.ax_.patches[1:], display.ribbons_, strict=True):
        right = side(ribbon, np.max)
        assert (right.min(), right.max()) == pytest.approx(span(box))
    with pytest.raises(ValueError, match="same rows"):
        FlowDisplay(partitions=[[0, 1], [0]])


def test_a_flow_is_drawn_along_the_candidates(search, data):
    by_k = FlowDisplay.from_estimator(search, data)
    assert by_k.names == ["2", "3"]
    by_lam = FlowDisplay.from_estimator(search, data, along="lam")
    assert by_lam.names == ["0", "0.1", "4"]
    np.testing.assert_array_equal(by_lam.partitions[by_lam.chosen], search.predict(data))
    lams = np.linspace(0.0, 2.0, 11)
    many = MNARKMeansCV(2, lams=lams, n_splits=2, n_init=1, random_state=0).fit(data)
    display = FlowDisplay.from_estimator(many, data)
    assert len(display.names) == 7
    assert display.names[display.chosen] == f"{many.lam_:.3g}"
    with pytest.raises(ValueError, match="along must be"):
        FlowDisplay.from_estimator(search, data, along="n")
