"""Reports at the ends of what they are made for, to be looked at.

    python tests/report_pages.py FOLDER

writes the pages of 5 rows, 20 clusters, 2,000 features, 50,000 rows and of a choice of k, and a
picture of each, whole, on a desk and on a phone, light and dark. Needs playwright and chromium.
"""

from __future__ import annotations

import shutil
import sys
from itertools import product
from pathlib import Path

import numpy as np

from mnarkmeans import MNARKMeans, MNARKMeansCV, report

SIZES = {  # rows, features, clusters
    "five-rows": (5, 4, 2),
    "twenty-clusters": (600, 12, 20),
    "wide": (120, 2000, 4),
    "tall": (50_000, 8, 5),
    "choice": (90, 6, [2, 3, 4, 5, 6]),
}
SCREENS = {"desk": (1280, 900), "phone": (390, 844)}
LONG = "sp|P04217|A1BG_HUMAN Alpha-1B-glycoprotein OS=Homo sapiens GN=A1BG PE=1 SV=4"


def page_of(rows, features, clusters):
    """The page of a table in which small values went missing."""
    rng = np.random.default_rng(1)
    several = np.ndim(clusters) > 0
    centers = rng.choice([0.0, 3.0, 6.0], (3 if several else clusters, features))
    X = centers[rng.integers(0, len(centers), rows)] + rng.normal(size=(rows, features))
    X[rng.random(X.shape) < 0.8 * np.exp(-0.3 * X**2)] = np.nan
    make = MNARKMeansCV(clusters, n_splits=4) if several else MNARKMeans(clusters, lam=0.5)
    model = make.set_params(n_init=3, random_state=0).fit(X)
    names = [LONG, *(f"Intensity of protein {j}" for j in range(1, features))]
    notes = {"batch": rng.integers(1, 4, rows).astype(str), "age": rng.uniform(20, 80, rows)}
    return report(
        model, X, ids=[f"patient {i}, visit 1" for i in range(rows)], features=names,
        title=f"{rows:,} rows, {features:,} features, {clusters} clusters", annotations=notes,
    )  # fmt: skip


def photograph(folder, paths):
    """A picture of each page, on every screen and ground; what is wider than the screen is told."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch_persistent_context(
            str(folder / "profile"), executable_path=shutil.which("chromium"), headless=True,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )  # fmt: skip
        for path, screen, scheme in product(paths, SCREENS, ("light", "dark")):
            width, height = SCREENS[screen]
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
    for name, size in SIZES.items():
        page_of(*size).save(target / f"{name}.html")
    photograph(target, [target / f"{name}.html" for name in SIZES])
