"""Make the pictures of the two command-line pages: run their blocks, photograph the reports.

    python docs/howto/screenshots.py

needs playwright and chromium; the pictures are stored beside this file.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
SHOTS = [
    ("proteomics.md", "plasma", "#rows", "proteomics_rows.png"),
    ("proteomics.md", "plasma", "#centers", "proteomics_centers.png"),
    ("proteomics.md", "plasma", "#missing", "proteomics_missing.png"),
    ("single_cell_cli.md", "cells-result", "#rows", "single_cell_rows.png"),
    ("single_cell_cli.md", "cells-compared", "#comparison", "single_cell_compared.png"),
]


def run_page(page: Path, folder: Path) -> None:
    """Every block of the page, in order, in one folder."""
    from test_docs import blocks, commands

    namespace: dict = {}
    os.chdir(folder)
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, page.name, "exec"), namespace)
            continue
        for arguments in commands(text):
            print("mnarkmeans", shlex.join(arguments))
            subprocess.run([sys.executable, "-m", "mnarkmeans", *arguments], check=True)


def main() -> None:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        for name in sorted({shot[0] for shot in SHOTS}):
            run_page(HERE / name, Path(folder))
        browser = driver.chromium.launch_persistent_context(
            str(Path(folder) / "profile"), executable_path=shutil.which("chromium"), args=flags,
            headless=True, viewport={"width": 1040, "height": 900},
        )  # fmt: skip
        page = browser.new_page()
        for _, result, section, picture in SHOTS:
            page.goto((Path(folder) / result / "report.html").as_uri())
            page.wait_for_timeout(300)
            page.locator(section).screenshot(path=str(HERE / picture))
        browser.close()


if __name__ == "__main__":
    main()
