"""The page: escaped, self-contained, and right about the model it shows."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from markupsafe import escape
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mnarkmeans import MissingDataWarning, MNARKMeans, MNARKMeansCV, MNARMixture, report
from mnarkmeans._report import render
from mnarkmeans.displays import InstabilityDisplay
from mnarkmeans.metrics import confidence
from mnarkmeans.missingness import diagnose

HOSTILE = "<script>alert(1)</script>"
ROW = "</script><img src=x onerror=alert(2)>"
FACTS = {
    "command": f"mnarkmeans fit '{HOSTILE}.csv'",
    "left_out": [[HOSTILE, "text"]],
    "notes": [HOSTILE],
    "settings": {HOSTILE: HOSTILE},
    "choice": InstabilityDisplay(
        lam=[0.0, 0.1, 1.0] * 2, n_clusters=[2] * 3 + [3] * 3, std_instability=[0.01] * 6,
        mean_instability=[0.2, 0.1, 0.3, 0.2, 0.05, None], best_index=4,
    ).chart().to_dict(),
    "between": [{"id": ROW, "cluster": 0, "next_cluster": 1, "confidence": 0.5, "missing": 0.25}],
    "flow": [
        {"partitions": [[0, 1] * 9, [0, 1, 2] * 6], "names": [HOSTILE, "3"], "chosen": 1,
         "axis_name": HOSTILE, "moved": [0.5]}
    ],
    "comparison": {
        "before": HOSTILE, "known": True, "caption": HOSTILE, "columns": ["Method", "Error"],
        "rows": [["ours", 0.01], [HOSTILE, 0.2]],
    },
}  # fmt: skip


def table(n=300, p=12, k=3):
    rng = np.random.default_rng(0)
    centers = np.where(rng.random((k, p)) < 0.5, 4.0, 0.0)
    X = centers[rng.integers(0, k, n)] + rng.normal(size=(n, p))
    X[rng.random(X.shape) < np.exp(-0.5 * X**2)] = np.nan
    X[:, -1] = 1.0  # no row without an observed value
    return X


def page_of(X, k=2, *, lam=0.5, **names):
    return report(MNARKMeans(k, lam=lam, n_init=2, random_state=0).fit(X), X, **names).page


@pytest.fixture(scope="module")
def page():
    page = page_of(
        table(), 3, title=HOSTILE, ids=[ROW, *(f"row {i}" for i in range(1, 300))],
        features=[HOSTILE, *(f"feature {j}" for j in range(1, 12))],
        annotations={HOSTILE: [HOSTILE, "b"] * 150, "age": np.arange(300) / 7},
    )  # fmt: skip
    return page | FACTS


@pytest.fixture(scope="module")
def html(page):
    return render(json.loads(json.dumps(page, allow_nan=False)))


def test_the_page_is_self_contained_and_names_are_escaped_everywhere(html):
    assert HOSTILE not in html
    assert "onerror=alert(2)>" not in html
    assert html.count("<script") == 2  # the numbers and the one script of the page
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10
    assert len(html.encode()) < 400_000
    assert "default-src 'none'" in html
    assert not re.search(r"""(src|href)=["']?(https?:)?//|@import|url\(http""", html)


def test_fifty_thousand_rows_stay_small():
    page = page_of(table(n=52_000, p=4, k=2))
    assert len(page["embedding"]["ids"]) == 50_000
    html = render(page)
    assert len(html.encode()) < 5_000_000
    assert "A random 50,000 of 52,000 rows" in html


def test_numbers_agree_with_the_model(page):
    assert sum(c["rows"] for c in page["clusters"]) == 300
    far = [row["distance"] for row in page["far"]]
    assert far == sorted(far, reverse=True)
    sparse = page_of(sp.csr_matrix(np.nan_to_num(table())), 3)
    assert sparse["data"]["missing_share"] == pytest.approx(page["data"]["missing_share"])
    first, age = page["annotations"]
    assert np.sum(first["counts"]) == np.sum(age["counts"]) == 300
    assert len(age["groups"]) == 4
    assert age["values"][7] == pytest.approx(1.0)


def test_picture_table_and_text_of_missing_shares_are_those_of_diagnose():
    rng = np.random.default_rng(0)
    X = rng.normal(np.linspace(18, 30, 40), 1.0, size=(120, 40))
    X[rng.random(X.shape) < 1 / (1 + np.exp(2 * (X - 21)))] = np.nan
    X = X[:, ~np.isnan(X).all(axis=0)]
    model = MNARKMeans(2, random_state=0).fit(X)
    page, found = report(model, X).page, diagnose(X, n_clusters=2)
    dots, by_feature, by_cell = page["charts"]["missing"]["series"]
    for values, expected in (
        (by_feature["x"], found.feature_curve.mean),
        (by_feature["y"], found.feature_curve.missing_share),
        (by_cell["y"], found.curve.missing_share),
        (dots["y"], found.feature_share),
    ):
        np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-6)
    share = by_feature["y"]
    assert share[0] > 0.5 > 0.02 > share[-1]
    assert f"{share[0]:.1%} of the entries" in page["missing_text"]
    assert [title.split(":")[0] for title in dots["titles"]] == [f"x{j}" for j in range(len(X.T))]
    counts = page["charts"]["by_feature"]["series"][0]["y"]
    assert counts == np.histogram(np.isnan(X).mean(axis=0), 20, (0, 1))[0].tolist()


def test_the_verdict_comes_first(page, html):
    assert page["sure"]["level"] == "separate"
    assert "The clusters form 2 groups" in page["sure"]["reasons"][0]
    body = html.split("<main")[1]
    assert body.index("Separate groups.") < body.index("<dl")
    for text in ("How sure is this?", "What makes a cluster", "Found again"):
        assert text in body
    judged = [cluster for cluster in page["clusters"] if cluster["levels"]]
    assert judged
    assert all(sum(c["levels"]) == c["rows"] and 0 <= c["confidence"] <= 1 for c in judged)
    assert all(-1 <= cluster["silhouette"] <= 1 for cluster in page["clusters"])
    assert len(page["stability"]) == 3
    assert {marker["cluster"] for marker in page["markers"]} == {0, 1, 2}


def test_no_bars_of_confidence_where_nothing_can_be_said():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 6))
    noise[rng.random(noise.shape) < 0.3] = np.nan
    outliers = noise.copy()
    outliers[[3, 50]] += 200.0
    for X, level in ((noise, "continuum"), (noise[:6], "too-few"), (outliers, "too-few")):
        page = page_of(X, lam=0.0)
        assert page["sure"]["level"] == level, page["sure"]
        assert set(page["embedding"]["confidence"]) == {None}
        assert 'class="bars"' not in render(page)
    assert page["sure"]["reasons"] == [
        "All rows but 2 are in one cluster: the others may be outliers."
    ]
    with pytest.warns(ConvergenceWarning):
        same = page_of(np.ones((20, 2)), 3, lam=0.0)
    assert same["sure"]["reasons"] == ["All rows are in one cluster."]


def test_confidence_is_that_of_the_package_with_rows_that_lost_everything():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) + np.repeat([0.0, 5.0], 20)[:, None]
    X[[3, 30]] = np.nan
    with pytest.warns(MissingDataWarning):
        model = MNARKMeans(2, lam=1.0, random_state=0).fit(X)
    page = report(model, X).page
    shown = np.array(page["embedding"]["confidence"], dtype=float)
    np.testing.assert_allclose(shown, confidence(X, model), atol=6e-4)
    assert np.flatnonzero(np.isnan(shown)).tolist() == [3, 30]
    between = [row["confidence"] for row in page["between"]]
    assert between == pytest.approx(sorted(shown[shown < 0.6]), abs=6e-4)


def test_an_annotation_that_is_the_clustering_and_a_penalty_for_each_feature():
    X = np.random.default_rng(0).normal(size=(90, 3)) + 9.0 * np.arange(90)[:, None] % 27.0
    notes = {"sex": ["f", "m"] * 45, "run": [f"run{i % 3}" for i in range(90)]}
    page = page_of(X, 3, lam=np.array([0.0, 0.5, 1.0]), annotations=notes)
    assert page["sure"]["reasons"][0].startswith("The clusters follow 'run'")
    assert not any("'sex'" in reason for reason in page["sure"]["reasons"])
    assert page["stability"] == [1.0, 1.0, 1.0]
    html = render(page)
    assert "0 to 1" in html
    assert html.index("--batch run") < html.index("<dl")


def test_numbers_of_any_size_and_the_smallest_tables_fit_their_places():
    rng = np.random.default_rng(0)
    for size in (1e-90, 1e10):
        html = render(page_of(rng.normal(size=(40, 3)) * size))
        shown = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
        assert not re.search(r">[^<]*\d[eE][+-]?\d\d+[^<]*</(dd|td)>", shown)
    assert "Nothing is missing" in render(page_of(np.arange(8.0)[:, None], 1))


def test_a_report_from_python_is_saved_and_shown_in_a_notebook(tmp_path):
    pd, rng = pytest.importorskip("pandas"), np.random.default_rng(0)
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
    plain = clone(model).fit(values)
    sparse = report(plain, sp.csr_matrix(values, dtype=float), features=["a", "b", "c"]).page
    assert sparse["data"] == made.page["data"]
    assert sparse["charts"] == made.page["charts"]
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
    chosen, best = page["choice"]["chosen"], search.best_index_
    assert chosen[0] == search.lam_
    assert chosen[1] == pytest.approx(search.cv_results_["mean_instability"][best])
    assert [flow["axis_name"] for flow in page["flow"]] == ["penalty lam", "number of clusters"]
    for flow in page["flow"]:  # what the app moves along
        assert flow["partitions"][flow["chosen"]] == search.predict(X).tolist()
        assert len(flow["moved"]) == len(flow["names"]) - 1
    assert page["lam_text"].startswith(f"k = {search.n_clusters_} and lam")
    assert "from 2 to 3" in page["methods"]
    html = render(json.loads(json.dumps(page, allow_nan=False)))
    assert str(escape(page["methods"])) in html
