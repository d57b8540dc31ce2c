"""Make the pictures of the command-line pages and of the app: run them, take screenshots.

    python docs/howto/screenshots.py

needs playwright and chromium; the pictures are stored beside the pages.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
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


def shoot_app(browser, folder: Path) -> None:
    """The app with a table of MaxQuant, before and after."""
    sys.path.insert(0, str(HERE.parents[1] / "tests" / "tables"))
    from lab_files import maxquant

    name, _ = maxquant(folder)
    command = [sys.executable, "-m", "mnarkmeans", "app", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as app:
        page = browser.new_page()
        page.goto(app.stdout.readline().strip())
        page.set_input_files("#file", str(folder / name))
        page.wait_for_selector("#choose:not([hidden])", timeout=120_000)
        page.locator("#understood").screenshot(path=str(HERE.parent / "app_understood.png"))
        page.fill("#clusters", "3")
        page.click("#run")
        page.wait_for_selector("#result:not([hidden])", timeout=120_000)
        page.wait_for_timeout(2000)
        page.locator("#results").screenshot(path=str(HERE.parent / "app_result.png"))
        app.send_signal(signal.SIGINT)


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
        shoot_app(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
