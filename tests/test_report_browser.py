"""The page in a real browser: it draws, answers, sorts, gives its numbers, prints, fits a phone."""

import base64
import csv
import itertools
import os
import re
import shutil
from contextlib import contextmanager
from xml.etree import ElementTree

import numpy as np
import pytest
from test_report import HOSTILE, ROW
from test_report import html as html
from test_report import page as page

from mnarkmeans import MNARKMeans, report

CHROMIUM = shutil.which("chromium")  # None: the one that Playwright has installed
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        except playwright.Error as error:
            if "MNARKMEANS_SLOW" in os.environ:
                raise
            pytest.skip(f"chromium is not installed: {error}")
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


@contextmanager
def pages(browser, file):
    """A function that opens the page at a size; in the end nothing may have gone wrong on it."""
    shown, trouble = [], []

    def open_at(width=1280, height=900, scheme="light", file=file):
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append("dialog"), dialog.dismiss()))
        page.on("request", lambda r: r.url.startswith("file:") or trouble.append(r.url))
        page.goto(file.as_uri())
        page.wait_for_selector("th button")
        shown.append(page)
        return page

    yield open_at
    for window in shown:
        window.close()
    assert trouble == []


@pytest.fixture
def opened(browser, file):
    with pages(browser, file) as open_at:
        yield open_at


@pytest.fixture(scope="module")
def desk(browser, file):
    with pages(browser, file) as open_at:
        yield open_at()


def saved(shown, name, folder):
    """A picture as SVG."""
    with shown.expect_download(timeout=10_000) as waiting:
        shown.locator(f"button.save[data-name={name}][data-kind=svg]").click()
    waiting.value.save_as(folder / "picture.svg")
    return (folder / "picture.svg").read_text("utf8")


def test_no_errors_no_requests_and_hostile_names_are_text(desk):
    assert desk.inner_text("h1") == HOSTILE
    assert desk.locator("img").count() == 0
    assert desk.locator("#far td:first-child").count() == 100
    desk.get_by_label("Find a row").fill(ROW)
    assert desk.inner_text("#tip b") == ROW
    desk.get_by_label("Find a row").fill("")


def test_hover_and_keyboard_tell_the_row(desk):
    spot = desk.locator("#map")
    spot.hover()  # brings it into view
    box = spot.bounding_box()
    places = np.linspace(0.02, 0.98, 40)
    for y, x in itertools.product(places, places):
        desk.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if desk.locator("#tip").is_visible():
            break
    assert desk.inner_text("#tip b").startswith(("row ", ROW))
    desk.mouse.move(5, 5)
    assert not desk.locator("#tip").is_visible()
    spot.focus()
    desk.keyboard.press("ArrowRight")
    assert "cluster" in desk.inner_text("#spoken")
    first = desk.locator("#legend button").first
    for pressed in ("false", "true"):
        first.click()
        assert first.get_attribute("aria-pressed") == pressed
    for canvas, told in (("#heat", "#center"), ("#sorted", "#cell")):
        desk.locator(canvas).hover()
        assert "cluster" in desk.inner_text(told)


def test_rows_are_coloured_by_what_is_chosen(desk):
    picture = "document.getElementById('map').toDataURL()"
    seen = {desk.evaluate(picture)}
    for choice in (2, 3, 4):  # missing share, a group, a number
        desk.locator("#shade").select_option(index=choice)
        seen.add(desk.evaluate(picture))
        assert desk.locator("#groups li").count() == 2
    desk.locator("#shade").select_option(index=0)
    assert len(seen) == 4


def test_charts_place_their_points(desk):
    """Bars as high as their counts, the ring at the chosen candidate, axes with round numbers."""
    heights = desk.locator("[data-chart=by_row] rect").evaluate_all(
        "all => all.map(bar => [parseFloat(bar.getAttribute('height')), bar.textContent])"
    )
    counts = [int(title.split(": ")[1].split()[0]) for _, title in heights]
    assert sum(counts) == 300
    ratios = [height / count for (height, _), count in zip(heights, counts, strict=True)]
    np.testing.assert_allclose(ratios, ratios[0], rtol=0.01)
    chart = desk.locator("[data-chart=choice]")
    ring = chart.locator(".ring").evaluate("e => [e.getAttribute('cx'), e.getAttribute('cy')]")
    chosen = chart.locator("circle.dot", has_text="k = 3, lam = 0.1: 0.05")
    assert chosen.evaluate("e => [e.getAttribute('cx'), e.getAttribute('cy')]") == ring
    assert chart.locator("circle.dot").count() == 5  # a candidate without a score has no point
    texts = chart.locator("text").all_text_contents()
    assert {"0", "0.1", "0.2", "k = 2", "k = 3", "chosen: lam = 0.1, k = 3"} <= set(texts)
    assert HOSTILE in desk.locator("[data-chart=missing] title").first.text_content()


def test_numbers_of_any_size_have_no_exponents(opened, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3)) * 1e-90
    report(MNARKMeans(2, lam=0.5, random_state=0).fit(X), X, tmp_path / "tiny.html")
    texts = opened(file=tmp_path / "tiny.html").locator("svg text").all_text_contents()
    assert any("× 10⁻⁹" in text for text in texts)
    assert not any(re.search(r"\de[+-]?\d", text) for text in texts)


def test_tables_sort(desk):
    head = desk.locator("#clusters th").nth(1)
    for order, reverse in (("ascending", False), ("descending", True)):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        sizes = [int(t) for t in desk.locator("#clusters td:nth-child(2)").all_inner_texts()]
        assert sizes == sorted(sizes, reverse=reverse)


def test_screen_readers_find_names_headers_and_landmarks(desk):
    bare = desk.evaluate(
        """() => [...document.querySelectorAll('svg, canvas, button, input')].filter(e =>
             !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels || []).length))
             .length"""
    )
    assert bare == 0
    assert desk.locator("main").count() == desk.locator("nav[aria-label]").count() == 1
    assert desk.locator("thead th:not([scope])").count() == 0
    targets = desk.locator("nav a").evaluate_all("all => all.map(a => a.hash)")
    assert all(desk.locator(target).count() == 1 for target in targets)


COLLECT = """() => {
  window.saved = [];
  URL.createObjectURL = (blob) => { saved.push(blob); return '#'; };
  HTMLAnchorElement.prototype.click = () => {};
}"""
CONTENT = """async (number) => {
  while (saved.length <= number) await new Promise((done) => setTimeout(done, 20));
  const bytes = new Uint8Array(await saved[number].arrayBuffer());
  return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''));
}"""


def collected(shown, buttons):
    """What the buttons save, without the ten downloads in a row that a browser grants a page."""
    shown.evaluate(COLLECT)
    for number, button in enumerate(buttons):
        shown.locator(button).dispatch_event("click")
        yield base64.b64decode(shown.evaluate(CONTENT, number))


def names_of(shown, buttons):
    return shown.locator(buttons).evaluate_all("all => all.map(b => b.dataset.name)")


def test_every_plot_gives_its_numbers_and_every_picture_can_be_saved(opened):
    shown = opened()
    names = names_of(shown, "button.download")
    assert len(names) == len(set(names)) == 14
    for what in ("figure", "table:not(.facts)"):
        assert shown.locator(f"{what}:not(:has(button.download))").count() == 0
    tables = [f"button.download[data-name={name}]" for name in names]
    names = names_of(shown, "button.save[data-kind=svg]")
    drawn = shown.locator("figure:has(svg)").count() + shown.locator("canvas").count()
    assert len(names) == len(set(names)) == drawn == 7
    pictures = [[f"button.save[data-name={name}][data-kind={kind}]" for kind in ("svg", "png")]
                for name in names]  # fmt: skip
    contents = collected(shown, [*tables, *itertools.chain(*pictures)])
    for content in itertools.islice(contents, len(tables)):
        rows = list(csv.reader(content.decode("utf-8-sig").splitlines()))
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1
    for name in names:
        svg, png = next(contents), next(contents)
        whole = ElementTree.fromstring(svg)
        assert len(list(whole.iter())) > 10
        assert b"var(" not in svg  # of the style sheet
        assert name != "embedding" or b"cluster 0 (" in svg  # the legend
        assert png.startswith(b"\x89PNG")
        for side, start in (("width", 16), ("height", 20)):
            pixels = int.from_bytes(png[start : start + 4])
            assert abs(pixels - 2 * int(float(whole.get(side)))) <= 2
        assert len(png) > 1000


@pytest.mark.parametrize(("reference", "above"), [(17.5, True), (24.0, False)])
def test_the_heatmap_shows_centres_beside_the_reference_or_the_mean(
    opened, tmp_path, reference, above
):
    """Few rows have names, and few groups symbols of their own."""
    rng = np.random.default_rng(0)
    X = 20.0 + rng.normal(size=(12, 4)) + 0.5 * (np.arange(12)[:, None] % 4)
    X[0, 0] = np.nan
    model = MNARKMeans(4, lam=0.5, reference=reference, random_state=0).fit(X)
    made = report(model, X, tmp_path / "few.html", ids=[f"sample-{i}" for i in range(12)])
    shown = opened(file=tmp_path / "few.html")
    assert shown.locator("#origin").input_value() == "mean"  # all centres lie on one side
    shown.locator("#origin").select_option("reference")
    heat = saved(shown, "centers", tmp_path)
    shades = re.findall(r'height="17" fill="rgb\((\d+),(\d+),(\d+)\)"', heat)
    assert len(shades) == 16
    assert all((int(red) > int(blue)) == above for red, _, blue in shades)
    widths = np.array(re.findall(r'width="([\d.]+)" height="17" fill="rgb', heat), dtype=float)
    expected = 1 - np.array(made.page["centers"]["missing"]).T.ravel()
    np.testing.assert_allclose(widths / max(widths), expected, atol=0.01)
    assert re.search(r"<text[^>]*>sample-", saved(shown, "embedding", tmp_path))
    shapes = shown.locator("#legend .swatch").evaluate_all("all => all.map(e => e.className)")
    assert len(set(shapes)) == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_printed_pages_have_heads_colours_and_the_whole_command(opened, scheme):
    shown = opened(718, 1040, scheme)  # A4 within the margins of a printer
    shown.emulate_media(media="print", color_scheme=scheme)
    shown.wait_for_timeout(100)
    seen = shown.evaluate(
        """() => {
          const style = (e) => getComputedStyle(e), all = (q) => [...document.querySelectorAll(q)];
          const hidden = (q) => all(q).every(e => style(e).display === 'none');
          const shown = (q) => all(q).every(e => style(e).display !== 'none');
          return {
            heads: all('thead th').every(e => e.innerText.trim() && e.offsetHeight > 0),
            repeated: all('thead').every(e => style(e).display === 'table-header-group'),
            exact: all('.swatch, .meter i, .stack i, .ramp, .gapbox, td.count')
              .every(e => style(e).getPropertyValue('print-color-adjust') === 'exact'),
            buttons: shown('th button, #legend button') && hidden('button.download, button.save'),
            command: all('pre').every(
              e => style(e).whiteSpace === 'pre-wrap' && e.scrollWidth <= e.clientWidth),
            ground: style(document.body).backgroundColor === 'rgb(255, 255, 255)',
            narrow: document.documentElement.scrollWidth <= 718,
          }; }"""
    )
    assert all(seen.values()), seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone(opened, scheme):
    shown = opened(390, 844, scheme)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = shown.evaluate(
        """() => [...document.querySelectorAll('p, td, th, li, dd, h2')]
             .map(e => parseFloat(getComputedStyle(e).fontSize))"""
    )
    assert min(sizes) >= 13
    drawn = shown.evaluate(
        """() => [...document.querySelectorAll('svg text')].map(e => {
             const whole = e.ownerSVGElement, box = whole.getBoundingClientRect();
             const scale = box.width / whole.viewBox.baseVal.width;
             return parseFloat(getComputedStyle(e).fontSize) * scale; })"""
    )
    assert min(drawn) >= 9
    ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(246, 247, 249)" if scheme == "light" else "rgb(18, 22, 28)")
    shown.locator("#theme").click()
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != ground
