"""Reports at the ends of what they are made for, to be looked at.

    python tests/report_pages.py FOLDER

writes the pages of 5 rows, 20 clusters, 2,000 features, 50,000 rows and of a choice of k, and a
picture of each, whole, on a desk and on a phone, light and dark. Needs playwright and chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

from mnarkmeans import MNARKMeans, MNARKMeansCV, report

SIZES = {  # rows, features, clusters
    "five-rows": (5, 4, 2),
    "twenty-clusters": (600, 12, 20),
    "wide": (120, 2000, 4),
    "tall": (50_000, 8, 5),
}
SCREENS = {"desk": (1280, 900), "phone": (390, 844)}
LONG = "sp|P04217|A1BG_HUMAN Alpha-1B-glycoprotein OS=Homo sapiens GN=A1BG PE=1 SV=4"


def page_of(rows, features, clusters):
    """The page of a table in which small values went missing."""
    rng = np.random.default_rng(1)
    centers = rng.choice([0.0, 3.0, 6.0], (clusters, features))
    X = centers[rng.integers(0, clusters, rows)] + rng.normal(size=(rows, features))
    X[rng.random(X.shape) < 0.8 * np.exp(-0.3 * X**2)] = np.nan
    model = MNARKMeans(clusters, lam=0.5, n_init=3, random_state=0).fit(X)
    names = [LONG, *(f"Intensity of protein {j}" for j in range(1, features))]
    return report(
        model,
        X,
        ids=[f"patient {i}, visit 1" for i in range(rows)],
        features=names,
        title=f"{rows:,} rows, {features:,} features, {clusters} clusters",
        annotations={
            "batch": rng.integers(1, 4, rows).astype(str),
            "age": rng.uniform(20, 80, rows),
        },
    )


def selected():
    """The page of a choice of lam and k."""
    rng = np.random.default_rng(2)
    X = rng.choice([0.0, 4.0], (3, 6))[np.arange(90) % 3] + rng.normal(size=(90, 6))
    X[rng.random(X.shape) < 0.5 * np.exp(-0.3 * X**2)] = np.nan
    search = MNARKMeansCV([2, 3, 4, 5, 6], n_init=3, n_splits=4, random_state=0).fit(X)
    return report(search, X, title="A choice", features=[f"feature {j}" for j in range(6)])


def pages(folder):
    """Write every page; their paths."""
    made = {name: page_of(*size) for name, size in SIZES.items()} | {"choice": selected()}
    paths = []
    for name, page in made.items():
        paths.append(folder / f"{name}.html")
        page.save(paths[-1])
    return paths


def photograph(folder, paths):
    """A picture of each page, on every screen and ground; what is wider than the screen is told."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch_persistent_context(
            str(folder / "profile"), executable_path=shutil.which("chromium"), headless=True,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )  # fmt: skip
        for path in paths:
            for screen, (width, height) in SCREENS.items():
                for scheme in ("light", "dark"):
                    page = browser.new_page()
                    page.set_viewport_size({"width": width, "height": height})
                    page.emulate_media(color_scheme=scheme)
                    page.goto(path.as_uri())
                    page.wait_for_timeout(300)
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    if wide > width:
                        print(f"{path.name} is {wide} wide on a {screen} of {width}")
                    picture = folder / f"{path.stem}-{screen}-{scheme}.png"
                    page.screenshot(path=str(picture), full_page=True)
                    page.close()
        browser.close()


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "report-pages").resolve()
    target.mkdir(parents=True, exist_ok=True)
    photograph(target, pages(target))
