"""Displays store the right numbers, draw them, and follow scikit-learn's conventions."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from mnarkmeans import MNARKMeans, MNARKMeansCV
from mnarkmeans.displays import (
    CentersDisplay,
    ClustersDisplay,
    FlowDisplay,
    InstabilityDisplay,
    LossPathDisplay,
    MissingnessDisplay,
)
from mnarkmeans.displays._look import color, marker

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


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_every_display_draws_on_given_axes(model, data):
    _, axes = plt.subplots(1, 5)
    displays = [
        LossPathDisplay.from_estimator(model, ax=axes[0]),
        MissingnessDisplay.from_estimator(model, data, ax=axes[1]),
        ClustersDisplay.from_estimator(model, data, ax=axes[2]),
        CentersDisplay.from_estimator(model, data, ax=axes[3]),
        InstabilityDisplay.from_predictions(
            [0.0, 0.1, 10.0], [0.2, 0.1, 0.3], std_instability=[0.1] * 3, best_index=1, ax=axes[4]
        ),
    ]
    for display, ax in zip(displays, axes, strict=True):
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert ax.get_title(loc="left")
        again = display.plot()
        assert again is display
        assert display.ax_ is not ax
    assert len(displays[0].line_.get_ydata()) == model.n_iter_
    assert list(displays[4].lines_[0].get_ydata()) == [0.2, 0.1, 0.3]


@pytest.mark.filterwarnings("ignore::mnarkmeans.SelectionWarning")
def test_the_choice_of_lam_and_k_is_drawn(data):
    search = MNARKMeansCV([2, 3], lams=[0.0, 0.1, 4.0], n_splits=3, n_init=2, random_state=0)
    display = InstabilityDisplay.from_estimator(search.fit(data))
    assert [line.get_label() for line in display.lines_] == ["k = 2", "k = 3"]
    drawn = np.concatenate([line.get_ydata() for line in display.lines_])
    np.testing.assert_array_equal(drawn, search.cv_results_["mean_instability"])
    ring = display.ax_.lines[-1]
    assert ring.get_xdata()[0] == search.lam_
    with pytest.raises(NotFittedError):
        InstabilityDisplay.from_estimator(MNARKMeansCV())


def test_keywords_reach_the_drawing(model):
    display = LossPathDisplay.from_estimator(model, color="red")
    assert display.line_.get_color() == "red"


def test_missing_share_against_the_mean_has_its_peak_at_the_reference(model, data):
    display = MissingnessDisplay.from_estimator(model, data)
    assert display.missing_share[np.abs(display.magnitude).argmin()] > 0.4
    assert display.missing_share[np.abs(display.magnitude).argmax()] < 0.1
    same = MissingnessDisplay.from_predictions(data, model.labels_)
    np.testing.assert_allclose(same.missing_share.sum(), display.missing_share.sum(), rtol=0.3)


def test_points_are_the_principal_components_where_nothing_is_missing(model):
    complete = np.random.default_rng(1).normal(size=(60, 4)) * [3, 2, 1, 1]
    display = ClustersDisplay.from_estimator(model, complete)
    pca = PCA(2).fit(complete)
    np.testing.assert_allclose(np.abs(display.points), np.abs(pca.transform(complete)), atol=1e-6)
    np.testing.assert_allclose(display.explained, pca.explained_variance_ratio_, atol=1e-6)


def test_the_labels_colour_the_rows_and_do_not_place_them(model, data):
    display = ClustersDisplay.from_estimator(model, data)
    other = MNARKMeans(5, lam=0.5, random_state=1).fit(data)
    np.testing.assert_array_equal(
        display.points, ClustersDisplay.from_estimator(other, data).points
    )
    noise = np.random.default_rng(0).normal(size=(300, 40))
    noise[np.random.default_rng(1).random(noise.shape) < 0.8] = np.nan
    split = MNARKMeans(3, lam=0.5, random_state=0).fit(noise)
    points = ClustersDisplay.from_estimator(split, noise).points
    # No islands where there are none: the clusters of pure noise overlap in the picture.
    within = sum(points[split.labels_ == l].var(axis=0).sum() for l in range(3)) / 3
    assert within > 0.5 * points.var(axis=0).sum()


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_rows_with_few_values_are_drawn_towards_the_middle(lam):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20)) + 5 * np.outer(rng.normal(size=200), rng.normal(size=20))
    X[:20, 2:] = np.nan
    fitted = MNARKMeans(2, lam=lam, random_state=0).fit(X)
    points = ClustersDisplay.from_estimator(fitted, X).points
    distance = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    assert np.median(distance[:20]) < 0.9 * np.median(distance[20:])


def test_rows_that_are_not_sure_are_faint(model, data):
    display = ClustersDisplay.from_estimator(model, data)
    for cluster, part in enumerate(display.points_):
        sure = display.confidence[display.labels == cluster]
        np.testing.assert_allclose(part.get_facecolors()[:, 3], 0.1 + 0.65 * sure**2)
    assert len(display.points_) == 2
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == [f"{i} ({(model.labels_ == i).sum()})" for i in range(2)]


def test_sparse_rows_give_the_same_picture(data):
    filled = np.nan_to_num(data)
    stored = sp.csr_matrix(filled)
    gaps = np.where(filled == 0, np.nan, filled)
    dense = MNARKMeans(2, lam=0.5, random_state=0).fit(gaps)
    sparse = MNARKMeans(2, lam=0.5, random_state=0).fit(stored)
    a = ClustersDisplay.from_estimator(dense, gaps)
    b = ClustersDisplay.from_estimator(sparse, stored)
    np.testing.assert_allclose(a.points, b.points, atol=1e-6)
    np.testing.assert_allclose(a.explained, b.explained, atol=1e-9)
    c = CentersDisplay.from_estimator(sparse, stored)
    d = CentersDisplay.from_estimator(dense, gaps)
    np.testing.assert_allclose(c.missing_share, d.missing_share)


def test_gaps_are_drawn_as_gaps(model, data):
    display = CentersDisplay.from_estimator(model, data)
    observed = ~np.isnan(data)
    for cluster in range(2):
        share = 1 - observed[model.labels_ == cluster].mean(axis=0)
        np.testing.assert_allclose(display.missing_share[cluster], share)
    gaps = display.ax_.collections[1]
    drawn = sum(path.get_extents().width for path in gaps.get_paths())
    assert drawn == pytest.approx(display.missing_share.sum())


def test_the_heatmap_shows_the_distance_from_the_reference(data):
    model = MNARKMeans(2, lam=0.5, reference=[1.0, -2.0, 0.5, 3.0], random_state=0).fit(data)
    display = CentersDisplay.from_estimator(model, data)
    drawn = display.image_.get_array().reshape(4, 2)
    np.testing.assert_allclose(drawn, (model.cluster_centers_ - model.reference_).T)


def test_names_come_from_the_frame_and_are_not_read_as_mathematics(data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data, columns=["a", "$\\bad", "c", "d" * 80])
    model = MNARKMeans(2, lam=0.5, random_state=0).fit(frame)
    display = CentersDisplay.from_estimator(model, frame)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names[:2] == ["a", "$\\bad"]
    assert len(names[3]) <= 24
    display.figure_.canvas.draw()


def test_long_names_keep_both_ends(data):
    names = [f"LFQ intensity of a long protein name {j}" for j in range(4)]
    model = MNARKMeans(2, lam=0.5, random_state=0).fit(data)
    display = CentersDisplay.from_estimator(model, data, feature_names=names)
    shown = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(set(shown)) == 4
    assert all(name.startswith("LFQ") for name in shown)


def test_thirty_six_clusters_have_colours_of_their_own():
    assert len({color(l) for l in range(36)}) == 36
    assert {marker(l) for l in range(36)} == {"o"}


def test_a_flow_keeps_every_row_and_tells_how_many_move():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 200)
    second = np.where(np.arange(200) < 20, (first + 1) % 3, first)
    display = FlowDisplay.from_predictions([first, second, second], names=["a", "b", "$c$"])
    layout = display.layout_
    assert layout.moved == [pytest.approx(0.1), 0.0]
    assert sum(ribbon.rows for ribbon in layout.ribbons) == 400
    assert len(display.ribbons_) == len(layout.ribbons)
    for column in range(3):
        boxes = sorted(box[3:5] for box in layout.boxes if box.column == column)
        assert all(low <= high for low, high in boxes)
        assert all(a[1] < b[0] for a, b in pairwise(boxes))
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="same rows"):
        FlowDisplay.from_predictions([[0, 1], [0]])


@pytest.mark.filterwarnings("ignore::mnarkmeans.SelectionWarning")
def test_a_flow_is_drawn_along_the_candidates(data):
    search = MNARKMeansCV([2, 3], lams=[0.0, 0.1, 4.0], n_splits=3, n_init=2, random_state=0)
    search.fit(data)
    by_k = FlowDisplay.from_estimator(search, data)
    assert by_k.names == ["2", "3"]
    by_lam = FlowDisplay.from_estimator(search, data, along="lam")
    assert by_lam.names == ["0", "0.1", "4"]
    np.testing.assert_array_equal(by_lam.partitions[by_lam.chosen], search.predict(data))
    with pytest.raises(ValueError, match="along must be"):
        FlowDisplay.from_estimator(search, data, along="n")


def test_wide_models_show_the_features_that_differ_most():
    centers = np.zeros((2, 100))
    centers[1, [7, 50]] = 3.0
    display = CentersDisplay(centers=centers, max_features=2).plot()
    assert list(display.shown_) == [7, 50]


def test_zero_as_missing_value(data):
    zeros = np.nan_to_num(data)
    model = MNARKMeans(2, lam=0.5, missing_values=0, random_state=0).fit(zeros)
    display = CentersDisplay.from_estimator(model, zeros)
    assert display.missing_share.max() > 0.3


def test_unfitted_models_are_refused(data):
    for draw in (
        lambda m: LossPathDisplay.from_estimator(m),
        lambda m: MissingnessDisplay.from_estimator(m, data),
        lambda m: ClustersDisplay.from_estimator(m, data),
        lambda m: CentersDisplay.from_estimator(m),
    ):
        with pytest.raises(NotFittedError):
            draw(MNARKMeans())


def test_unknown_embedding_is_refused(model, data):
    with pytest.raises(ValueError, match="'pca' or 'umap', got 'tsne'"):
        ClustersDisplay.from_estimator(model, data, method="tsne")


def test_matplotlib_is_imported_on_use_only():
    code = "import sys, mnarkmeans.displays; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
