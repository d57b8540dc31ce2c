"""The page in a real browser: it draws, answers, sorts, gives its numbers, and fits a phone."""

from __future__ import annotations

import csv
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
from test_report import HOSTILE, ROW
from test_report import html as html

from mnarkmeans import MNARKMeans, report

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


def test_rows_are_coloured_by_what_is_chosen(opened):
    page = opened()
    picture = "document.getElementById('map').toDataURL()"
    seen = {page.evaluate(picture)}
    for choice in (2, 3, 4):  # missing share, a group, a number
        page.locator("#shade").select_option(index=choice)
        seen.add(page.evaluate(picture))
        assert page.locator("#groups li").count() == 2
    assert len(seen) == 4
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
    for what in ("figure", "table:not(.facts)"):
        assert page.locator(f"{what}:not(:has(button.download))").count() == 0
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


def test_every_picture_can_be_saved(opened, tmp_path):
    page = opened()
    names = page.locator("button.save[data-kind=svg]").evaluate_all(
        "all => all.map(b => b.dataset.name)"
    )
    drawn = page.locator("figure:has(svg)").count() + page.locator("canvas").count()
    assert len(names) == len(set(names)) == drawn == 9
    for number, name in enumerate(names):
        if number % 4 == 3:
            page = opened()  # a browser grants a page ten downloads in a row
        for kind in ("svg", "png"):
            with page.expect_download(timeout=10_000) as waiting:
                page.locator(f"button.save[data-name={name}][data-kind={kind}]").click()
            target = tmp_path / f"{name}.{kind}"
            waiting.value.save_as(target)
        whole = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        size = int(float(whole.get("width"))), int(float(whole.get("height")))
        assert len(list(whole.iter())) > 10
        assert "var(" not in (tmp_path / f"{name}.svg").read_text("utf8")  # of the style sheet
        content = (tmp_path / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG")
        assert abs(int.from_bytes(content[16:20]) - 2 * size[0]) <= 2
        assert abs(int.from_bytes(content[20:24]) - 2 * size[1]) <= 2
        assert len(content) > 1000
    legend = (tmp_path / "embedding.svg").read_text("utf8")
    assert "cluster 0 (" in legend
    assert page.trouble == []


def test_few_rows_have_names_and_few_groups_symbols(browser, tmp_path):
    X = np.arange(12.0)[:, None] % 4 * 9 + np.random.default_rng(0).normal(size=(12, 3))
    model = MNARKMeans(4, lam=0.0, random_state=0).fit(X)
    made = report(model, X, tmp_path / "few.html", ids=[f"sample-{i}" for i in range(12)])
    assert len(made.page["embedding"]["ids"]) == 12
    page = browser.new_page()
    page.goto((tmp_path / "few.html").as_uri())
    with page.expect_download() as waiting:
        page.locator("button.save[data-name=embedding][data-kind=svg]").click()
    waiting.value.save_as(tmp_path / "rows.svg")
    texts = [
        e.text for e in ElementTree.parse(tmp_path / "rows.svg").iter() if e.tag.endswith("text")
    ]
    assert any(text.startswith("sample-") for text in texts)
    shapes = page.locator("#legend .swatch").evaluate_all("all => all.map(e => e.className)")
    assert len(set(shapes)) == 4
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_printed_pages_have_heads_colours_and_the_whole_command(opened, scheme):
    page = opened(794, 1123, scheme)
    page.emulate_media(media="print", color_scheme=scheme)
    page.wait_for_timeout(100)
    seen = page.evaluate(
        """() => {
          const style = (e) => getComputedStyle(e), all = (q) => [...document.querySelectorAll(q)];
          return {
            heads: all('thead th').every(e => e.innerText.trim() && e.offsetHeight > 0),
            shown: all('th button').every(e => style(e).display !== 'none'),
            repeated: all('thead').every(e => style(e).display === 'table-header-group'),
            exact: all('.swatch, .meter i, .stack i, .ramp, .hatch, td.count')
              .every(e => style(e).getPropertyValue('print-color-adjust') === 'exact'),
            legend: all('#legend button').every(e => style(e).display !== 'none'),
            command: all('pre').every(
              e => style(e).whiteSpace === 'pre-wrap' && e.scrollWidth <= e.clientWidth),
            ground: style(document.body).backgroundColor,
            buttons: all('button.download, button.save').some(e => style(e).display !== 'none'),
            wide: document.documentElement.scrollWidth,
          }; }"""
    )
    assert seen.pop("wide") <= 794
    assert seen.pop("ground") == "rgb(255, 255, 255)"
    assert not seen.pop("buttons")
    assert all(seen.values()), seen
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
