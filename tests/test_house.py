"""Rules of the house that a machine can check: sizes of modules and functions, parameters."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from core_source import Function
from core_source import functions as core_functions

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


def too_much(source):
    """The functions of a C++ source that are too long, or take too much."""
    return [
        function.name
        for function in core_functions(source)
        if function.lines > MOST_LINES_OF_A_FUNCTION or function.parameters > MOST_PARAMETERS
    ]


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_keeps_the_same_measures(path):
    assert too_much(path.read_text(encoding="utf-8")) == []


def test_the_core_is_seen_whole():
    """Function by function, however it is written; what only looks like one is none."""
    found = list(core_functions(SNIPPET))
    assert found == [
        Function("pointer", 2, 0),
        Function("Thing", 2, 2),
        Function("operator()", 1, 0),
        Function("many", 9, 4),
        Function("[&]", 9, 0),
        Function("long_one", 0, MOST_LINES_OF_A_FUNCTION + 1),
        Function("declared", 3, 0),
    ]
    assert too_much(SNIPPET) == ["many", "[&]", "long_one"]


SNIPPET = (
    """
// void comment(int a, int b) {
#define MACRO(a, b) { a, \\
                      b
namespace outer { namespace {
constexpr int NUMBERS[] = {1, least(2, 3)};
template <class T, int N = least(1, 2)> struct Thing : Base<T, N> {
    void (*pointer)(void* context, int job);
    explicit Thing(const T& a, int b = 1) : a(a), parts{b, 2}, text("){") {
        if (b > 0) run(a, b);
    }
    INLINE bool operator()(int c) const { return c == '{'; }
};
template <class Rows>
INLINE auto many(const Rows& rows, Map<int, int> b, void (*c)(int, int), int d, int e, int f,
                 int g, int h, int i) -> int {
    auto inner = [&](int a, int b, int c, int d, int e, int f, int g, int h, int i) {
        return a;
    };
}
void long_one() {
"""
    + "    step();\n" * MOST_LINES_OF_A_FUNCTION
    + """}
extern int declared(int a, int b, int c);
}}  // namespace
"""
)
