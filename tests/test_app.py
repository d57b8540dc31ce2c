"""The app in a real browser: from a file to its groups, and nothing for strangers."""

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

pytest.importorskip("uvicorn")
pytest.importorskip("typer")
from lab_files import LAB_FILES, european, hopeless, maxquant, two_headers
from test_report_browser import browser as browser

SECONDS = 120_000  # milliseconds to wait on a busy machine
READABLE = [name for name in LAB_FILES if name != "hopeless"]
SOME = ("german", "spectronaut", "tenx")
EVERY = "MNARKMEANS_SLOW" in os.environ  # also what takes minutes


def start_app(folder):
    """The app in a process of its own, with a temporary folder of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mnarkmeans", "app", "--no-browser"], stdout=subprocess.PIPE,
        text=True, env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip
    return process, process.stdout.readline().strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("app")


@pytest.fixture(scope="module")
def address(folder):
    """Of one app for all tests; Ctrl-C ends it at once and leaves nothing."""
    process, address = start_app(folder)
    yield address
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    process.communicate(timeout=30)
    assert time.monotonic() - began < 10  # 2 s were asked for; machines of CI are busy
    assert not list(folder.iterdir())


@pytest.fixture
def page(browser, address):
    """A window that may complain of nothing and ask nobody else."""
    context, trouble = browser.new_context(viewport={"width": 1200, "height": 900}), []
    page = context.new_page()
    page.on("console", lambda m: m.type == "error" and "400" not in m.text and trouble.append(m))
    page.on("pageerror", lambda error: trouble.append(error))
    page.on("request", lambda r: "//127.0.0.1:" in r.url[:20] or trouble.append(r.url))
    page.goto(address)
    yield page
    context.close()
    assert [one for one in trouble if not str(one).startswith("data:")] == []


def drop(page, path):
    page.set_input_files("#file", str(path))
    page.wait_for_selector("#choose:not([hidden])", timeout=SECONDS)


def cluster(page, k):
    page.fill("#clusters", str(k))
    page.click("#run")
    page.wait_for_selector("#result:not([hidden])", timeout=SECONDS)


def downloaded(page, name):
    """A result by its name; "" is all of them."""
    with page.expect_download() as waiting:
        page.click(f"#downloads a[download='{name}']")
    return Path(waiting.value.path())


def test_a_file_reaches_its_groups_with_one_number_typed_and_one_click(page, tmp_path):
    name, group = two_headers(tmp_path)
    drop(page, tmp_path / name)
    assert page.locator("#missing circle").count() > 10  # features by how much of them is missing
    cluster(page, len(set(group)))
    labels = pd.read_csv(downloaded(page, "labels.csv"))
    assert adjusted_rand_score(group, labels["cluster"]) > 0.9
    assert page.locator("#verdict").inner_text().endswith(".")
    report = page.frame_locator("#report")
    report.locator("h1").wait_for(timeout=SECONDS)
    for kind in ("SVG", "PNG"):
        with page.expect_download(timeout=SECONDS) as waiting:
            report.get_by_role("button", name=kind).first.click()
        assert waiting.value.suggested_filename.endswith(kind.lower())
    with zipfile.ZipFile(downloaded(page, "")) as archive:
        assert {"labels.csv", "report.html", "model.json"} <= {*archive.namelist()}
    # The model labels a second file and fills the first.
    page.set_input_files("#second", str(tmp_path / name))
    page.locator("#downloads a", has_text="-labels.csv").wait_for(timeout=SECONDS)
    page.go_back()
    page.wait_for_selector("#actions:not([hidden])", timeout=SECONDS)
    page.click("#fill")
    page.locator("#downloads a", has_text="filled").wait_for(timeout=SECONDS)


def test_every_lab_file_reaches_its_groups_as_suggested(address, tmp_path):
    """By the requests of the page: drop, preview, start with k typed in; all wait in one queue."""
    groups = {}
    for name in READABLE if EVERY else SOME:
        (tmp_path / name).mkdir()
        file, group, *_ = LAB_FILES[name](tmp_path / name)
        taken = post(address, f"files?name={quote(file)}", (tmp_path / name / file).read_bytes())
        found = post(address, "preview", {"file": taken["file"]})
        assert "error" not in found, (name, found["error"])
        given = {"file": taken["file"], "settings": found["settings"]}
        run = post(address, "runs", given | {"clusters": str(len(set(group)))})
        groups[run["number"]] = name, group
    while groups:
        runs = json.loads(get(address, "runs"))
        assert sum(run["state"] == "running" for run in runs) <= 1
        for run in runs:
            if run["number"] in groups and run["state"] not in ("waiting", "running"):
                name, group = groups.pop(run["number"])
                assert run["state"] == "done", (name, run["error"])
                labels = get(address, f"runs/{run['number']}/files/labels.csv")
                labels = pd.read_csv(io.BytesIO(labels))
                assert adjusted_rand_score(group, labels["cluster"]) > 0.9, name
        time.sleep(0.2)


def test_rows_that_change_cluster_along_the_fits_and_have_any_names(page, tmp_path):
    """Two groups that each fall into two: k from 2 to 4, and another run with k = 2."""
    hostile = "<img src=x onerror=\"document.title='taken'\">"
    rng = np.random.default_rng(0)
    group = np.arange(32) % 4
    X = rng.normal(0, 0.3, (32, 12)) + 4.0 * (group // 2)[:, None]
    X[:, :6] += 2.5 * (group % 2)[:, None]
    frame = pd.DataFrame(X, [f"{hostile} {i}" for i in range(32)]).rename(columns={0: hostile})
    frame.to_csv(tmp_path / "t.csv", index_label="id")
    drop(page, tmp_path / "t.csv")
    assert hostile in page.locator("#understood").inner_text()
    cluster(page, "2:4")
    report = page.frame_locator("#report")
    report.locator("h1").wait_for(timeout=SECONDS)
    assert page.locator("img").count() == report.locator("img").count() == 0
    assert page.title() != "taken"
    page.locator("#others summary").click()
    changed = page.locator("#changed")
    changed.filter(has_text="k = 4: same clusters as this result").wait_for(timeout=SECONDS)
    page.get_by_label("k = 4").press("ArrowLeft")
    changed.filter(has_text="k = 3: 8 of 32 rows").wait_for(timeout=SECONDS)
    page.get_by_label("k = 2").check()
    changed.filter(has_text="k = 2: 16 of 32 rows").wait_for(timeout=SECONDS)
    assert page.locator("#map circle").count() == 32
    assert page.locator("#map circle.moved").count() == 16
    page.fill("#clusters", "2")
    page.click("#run")
    page.get_by_label("2 to 4 clusters of t.csv").check(timeout=SECONDS)
    changed.filter(has_text="16 of 32 rows").wait_for(timeout=SECONDS)


def test_the_command_has_options_that_its_verb_knows(address, tmp_path, capsys):
    from mnarkmeans.cli._main import run

    given = {"file": post(address, "files?name=absent.csv", b"a,b\n1,2\n")["file"]}
    given |= {"batch": "run", "labels": "kind", "as_is": True}
    given |= {"lam": "1", "reference": "1", "starts": "1", "seed": "1"}
    given |= {"settings": {"log2": True, "normalize": "median", "max_missing": 0.5}}
    for clusters in ("3", "2:4"):
        words = post(address, "command", given | {"clusters": clusters})["command"].split()
        assert len([word for word in words if word.startswith("--")]) == 10
        assert run([*words[1:-1], str(tmp_path / "out")]) == 2  # options come first: only the file
        assert capsys.readouterr().err == "error: there is no file absent.csv\n"  # is missed


def test_what_is_unticked_is_not_done_as_the_command_says_and_a_phone_shows(page, tmp_path):
    name, _ = maxquant(tmp_path)
    drop(page, tmp_path / name)
    page.fill("#clusters", "3")
    page.get_by_text("The same on the command line").click()
    command = page.locator("#command")
    command.filter(has_text="-k 3").wait_for(timeout=SECONDS)
    assert "--log2" in command.inner_text()
    page.locator("#suggestions").get_by_label("Take log2").uncheck()
    command.filter(has_not_text="--log2").filter(has_text="--as-is").wait_for(timeout=SECONDS)
    page.set_viewport_size({"width": 390, "height": 800})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground))) < 200) == (scheme == "dark")


def test_what_is_no_table_gets_a_sentence_and_a_change_can_mend_a_table(page, tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "words.csv").write_text("id,a,b\nr,1,2\ns,bad,4\nt,5,7\nu,6,8\nv,2,3\n")
    sentence = page.locator("#preview-error:not([hidden])")
    for name, place, words in (
        ("empty.csv", page.locator("#drop-status"), "empty"),
        ("picture.png", sentence, "picture.png"),
        (hopeless(tmp_path)[0], sentence, "\u201cUse only these columns\u201d"),
        ("words.csv", sentence, "bad"),
    ):
        page.set_input_files("#file", str(tmp_path / name))
        place.filter(has_text=words).wait_for(timeout=SECONDS)
        assert page.is_hidden("#choose")
    page.locator("#change summary").click()
    page.get_by_label("Codes for missing values").fill("bad")
    page.get_by_label("Codes for missing values").press("Enter")
    page.wait_for_selector("#choose:not([hidden])", timeout=SECONDS)
    assert page.locator("#preview .missing").count() == 1


def test_a_run_is_stopped_within_a_second_and_a_second_window_sees_it(page, tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(6000, 40))).to_csv(tmp_path / "large.csv", index=False)
    drop(page, tmp_path / "large.csv")
    page.fill("#clusters", "2:40")
    page.click("#run")
    last = page.locator("#runs li").last
    last.get_by_text("running").wait_for(timeout=SECONDS)
    other = page.context.new_page()
    other.goto(page.url)
    seen = other.locator("#runs li").last
    seen.get_by_text("running").wait_for(timeout=SECONDS)
    began = time.monotonic()
    last.get_by_role("button", name="Stop").click()
    seen.get_by_text("stopped").wait_for(timeout=SECONDS)
    assert time.monotonic() - began < 5  # a second here; machines of CI are busy
    seen.get_by_role("button", name="Continue").click()
    last.get_by_text("running").wait_for(timeout=SECONDS)
    last.get_by_role("button", name="Stop").click()
    last.get_by_text("stopped").wait_for(timeout=SECONDS)


def test_keyboard_alone(page, tmp_path):
    """From the file to the labels. The dialog that opens is the operating system's: a driver sees
    that it is asked for, and answers in its place."""
    name, group = european(tmp_path)

    def tab_to(found):
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({found!r})"):
                return
        raise AssertionError(f"{found} is not reached by Tab")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "file"
    assert page.evaluate("getComputedStyle(document.getElementById('zone')).borderColor") != (
        page.evaluate("getComputedStyle(document.querySelector('section')).borderColor")
    )
    choosers = []
    page.on("filechooser", lambda chooser: choosers.append(chooser))
    for _ in range(20):  # a busy browser may miss a key
        page.keyboard.press("Space")
        page.wait_for_timeout(500)
        if choosers:
            break
    choosers[0].set_files(str(tmp_path / name))
    page.wait_for_selector("#choose:not([hidden])", timeout=SECONDS)
    tab_to("#clusters")
    page.keyboard.type(str(len(set(group))))
    page.keyboard.press("Enter")
    page.wait_for_selector("#result:not([hidden])", timeout=SECONDS)
    tab_to("[download='labels.csv']")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    labels = pd.read_csv(waiting.value.path())
    assert adjusted_rand_score(group, labels["cluster"]) > 0.9


# --- strangers --------------------------------------------------------------------------------


def answer(url, body=None, **headers):
    """Status, headers and content; with a body it is a POST."""
    try:
        with urlopen(Request(url, body, headers)) as found:
            return found.status, found.headers, found.read()
    except HTTPError as refusal:
        return refusal.code, refusal.headers, refusal.read()


def get(address, path):
    status, _, content = answer(address + path)
    assert status == 200, content
    return content


def post(address, path, body):
    """What the page gets for a request, as it sends it."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, _, content = answer(address + path, body)
    assert status in (200, 201), content
    return json.loads(content)


def test_without_the_token_or_from_elsewhere_nothing_is_answered(address):
    host = address.rsplit("/", 2)[0]
    assert answer(address)[0] == 200
    for url, headers in [
        (host + "/", {}), (host + "/wrong/", {}), (address[:-2] + "/", {}),
        (address, {"Host": "example.org"}), (address, {"Origin": "http://example.org"}),
        (address, {"Origin": "null"}), (address + "runs", {"Host": "127.0.0.1:1"}),
    ]:  # fmt: skip
        status, _, content = answer(url, **headers)
        assert (status, content) == (403, b"Refused."), (url, headers)


def test_an_upload_that_is_too_large_is_refused_with_a_sentence(tmp_path, monkeypatch):
    from mnarkmeans.app import _server

    monkeypatch.setattr(_server, "LARGEST_UPLOAD", 10)
    app, scope = _server.App(tmp_path, "token", 1), {"type": "http", "query_string": b"name=t.csv"}
    sent = mock.AsyncMock(return_value={"type": "http.request", "body": b"a,b\n1,2\n3,4\n"})
    with (
        ThreadPoolExecutor() as other,  # the driver of the browser has a loop in this one
        pytest.raises(_server.Refused, match="Use the command line") as refusal,
    ):
        other.submit(lambda: asyncio.run(app.upload(_server.Request(scope, sent)))).result()
    app.runs.close()
    assert refusal.value.status == 413
    assert not any(tmp_path.iterdir())


def test_headers_and_names_are_safe(address):
    _, headers, _ = answer(address)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    for name in ("../../evil.csv", "..%5C..%5Cevil.csv", "%2Fetc%2Fpasswd", "-o.csv", "%00x.csv"):
        kept = post(address, f"files?name={name}", b"a,b\n1,2\n")["name"]
        assert ".." not in kept
        assert not kept.startswith("-")
    for path in ("runs/1/files/../../pid", "runs/99/files/labels.csv", "runs/0/stop", "page.py"):
        assert answer(address + path)[0] in (403, 404, 405)


def test_what_a_killed_app_left_is_removed_at_the_next_start(address, folder):
    (running,) = folder.iterdir()
    process, _ = start_app(folder)
    process.kill()
    process.communicate()
    (left,) = {*folder.iterdir()} - {running}
    process, _ = start_app(folder)
    assert running.exists()
    assert not left.exists()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert {*folder.iterdir()} == {running}
