"""Would the tests notice? One small change of the package at a time, and the tests that meet it.

    python -m benchmarks.mutation --mutants 100 --seed 1 [--only _solver.py core/] [--history]
    python -m benchmarks.mutation --named

A mutant is the package with one comparison, operator, constant or condition changed, in Python (by
its syntax tree) or in the C++ core (by its text; the core is built again). NAMED are mutants that
once survived. First the suite runs once, to learn how long each test takes and which functions it
calls. Of a mutant, the tests that call the changed function run, then those of files that mention
its module, quick ones first and no more than --seconds of them; the first failure kills it. A
survivor is a missing test, or an equivalent change.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import multiprocessing
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .mutants import NAMED

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("_versions.py", "__main__.py", "displays/")  # judged by eye, or without any result
COMPARISONS = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="),
               ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}  # fmt: skip
OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
# In C++ with spaces, so that templates and pointers are left alone.
CORE = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " + ": " - ",
        " - ": " + ", " * ": " / ", " += ": " -= ", " && ": " || "}  # fmt: skip
CORE_TESTS = ("tests/core/", "tests/test_golden.py", "tests/test_laws.py")


class Mutant(NamedTuple):
    """Text from ``start`` to ``stop`` of a file becomes ``new``."""

    path: str
    start: int
    stop: int
    new: str
    name: str = ""

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.stop :]

    def describe(self) -> str:
        text = (ROOT / self.path).read_text()
        number = text.count("\n", 0, self.start) + 1
        change = f"{text[self.start : self.stop]!r} -> {self.new!r}"
        line = text.splitlines()[number - 1].strip()
        return f"{self.path}:{number}: {change} ({self.name or line})"


def python_mutants(path: str) -> list[Mutant]:
    text = (ROOT / path).read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []

    def at(line: int, column: int) -> int:
        row = text[starts[line - 1] : starts[line]]
        return starts[line - 1] + len(row.encode()[:column].decode())

    def between(left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        first = at(left.end_lineno, left.end_col_offset)
        place = text.find(old, first, at(right.lineno, right.col_offset))
        if place >= 0:
            found.append(Mutant(path, place, place + len(old), new))

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            between(node.left, node.comparators[0], *COMPARISONS[type(node.ops[0])])
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            if not any(isinstance(side, ast.JoinedStr) for side in (node.left, node.right)):
                between(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            between(node.values[0], node.values[1], *words)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            first = at(node.lineno, node.col_offset)
            found.append(Mutant(path, first, first + 3, "   "))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            first, last = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            found.append(Mutant(path, first, last, repr(node.value + 1)))
    return found


def core_mutants(path: str) -> list[Mutant]:
    text, found, start = (ROOT / path).read_text(), [], 0
    for line in text.splitlines(keepends=True):
        code = line.split("//")[0]
        if not code.lstrip().startswith(("#", "*", "/*", "template")):
            for old, new in CORE.items():
                for match in re.finditer(re.escape(old), code):
                    place = start + match.start()
                    found.append(Mutant(path, place, place + len(old), new))
        start += len(line)
    return found


def draw(count: int, seed: int, only: list[str]) -> list[Mutant]:
    """Every place where something can be changed is equally likely."""
    every = []
    for file in sorted([*(ROOT / "src/mnarkmeans").rglob("*.py"), *(ROOT / "src/core").iterdir()]):
        path = file.relative_to(ROOT).as_posix()
        if any(part in path for part in LEFT_OUT) or not any(part in path for part in only or [""]):
            continue
        every += python_mutants(path) if file.suffix == ".py" else core_mutants(path)
    return random.Random(seed).sample(every, min(count, len(every)))


def named(only: list[str]) -> list[Mutant]:
    """Those of the list; the text that a mutant changes is in its file exactly once."""
    found = []
    for name, path, old, new in NAMED:
        if not any(part in path for part in only or [""]):
            continue
        text = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        if text.count(old) != 1:
            raise SystemExit(f"{path} has {old!r} {text.count(old)} times: mend benchmarks/mutants")
        found.append(Mutant(path, text.index(old), text.index(old) + len(old), new, name))
    return found


# --- which tests ----------------------------------------------------------------------------------


class Recorder:
    """A plugin of pytest: seconds of every test that passes, and the functions it calls."""

    def __init__(self, copy: Path):
        self.source, self.tests, self.called = f"{copy}/", {}, {}

    def trace(self, frame, event, argument):
        self.called[id(frame.f_code)] = frame.f_code

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            sys.settrace(None)
            codes = [
                c for c in self.called.values() if c.co_filename.startswith(self.source + "src/")
            ]
            calls = {(c.co_filename.removeprefix(self.source), c.co_qualname) for c in codes}
            self.tests[report.nodeid] = (self.seconds() - self.began, sorted(calls))

    def pytest_runtest_setup(self, item):
        self.called, self.began = {}, self.seconds()
        sys.settrace(self.trace)

    def pytest_runtest_teardown(self, item, nextitem):
        sys.settrace(None)

    @staticmethod
    def seconds() -> float:
        spent = os.times()
        return spent.user + spent.system + spent.children_user + spent.children_system


class Chosen:
    """A plugin of pytest: only some tests, in a given order; the first that fails is written."""

    def __init__(self, tests: list[str], killer: Path):
        self.place, self.killer = {test: i for i, test in enumerate(tests)}, killer

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((i for i in items if i.nodeid in self.place),
                          key=lambda item: self.place[item.nodeid])  # fmt: skip

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.killer.exists():
            self.killer.write_text(report.nodeid)


def enclosing_function(mutant: Mutant) -> str:
    """As ``co_qualname`` names it; empty outside functions."""
    text, name = (ROOT / mutant.path).read_text(), ""
    line = text.count("\n", 0, mutant.start) + 1
    inside = ast.parse(text).body
    while inside:
        node = inside.pop()
        if not (hasattr(node, "lineno") and node.lineno <= line <= node.end_lineno):
            continue
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            name += node.name + (".<locals>." if isinstance(node, ast.FunctionDef) else ".")
            inside = list(node.body)
        else:
            inside += ast.iter_child_nodes(node)
    return name.removesuffix(".<locals>.") if name.endswith(".<locals>.") else ""


def choose(mutant: Mutant, recorded: dict, budget: float) -> tuple[list[str], float]:
    """The tests for a mutant, file by file, and the seconds they take."""
    function, stem = "", Path(mutant.path).stem.strip("_")
    if mutant.path.endswith(".py"):
        function = enclosing_function(mutant)
    words = {stem, Path(mutant.path).parent.name.strip("_")} - {"mnarkmeans", "init", "core"}
    mentions = {
        file for file in {test.partition("::")[0] for test in recorded}
        if (ROOT / file).exists() and any(w in file + (ROOT / file).read_text() for w in words)
    }  # fmt: skip

    def rank(test: str) -> tuple:
        seconds, calls = recorded[test]
        file = test.partition("::")[0]
        if mutant.path.endswith(".py"):
            met = any(p == mutant.path and (name == function or not function) for p, name in calls)
            return not met, file not in mentions, seconds
        return not file.startswith(CORE_TESTS), file not in mentions, seconds

    chosen, spent = [], 0.0
    for test in sorted(recorded, key=rank):
        if all(rank(test)[:2]) or spent + recorded[test][0] > budget:
            continue
        chosen.append(test)
        spent += recorded[test][0]
    cost = defaultdict(float)  # of a file: its fixtures are made once
    for test in chosen:
        cost[test.partition("::")[0]] += recorded[test][0]
    first = {test: rank(test)[0] for test in chosen}
    chosen.sort(key=lambda t: (first[t], cost[t.partition("::")[0]], t.partition("::")[0],
                               recorded[t][0]))  # fmt: skip
    return chosen, spent


# --- running them ---------------------------------------------------------------------------------


def make_copy(folder: Path) -> Path:
    skip = shutil.ignore_patterns(".git", "build", "__pycache__", "*.png", "reproduction")
    shutil.copytree(ROOT, folder, ignore=skip)
    cmake = folder / "CMakeLists.txt"  # -O3 takes three times as long to compile
    cmake.write_text(cmake.read_text().replace("-O3", "-O1"))
    if not list(folder.glob("src/mnarkmeans/libmnarkmeans_core.*")) and not build(folder):
        raise SystemExit("the core cannot be built")
    return folder


def build(copy: Path) -> bool:
    steps = (["cmake", "-S", ".", "-B", "build", "-DMNARKMEANS_INPLACE=ON"],
             ["cmake", "--build", "build"])  # fmt: skip
    return all(not subprocess.run(s, cwd=copy, capture_output=True).returncode for s in steps)


def run_pytest(
    copy: Path, limit: float, arguments: list[str], plugin: object, recorded: Path | None
) -> None:
    """In a process of its own, for so many seconds of the processor."""
    import resource  # of POSIX alone, as setsid

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit),) * 2)
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    os.environ["PYTHONPATH"] = str(copy / "src")
    with open(copy / "log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    import pytest

    options = ["-q", "-n0", "-p", "no:cacheprovider", f"--basetemp={copy}/tmp"]
    code = pytest.main([*options, *arguments], plugins=[plugin])
    if recorded:
        recorded.write_text(json.dumps(plugin.tests))
    os._exit(code)


def in_process(copy: Path, limit: float, *arguments) -> int | None:
    """The exit code of `run_pytest`; None if it waited for something for ever."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=run_pytest, args=(copy, limit, *arguments))
    process.start()
    process.join(900 + limit)
    code = process.exitcode
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # and what the tests left running
    process.join()
    return code


def record(copies: list[Path], files: list[str]) -> dict:
    """Of each test its seconds and the functions it calls."""
    if not files:
        files = sorted(str(f.relative_to(ROOT)) for f in (ROOT / "tests").rglob("test_*.py"))

    def part(number: int) -> dict:
        copy = copies[number]
        some, out = files[number :: len(copies)], copy / "recorded.json"
        in_process(copy, 7200, some, Recorder(copy), out)
        return json.loads(out.read_text())

    with ThreadPoolExecutor(len(copies)) as pool:
        parts = list(pool.map(part, range(len(copies))))
    return {test: seen for part in parts for test, seen in part.items()}


def judge(mutant: Mutant, copy: Path, recorded: dict, budget: float) -> str:
    """ "survived", or how it was killed."""
    file, original = copy / mutant.path, (ROOT / mutant.path).read_text()
    tests, seconds = choose(mutant, recorded, budget)
    killer = copy / "killer"
    killer.unlink(missing_ok=True)
    is_core = not mutant.path.endswith(".py")

    def write(text: str) -> bool:
        file.write_text(text)
        for stale in file.parent.glob(f"__pycache__/{file.stem}.*"):
            stale.unlink()
        return not is_core or build(copy)

    try:
        if not write(mutant.apply(original)):
            return "killed: does not compile"
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        if not files:
            return "survived: no test meets it"
        for some in filter(None, (files[:2], files[2:])):  # importing many files takes a while
            code = in_process(copy, 30 + 4 * seconds, ["-x", *some], Chosen(tests, killer), None)
            if killer.exists():
                return f"killed by {killer.read_text()}"
            if code not in (0, 5):
                return f"killed: the tests ended with {code}"
        return f"survived {len(tests)} tests"
    finally:
        write(original)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.mutation")
    parser.add_argument("--mutants", type=int, default=0, help="drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="parts of paths")
    parser.add_argument("--tests", nargs="*", default=[], help="files of tests; all by default")
    parser.add_argument("--named", action="store_true", help="the list of benchmarks/mutants.py")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for a mutant")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--recorded", type=Path, help="what the tests call: read, else written")
    parser.add_argument("--history", action="store_true", help="append to history.csv")
    given = parser.parse_args(arguments)
    mutants = named(given.only) if given.named else []
    mutants += draw(given.mutants, given.seed, given.only)
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["pytest", "pandas", "scipy.stats", "scipy.sparse", "sklearn.cluster"]
    )
    verdicts, free = [], queue.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        copies = list(pool.map(make_copy, [Path(folder, str(i)) for i in range(given.jobs)]))
        if given.recorded and given.recorded.exists():
            recorded = json.loads(given.recorded.read_text())
        else:
            recorded = record(copies, given.tests)
            if given.recorded:
                given.recorded.write_text(json.dumps(recorded))
        print(f"{len(recorded)} tests pass in {sum(s for s, _ in recorded.values()):.0f} s")
        for copy in copies:
            free.put(copy)

        def one(mutant: Mutant) -> str:
            copy, began = free.get(), time.perf_counter()
            verdict = judge(mutant, copy, recorded, given.seconds)
            free.put(copy)
            took = time.perf_counter() - began
            print(f"{mutant.describe()}\n    {verdict} ({took:.0f} s)", flush=True)
            return verdict

        verdicts = list(pool.map(one, mutants))
    killed = sum(verdict.startswith("killed") for verdict in verdicts)
    print(f"{killed} of {len(mutants)} mutants killed ({killed / len(mutants):.0%})")
    if given.history:
        from .measured import Measured, append_history

        append_history([Measured("mutants killed", killed, len(mutants), "all mutants")], 1)
    return int(
        any(v.startswith("survived") for v, m in zip(verdicts, mutants, strict=True) if m.name)
    )


if __name__ == "__main__":
    sys.exit(main())
