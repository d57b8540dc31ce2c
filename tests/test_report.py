"""The page: escaped, self-contained, and alive in a real browser."""

from __future__ import annotations

import csv
import json
import re
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from mnarkmeans import MNARKMeans
from mnarkmeans.displays._flow import Path
from mnarkmeans.report import collect, render
from mnarkmeans.report._annotations import crossed
from mnarkmeans.report._charts import instability
from mnarkmeans.report._flow import as_page

HOSTILE = "<script>alert(1)</script>"
ROW = "</script><img src=x onerror=alert(2)>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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
    "mixture": [{"k": 2, "bic": 30.0, "icl": 31.0}, {"k": 3, "bic": 20.0, "icl": 32.0}],
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
    for cluster in page["clusters"]:
        assert sum(cluster["levels"]) == cluster["rows"]
        assert 1 / 3 <= cluster["confidence"] <= 1
        assert -1 <= cluster["silhouette"] <= 1
    assert page["sure"]["level"] in ("solid", "fair", "weak")
    assert len(page["stability"]) == 3
    sure = [row["confidence"] for row in page["between"]]
    assert sure == sorted(sure)
    assert {marker["cluster"] for marker in page["markers"]} == {0, 1, 2}


def test_noise_is_called_weak_and_islands_solid():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 6))
    noise[rng.random(noise.shape) < 0.3] = np.nan
    islands = noise + 9.0 * np.arange(200)[:, None] % 27.0
    for X, k, level in ((noise, 8, "weak"), (islands, 3, "solid")):
        model = MNARKMeans(k, lam=0.0, random_state=0).fit(X)
        page = collect(X=X, ids=range(200), features=list("abcdef"), model=model, title="t")
        assert page["sure"]["level"] == level, page["sure"]


def test_clusters_that_nobody_could_judge_are_not_said_to_be_there():
    page = make_page(n=6, p=3, k=2)
    assert page["stability"] is None
    assert page["sure"]["level"] == "unjudged"
    assert "not known" in page["sure"]["headline"]
    few = next(step for step in page["sure"]["next"] if "no more than" in step)
    assert few.startswith(("Cluster ", "Clusters 0 and 1 have"))


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
    choice = {"lam": [0.0] * 3, "k": [2, 3, 4], "mean": [0.3, 0.1, None], "std": [0.0] * 3}
    drawn = str(instability(choice | {"best_index": 1}))
    assert "number of clusters" in drawn
    assert drawn.count('class="ring"') == 1


def test_centres_on_one_side_are_compared_with_the_mean():
    X = 20.0 + np.random.default_rng(0).normal(size=(60, 4))
    model = MNARKMeans(2, lam=0.5, reference="min", random_state=0).fit(X)
    page = collect(X=X, ids=range(60), features=list("abcd"), model=model, title="t")
    assert '<option value="mean" selected>' in render(page)
    assert '<option value="reference" selected>' in render(make_page(p=3))


# ---- in the browser ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        profile = tmp_path_factory.mktemp("profile")
        context = driver.chromium.launch_persistent_context(
            str(profile), executable_path=CHROMIUM, args=FLAGS, headless=True,
            accept_downloads=True,
        )  # fmt: skip
        yield context
        context.close()


@pytest.fixture
def opened(browser, html, tmp_path):
    """The page at a size, with everything that went wrong on it."""
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    pages = []

    def open_at(width=1280, height=900, scheme="light"):
        page = browser.new_page()
        pages.append(page)
        page.trouble = []
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.on("console", lambda message: page.trouble.append(message.text))
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("dialog", lambda dialog: (page.trouble.append("dialog"), dialog.dismiss()))
        page.on("request", lambda r: r.url.startswith("file:") or page.trouble.append(r.url))
        page.goto(file.as_uri())
        page.wait_for_timeout(100)
        return page

    yield open_at
    for page in pages:
        page.close()


def test_no_errors_no_requests_and_hostile_names_are_text(opened):
    page = opened()
    assert page.trouble == []
    assert page.inner_text("h1") == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("#far td:first-child").count() == 100
    page.get_by_label("Find a row").fill(ROW)
    assert page.inner_text("#tip b") == ROW
    assert page.trouble == []


def test_hover_and_keyboard_tell_the_row(opened):
    page = opened()
    box = page.locator("#map").bounding_box()
    found = None
    for step in range(40, 1600):
        x = box["x"] + box["width"] * (step % 40 + 0.5) / 40
        y = box["y"] + box["height"] * (step // 40 + 0.5) / 40
        page.mouse.move(x, y)
        if page.locator("#tip").is_visible():
            found = page.inner_text("#tip b")
            break
    assert found
    assert found.startswith("row ") or found == ROW
    page.mouse.move(5, 5)
    assert not page.locator("#tip").is_visible()
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    assert "cluster" in page.inner_text("#spoken")
    first = page.locator("#legend button").first
    first.click()
    assert first.get_attribute("aria-pressed") == "false"
    assert page.trouble == []


def test_tables_sort(opened):
    page = opened()
    head = page.locator("#clusters th").nth(1)
    for order, reverse in (("ascending", False), ("descending", True)):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        sizes = [int(t) for t in page.locator("#clusters td:nth-child(2)").all_inner_texts()]
        assert sizes == sorted(sizes, reverse=reverse)


def test_every_plot_gives_its_numbers(opened, tmp_path):
    page = opened()
    names = page.locator("button.download").evaluate_all("all => all.map(b => b.dataset.name)")
    assert len(names) == len(set(names)) == 16
    for number, name in enumerate(names):
        if number == len(names) // 2:
            page = opened()  # a browser grants a page ten downloads in a row
        with page.expect_download(timeout=10_000) as waiting:
            page.locator(f"button.download[data-name={name}]").click()
        target = tmp_path / f"{name}.csv"
        waiting.value.save_as(target)
        with open(target, newline="", encoding="utf-8-sig") as stream:
            rows = list(csv.reader(stream))
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1
    assert page.trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone(opened, scheme):
    page = opened(390, 844, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.evaluate(
        """() => [...document.querySelectorAll('p, td, th, li, dd, h2')]
             .map(e => parseFloat(getComputedStyle(e).fontSize))"""
    )
    assert min(sizes) >= 13
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('svg text')].map(e => {
             const whole = e.ownerSVGElement, box = whole.getBoundingClientRect();
             const scale = box.width / whole.viewBox.baseVal.width;
             return parseFloat(getComputedStyle(e).fontSize) * scale; })"""
    )
    assert min(drawn) >= 9
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(246, 247, 249)" if scheme == "light" else "rgb(18, 22, 28)")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
    assert page.trouble == []


def test_screen_readers_find_names_headers_and_landmarks(opened):
    page = opened()
    bare = page.evaluate(
        """() => [...document.querySelectorAll('svg, canvas, button, input')].filter(e =>
             !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels || []).length))
             .length"""
    )
    assert bare == 0
    assert page.locator("main").count() == page.locator("nav[aria-label]").count() == 1
    assert page.locator("thead th:not([scope])").count() == 0
    targets = page.locator("nav a").evaluate_all("all => all.map(a => a.hash)")
    assert all(page.locator(target).count() == 1 for target in targets)
