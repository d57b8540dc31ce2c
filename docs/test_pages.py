"""Code blocks of every page and examples of every docstring run: `pytest docs`.

Blocks of one page run in order, in one namespace and one empty folder. Shell blocks are read line
by line, and the mnarkmeans commands in them are run. ``<!-- not run: reason -->`` right before a
block leaves it out.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

import mnarkmeans

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")])
PAGES = [page for page in PAGES if "_build" not in page.parts and "auto_examples" not in page.parts]

BLOCK = re.compile(
    r"(?P<skip><!-- not run: .+? -->\s*\n)?^(?P<indent> *)```(?P<kind>python|bash|console|shell)\n"
    r"(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


def blocks(page):
    for found in BLOCK.finditer(page.read_text(encoding="utf8")):
        if not found["skip"]:
            yield found["kind"], inspect.cleandoc("\n" + found["code"])


def commands(text):
    """The mnarkmeans commands of a shell block, as lists of arguments."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in line.removeprefix("$ ").split("&&"):
            words = shlex.split(part, comments=True)
            if words[:1] == ["mnarkmeans"]:
                assert not {"|", ">", ";"} & set(words), f"only plain commands can be run: {line}"
                yield words[1:]


def run_command(arguments, monkeypatch):
    """In this process, so that nothing is imported twice."""
    from mnarkmeans.__main__ import main

    monkeypatch.setattr(sys, "argv", ["mnarkmeans", *arguments])
    try:
        status = main()
    except SystemExit as end:
        status = end.code
    assert not status, f"mnarkmeans {shlex.join(arguments)} ended with {status}"


def with_code(page):
    return any(kind == "python" or list(commands(text)) for kind, text in blocks(page))


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::PendingDeprecationWarning"
)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if with_code(page)],
)
def test_code_blocks_of(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for number, (kind, text) in enumerate(blocks(page)):
        if kind == "python":
            if any(f"import {name}" in text for name in ("anndata", "scanpy", "polars", "skops")):
                for name in re.findall(r"^import (\w+)", text, re.MULTILINE):
                    pytest.importorskip(name)
            exec(compile(text, f"{page.name}, block {number}", "exec"), namespace)
        else:
            for arguments in commands(text):
                run_command(arguments, monkeypatch)
    plt.close("all")


# --- docstrings -------------------------------------------------------------------------------


def public_modules():
    yield "mnarkmeans"
    for module in pkgutil.walk_packages(mnarkmeans.__path__, "mnarkmeans."):
        if not any(part.startswith("_") for part in module.name.split(".")[1:]):
            yield module.name


def public_objects():
    """(name, object) of everything a public module lists in __all__."""
    for name in public_modules():
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # an extra that is not installed
        for attribute in getattr(module, "__all__", ()):
            thing = getattr(module, attribute)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{name}.{attribute}", thing


OBJECTS = dict(public_objects())


@pytest.mark.parametrize("name", list(public_modules()))
def test_doctests_of(name, tmp_path, monkeypatch):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # examples leave their files there
    things = {f"{name} itself": module.__doc__}
    things |= {n: t.__doc__ for n, t in OBJECTS.items() if n.rpartition(".")[0] == name}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    parser = doctest.DocTestParser()
    for label, text in things.items():
        if text:
            runner.run(parser.get_doctest(text, dict(vars(module)), label, module.__file__, 0))
    assert not runner.summarize().failed


def test_every_public_name_has_a_docstring_and_what_users_call_an_example():
    for name, thing in OBJECTS.items():
        text = inspect.getdoc(thing) or ""
        assert text, f"{name} has no docstring"
        if inspect.isfunction(thing) or "Parameters\n---" in text:
            assert ">>>" in text, f"{name} has no example"
