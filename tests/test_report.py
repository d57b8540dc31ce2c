"""The page: escaped, self-contained, and alive in a real browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from markupsafe import escape
from sklearn.exceptions import ConvergenceWarning

from mnarkmeans import MissingDataWarning, MNARKMeans, MNARKMeansCV, MNARMixture, report
from mnarkmeans._report import FittedTable, page_of, render
from mnarkmeans._report._annotations import crossed
from mnarkmeans._report._flow import as_page
from mnarkmeans._report._svg import draw
from mnarkmeans.displays._chart import instability
from mnarkmeans.displays._flow import Path
from mnarkmeans.metrics import confidence

HOSTILE = "<script>alert(1)</script>"
ROW = "</script><img src=x onerror=alert(2)>"


def collect(*, X, model, title, facts=None, **names):
    return page_of(FittedTable(X, model, **names), title=title, facts=facts)


def make_page(n=300, p=12, k=3, sparse=False, **facts):
    rng = np.random.default_rng(0)
    centers = np.where(rng.random((k, p)) < 0.5, 4.0, 0.0)
    X = centers[rng.integers(0, k, n)] + rng.normal(size=(n, p))
    X[rng.random(X.shape) < np.exp(-0.5 * X**2)] = np.nan
    X[:, -1] = 1.0  # no row without an observed value
    if sparse:
        X = sp.csr_matrix(np.nan_to_num(X))
    model = MNARKMeans(k, lam=0.5, n_init=2, random_state=0).fit(X)
    features = [HOSTILE, *(f"feature {j}" for j in range(1, p))]
    ids = [ROW, *(f"row {i}" for i in range(1, n))]
    notes = {HOSTILE: [HOSTILE, "b"] * (n // 2), "age": np.arange(n) / 7}
    return collect(
        X=X, ids=ids, features=features, model=model, title=HOSTILE, facts=facts, annotations=notes
    )


def test_confidence_is_that_of_the_package_with_rows_that_lost_everything():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) + np.repeat([0.0, 5.0], 20)[:, None]
    X[[3, 30]] = np.nan
    with pytest.warns(MissingDataWarning):
        model = MNARKMeans(2, lam=1.0, random_state=0).fit(X)
    page = collect(X=X, ids=range(40), features=list("abc"), model=model, title="")
    shown = np.array(page["embedding"]["confidence"], dtype=float)
    np.testing.assert_allclose(shown, confidence(X, model), atol=6e-4)
    assert np.isfinite(shown).sum() == 38


def test_rows_that_do_not_differ_are_no_outliers():
    X = np.ones((20, 2))
    with pytest.warns(ConvergenceWarning):
        model = MNARKMeans(3, lam=0.0, random_state=0).fit(X)
    page = collect(X=X, ids=range(20), features=list("ab"), model=model, title="")
    assert page["sure"]["reasons"] == ["All rows are in one cluster: the rows do not differ."]


FACTS = {
    "command": f"mnarkmeans fit '{HOSTILE}.csv'",
    "left_out": [[HOSTILE, "text"]],
    "notes": [HOSTILE],
    "settings": {HOSTILE: HOSTILE},
    "choice": {
        "lam": [0.0, 0.1, 1.0] * 2,
        "k": [2] * 3 + [3] * 3,
        "mean": [0.2, 0.1, 0.3, 0.2, 0.05, None],
        "std": [0.01] * 6,
        "best_index": 4,
    },
    "between": [
        {"id": ROW, "cluster": 0, "next_cluster": 1, "confidence": 0.5, "missing": 0.25},
    ],
    "flow": [
        as_page(Path([np.arange(9) % 2, np.arange(9) % 3], [HOSTILE, "3"], 1, HOSTILE)),
    ],
    "comparison": {
        "text": HOSTILE,
        "caption": HOSTILE,
        "columns": ["Method", "Error"],
        "rows": [["ours", 0.01], [HOSTILE, 0.2]],
        "ours": ["ours"],
    },
}


@pytest.fixture(scope="module")
def html():
    return render(json.loads(json.dumps(make_page(**FACTS), allow_nan=False)))


def test_names_are_escaped_everywhere(html):
    assert HOSTILE not in html
    assert "onerror=alert(2)>" not in html
    assert html.count("<script") == 2  # the numbers and the one script of the page
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10


def test_the_page_is_self_contained_and_small(html):
    assert len(html.encode()) < 400_000
    assert "default-src 'none'" in html
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)
    assert "@import" not in html
    assert "url(http" not in html


def test_fifty_thousand_rows_stay_small():
    page = make_page(n=52_000, p=6)
    assert len(page["embedding"]["ids"]) == 50_000
    assert page["embedding"]["rows"] == 52_000
    html = render(page)
    assert len(html.encode()) < 5_000_000
    assert "A random 50,000 of 52,000 rows" in html


def test_numbers_agree_with_the_model():
    page = make_page()
    assert sum(c["rows"] for c in page["clusters"]) == 300
    far = [row["distance"] for row in page["far"]]
    assert far == sorted(far, reverse=True)
    shares = page["curve"]["missing_share"]
    assert shares[0] > shares[-1]
    sparse = make_page(sparse=True)
    assert sparse["data"]["missing_share"] == pytest.approx(page["data"]["missing_share"])


def test_one_cluster_one_feature_and_no_gaps_can_be_drawn():
    X = np.arange(8.0)[:, None]
    model = MNARKMeans(1, lam=1.0, n_init=1, random_state=0).fit(X)
    page = collect(X=X, ids=list(range(8)), features=["x"], model=model, title="small")
    assert "small" in render(page)


def test_markers_confidence_and_the_verdict_are_told(html):
    for text in ("How sure is this?", "What makes a cluster", "found again", "Rows between"):
        assert text in html
    page = make_page()
    assert page["sure"]["level"] == "separate"
    assert "separate groups" in page["sure"]["reasons"][0]
    judged = [cluster for cluster in page["clusters"] if cluster["levels"]]
    assert judged
    for cluster in judged:
        assert sum(cluster["levels"]) == cluster["rows"]
        assert 0 <= cluster["confidence"] <= 1
    for cluster in page["clusters"]:
        assert -1 <= cluster["silhouette"] <= 1
    assert len(page["stability"]) == 3
    sure = [row["confidence"] for row in page["between"]]
    assert sure == sorted(sure)
    assert {marker["cluster"] for marker in page["markers"]} == {0, 1, 2}


def test_no_bars_of_confidence_where_nothing_can_be_said():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 6))
    noise[rng.random(noise.shape) < 0.3] = np.nan
    outliers = noise.copy()
    outliers[[3, 50]] += 200.0
    for X, k, level in (
        (noise, 2, "continuum"),
        (noise[:6], 2, "too-few"),
        (outliers, 2, "too-few"),
    ):
        model = MNARKMeans(k, lam=0.0, random_state=0).fit(X)
        page = collect(X=X, ids=range(len(X)), features=list("abcdef"), model=model, title="t")
        assert page["sure"]["level"] == level, page["sure"]
        assert set(page["embedding"]["confidence"]) == {None}
        assert 'class="bars"' not in render(page)
    assert page["sure"]["reasons"] == [
        "All rows but 2 are in one cluster: the others are outliers."
    ]


def test_an_annotation_that_is_the_clustering_comes_first():
    X = np.random.default_rng(0).normal(size=(90, 3)) + 9.0 * np.arange(90)[:, None] % 27.0
    model = MNARKMeans(3, lam=0.0, random_state=0).fit(X)
    run = [f"run{i % 3}" for i in range(90)]
    page = collect(
        X=X, ids=range(90), features=list("abc"), model=model, title="t",
        annotations={"sex": ["f", "m"] * 45, "run": run},
    )  # fmt: skip
    assert page["sure"]["reasons"][0].startswith("The clusters follow 'run'")
    assert "--batch run" in render(page)
    assert not any("'sex'" in reason for reason in page["sure"]["reasons"])


def test_colours_of_clusters_are_lighter_on_dark_ground(html):
    assert "--c8: #332288;" in html
    assert "--c8: #685ba7;" in html
    assert html.count("background:var(--c0)") >= 2
    assert "background:#" not in html.split("</style>")[1]


def test_a_penalty_for_each_feature_is_judged_too():
    X = np.random.default_rng(0).normal(size=(90, 3)) + 9.0 * np.arange(90)[:, None] % 27.0
    model = MNARKMeans(3, lam=np.array([0.0, 0.5, 1.0]), random_state=0).fit(X)
    page = collect(X=X, ids=range(90), features=list("abc"), model=model, title="t")
    assert page["stability"] == [1.0, 1.0, 1.0]
    assert "0 to 1" in render(page)


def test_annotations_are_crossed_with_the_clusters():
    page = make_page()
    first, age = page["annotations"]
    assert np.sum(first["counts"]) == np.sum(age["counts"]) == 300
    assert len(age["groups"]) == 4
    assert age["values"][7] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="one per row"):
        crossed({"batch": ["a"]}, np.array([0, 1]), np.arange(2))


def test_numbers_of_any_size_fit_their_places():
    rng = np.random.default_rng(0)
    for size in (1e-90, 1e6, 1e10):
        X = rng.normal(size=(40, 3)) * size
        model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
        page = collect(X=X, ids=range(40), features=list("abc"), model=model, title="t")
        html = render(page)
        shown = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
        assert not re.search(r">[^<]*\d[eE][+-]?\d\d+[^<]*</(text|dd|td)>", shown)


def test_instability_is_drawn_against_k_where_lam_is_one():
    drawn = str(draw(instability([0.0] * 3, [2, 3, 4], [0.3, 0.1, None], [0.0] * 3, 1)))
    assert "number of clusters" in drawn
    assert drawn.count('class="ring"') == 1


def test_centres_on_one_side_are_compared_with_the_mean():
    X = 20.0 + np.random.default_rng(0).normal(size=(60, 4))
    model = MNARKMeans(2, lam=0.5, reference="min", random_state=0).fit(X)
    page = collect(X=X, ids=range(60), features=list("abcd"), model=model, title="t")
    assert '<option value="mean" selected>' in render(page)
    assert '<option value="reference" selected>' in render(make_page(p=3))


def test_a_report_from_python_is_saved_and_shown_in_a_notebook(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    values = rng.integers(1, 5, (60, 3)) + 9 * (np.arange(60)[:, None] % 2)
    values[rng.random(values.shape) < 0.2] = 0
    names = [f"sample {i}" for i in range(60)]
    frame = pd.DataFrame(values, columns=["a", "b", "c"], index=names)
    model = MNARKMeans(2, lam=0.5, missing_values=0, random_state=0).fit(frame)
    made = report(model, frame, tmp_path / "out.html", title="A & B", annotations={"run": names})
    assert made.html == (tmp_path / "out.html").read_text("utf8")
    assert made.page["embedding"]["ids"] == names
    assert made.page["centers"]["features"] == ["a", "b", "c"]
    assert made.page["data"]["missing_share"] == pytest.approx((values == 0).mean())
    assert repr(made) == "<Report 'A & B': 60 rows, 3 features, 2 clusters>"
    inline = made._repr_html_()
    assert inline.startswith('<iframe title="A &amp; B"')
    assert inline.count("<") == 2
    plain = MNARKMeans(2, lam=0.5, missing_values=0, random_state=0).fit(values)
    sparse = report(plain, sp.csr_matrix(values, dtype=float)).page
    assert sparse["data"] == made.page["data"]
    assert sparse["curve"] == made.page["curve"]
    assert model.missing_values == 0
    with pytest.raises(ValueError, match="ids must be 60 names, got 1"):
        report(model, frame, ids=["a"])
    with pytest.raises(TypeError, match="got MNARMixture"):
        report(MNARMixture(2, random_state=0).fit(frame.to_numpy(float)), frame)


@pytest.mark.filterwarnings("ignore::mnarkmeans.SelectionWarning")
def test_the_page_of_a_search_shows_its_choice_and_how_it_was_made():
    X = np.random.default_rng(0).normal(size=(60, 3)) + 9.0 * (np.arange(60)[:, None] % 3)
    X[::7, 0] = np.nan
    search = MNARKMeansCV([2, 3], lams=[0.0, 0.5], n_splits=2, n_init=2, random_state=0).fit(X)
    page = report(search, X).page
    assert page["choice"]["mean"][page["choice"]["best_index"]] is not None
    assert [flow["axis_name"] for flow in page["flow"]] == ["penalty lam", "number of clusters"]
    assert page["lam_text"].startswith(f"k = {search.n_clusters_} and lam")
    assert "from 2 to 3" in page["methods"]
    html = render(json.loads(json.dumps(page, allow_nan=False)))
    assert str(escape(page["methods"])) in html


@pytest.mark.parametrize(("reference", "above"), [(15.0, True), (25.0, False)])
def test_the_heatmap_shows_the_distance_from_the_reference(reference, above):
    X = 20.0 + np.random.default_rng(0).normal(size=(60, 4))
    model = MNARKMeans(2, lam=0.5, reference=reference, random_state=0).fit(X)
    html = report(model, X).html
    shades = re.findall(r"--r:#(..)(..)(..)", html)
    assert len(shades) == 8
    assert all((int(red, 16) > int(blue, 16)) == above for red, _, blue in shades)
