"""Rules of the house that a machine can check: sizes of modules and functions, parameters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mnarkmeans

PACKAGE = Path(mnarkmeans.__file__).parent
FOLDERS = ("_io", "_selection", "cli", "dask", "displays", "report")
MODULES = sorted(path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py"))
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 350, 60, 8


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_is_read_at_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    for function in functions(path):
        first = function.body[0]
        documented = ast.get_docstring(function) is not None
        begin = first.end_lineno + 1 if documented else first.lineno
        assert function.end_lineno - begin < MOST_LINES_OF_A_FUNCTION, function.name


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_what_belongs_together_travels_together(path):
    for function in functions(path):
        if function.name == "__init__":  # scikit-learn's way: one parameter each
            continue
        given = function.args
        names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        assert len([n for n in names if n not in ("self", "cls")]) <= MOST_PARAMETERS, function.name
