"""Make the pictures of the command-line pages and of the app: run them, take screenshots.

    python docs/howto/screenshots.py [FOLDER]

needs playwright and chromium; the pictures are stored beside the pages, every step of the app in
FOLDER.
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
sys.path.insert(0, str(HERE.parent))
SHOTS = [
    ("proteomics.md", "plasma", "#rows", "proteomics_rows.png"),
    ("proteomics.md", "plasma", "#centers", "proteomics_centers.png"),
    ("proteomics.md", "plasma", "#missing", "proteomics_missing.png"),
    ("single_cell_cli.md", "cells-result", "#rows", "single_cell_rows.png"),
    ("single_cell_cli.md", "cells-compared", "#comparison", "single_cell_compared.png"),
]


def run_page(page: Path, folder: Path) -> None:
    """Every block of the page, in order, in one folder."""
    from test_pages import blocks, commands

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
    """The app with a table of MaxQuant: understood, the result, rows that change cluster.

    With a folder as argument of the script, every step goes there as well, also dark and narrow.
    """
    sys.path.insert(0, str(HERE.parents[1] / "tests"))
    from lab_files import hopeless, maxquant

    steps = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None

    def shoot(page, name: str, part: str = "") -> None:
        page.wait_for_timeout(500)
        if part:
            page.locator(part).screenshot(path=str(HERE.parent / f"app_{name}.png"))
        if steps is not None:
            page.screenshot(path=str(steps / f"{name}.png"), full_page="full" in name)

    def drop(page, name: str, found: str = "#choose:not([hidden])") -> None:
        page.set_input_files("#file", str(folder / name))
        page.wait_for_selector(found)

    table, broken = maxquant(folder)[0], hopeless(folder)[0]
    command = [sys.executable, "-m", "mnarkmeans", "app", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as app:
        address = app.stdout.readline().strip()
        browser.set_default_timeout(300_000)
        page = browser.new_page()
        page.goto(address)
        shoot(page, "drop")
        drop(page, table)
        shoot(page, "understood", "#understood")
        page.fill("#clusters", "2:5")
        page.locator("#choose").scroll_into_view_if_needed()
        shoot(page, "choose")
        page.click("#run")
        page.locator("#runs li").get_by_text("running").wait_for()
        shoot(page, "running")
        page.frame_locator("#report").locator("h1").wait_for()
        shoot(page, "result", "#result")
        page.locator("#others summary").click()
        page.get_by_label("k = 2").check()
        shoot(page, "others", "#others")
        if steps is not None:
            page.fill("#clusters", "4")
            page.click("#run")
            page.locator("#runs li").nth(1).get_by_text("done").wait_for()
            shoot(page, "history")
            drop(page, broken, "#preview-error:not([hidden])")
            shoot(page, "refused")
            for scheme, width in (("dark", 1040), ("light", 390), ("dark", 390)):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 850})
                page.goto(f"{address}#run-1")
                drop(page, table)
                page.frame_locator("#report").locator("h1").wait_for()
                shoot(page, f"full-{scheme}-{width}")
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
