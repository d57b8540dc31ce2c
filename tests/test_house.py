"""Rules of the house that a machine can check: sizes of modules and functions, parameters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src/mnarkmeans", "build_backend", "benchmarks", "tests", "docs")
MODULES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
CORE = sorted((ROOT / "src" / "core").glob("*"))
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 350, 60, 8

# Functions of the public contract whose parameters users write one by one, as for a constructor.
FOR_USERS = {"mnar_kmeans", "make_gaussian_clusters"}


def name(path):
    return str(path.relative_to(ROOT))


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


@pytest.mark.parametrize("path", [*MODULES, *CORE], ids=name)
def test_a_module_is_read_at_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_function_is_read_at_one_glance(path):
    for function in functions(path):
        first = function.body[0]
        documented = ast.get_docstring(function) is not None
        begin = first.end_lineno + 1 if documented else first.lineno
        assert function.end_lineno - begin < MOST_LINES_OF_A_FUNCTION, function.name


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_what_belongs_together_travels_together(path):
    for function in functions(path):
        if function.name in {"__init__", *FOR_USERS}:
            continue
        given = function.args
        names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        assert len([n for n in names if n not in ("self", "cls")]) <= MOST_PARAMETERS, function.name
