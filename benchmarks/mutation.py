"""Would the tests notice? One small change of the package at a time, and the tests that meet it.

    python -m benchmarks.mutation --mutants 100 --seed 1 [--only _solver.py core/] [--history]
    python -m benchmarks.mutation --named

A mutant is the package with one comparison, operator, constant or condition changed, in Python (by
its syntax tree) or in the C++ core (by its text; the core is built again). NAMED are mutants that
once survived. First a few cases of every test run, to learn which blocks of statements they reach.
Of a mutant, the tests that reach the changed block run, quick ones first, for --seconds of the
processor at most; the first failure kills it. A survivor is a missing test, or an
equivalent change.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
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
# Tests that meet a file of the core, by parts of their names, and those that meet any.
CORE_TESTS = {"": ("test_golden", "tests/core/", "test_exactness", "test_laws"),
              "mixture": ("test_e_step", "test_mixture", "release[mixture"),
              "hartigan": ("test_hartigan",), "predict": ("test_assign",),
              "lloyd": ("test_laws",), "loss": ("test_laws",),
              "seeding": ("test_seeding", "test_starts"),
              "first_pass": ("test_first_pass", "test_input")}  # fmt: skip
QUICK = 0.5  # seconds of a test that has its turn first
# Not asked: slow for what they meet, or about other things than results.
UNASKED = re.compile("benchmarks|performance|package|types|docs|studies|reproduction|umap|fuzz"
                     "|_r.py|test_interrupts|browser|dask_cluster|waiting|library")  # fmt: skip
CLOCKED = re.compile("within_a_second")  # on a busy machine these fail without any mutant
# Imported once, as they take longer than most tests.
PRELOADED = ("pytest", "hypothesis.extra.numpy", "pandas", "scipy.stats", "scipy.sparse", "sklearn",
             "sklearn.cluster", "sklearn.mixture", "sklearn.utils.estimator_checks", "pyarrow",
             "matplotlib.pyplot", "typer", "rich.console", "jinja2", "dask.array")  # fmt: skip
CASES = 4  # of a parametrised test that are recorded


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

HITS = """
import os

LOG, seen, now = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT), set(), {{}}


def hit(place):
    if os.getpid() not in now:  # a command, or a worker; in the process of pytest Recorder says it
        with open({log!r} + ".test") as file:
            now[os.getpid()] = file.read()
    test = now[os.getpid()]
    if (test, place) not in seen:
        seen.add((test, place))
        os.write(LOG, (test + "\\t" + place + "\\n").encode())
"""


class Block(NamedTuple):
    """A list of statements within a function; its key outlives changes elsewhere in the file."""

    key: str
    statements: list[ast.stmt]

    def holds(self, line: int) -> bool:
        return self.statements[0].lineno <= line <= self.statements[-1].end_lineno


def blocks(tree: ast.AST, path: str) -> list[Block]:
    """From outside to inside."""
    found = {}
    for function in ast.walk(tree):
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            for field in ("body", "orelse", "finalbody"):
                statements = getattr(node, field, None)
                if isinstance(statements, list) and statements:
                    begin = re.sub(r"[\s:]+", " ", ast.unparse(statements[0])[:60])
                    found[id(statements)] = Block(f"{path}:{function.name}:{begin}", statements)
    return list(found.values())


def instrument(copy: Path) -> None:
    """Every block of the package reports, once for every test, that it was reached."""
    (copy / "src/mutation_hits.py").write_text(HITS.format(log=str(copy / "hits")))
    for file in (copy / "src/mnarkmeans").rglob("*.py"):
        tree, path = ast.parse(file.read_text()), file.relative_to(copy).as_posix()
        for key, block in blocks(tree, path):
            report = f"__import__('mutation_hits').hit({key!r})"
            is_text = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
            block.insert(int(is_text), ast.parse(report).body[0])
        file.write_text(ast.unparse(ast.fix_missing_locations(tree)))


def places(mutant: Mutant) -> set[str]:
    """The block of a mutant; of one outside functions, the blocks that mention its name."""
    text = (ROOT / mutant.path).read_text()
    tree, line = ast.parse(text), text.count("\n", 0, mutant.start) + 1
    around = [block for block in blocks(tree, mutant.path) if block.holds(line)]
    if around:
        return {max(around, key=lambda block: block.statements[0].lineno).key}
    top = next(node for node in tree.body if line <= node.end_lineno)  # or its decorators
    name, found = re.search(r"(?:def |class |)(\w+)", text.splitlines()[top.lineno - 1])[1], set()
    for file in (ROOT / "src/mnarkmeans").rglob("*.py"):
        text, path = file.read_text(), file.relative_to(ROOT).as_posix()
        for key, block in blocks(ast.parse(text), path) if name in text else ():
            if name in "\n".join(text.splitlines()[block[0].lineno - 1 : block[-1].end_lineno]):
                found.add(key)
    return found


def meeting(mutant: Mutant, recorded: dict) -> list[str]:
    """Tests that reach the block; if it is newer than the record, its function or its file."""
    at, found = places(mutant), []
    while at and not found:
        begin = tuple(at)
        found = [t for t, (_, keys) in recorded.items() if any(k.startswith(begin) for k in keys)]
        at = {key.rpartition(":")[0] for key in at} - {""}
    return found


def test_of(nodeid: str) -> str:
    """The function; cases of test_results have little in common and are tests of their own."""
    return nodeid if "test_results" in nodeid else nodeid.partition("[")[0]


class Recorder:
    """A plugin of pytest: seconds of a few cases of every test, and which test it is."""

    def __init__(self, log: Path):
        self.seconds, self.log = defaultdict(list), log
        log.with_name("hits.test").write_text("")

    def pytest_collection_modifyitems(self, items):
        cases = defaultdict(list)
        for item in items:
            if not CLOCKED.search(item.nodeid) and "browser" not in item.fixturenames:
                cases[test_of(item.nodeid)].append(item)
        items[:] = [item for some in cases.values() for item in some[:: -(-len(some) // CASES)]]

    def pytest_runtest_logstart(self, nodeid):
        import mutation_hits

        test = mutation_hits.now[os.getpid()] = test_of(nodeid)
        self.log.with_name("hits.test").write_text(test)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.seconds[test_of(report.nodeid)].append(report.duration)


class Chosen:
    """A plugin of pytest: the tests of some functions, until one fails or the time is over."""

    def __init__(self, tests: dict[str, int], killer: Path, budget: float):
        self.tests, self.killer, self.budget = tests, killer, budget
        self.files = list(dict.fromkeys(test.partition("::")[0] for test in tests))

    def pytest_collection_modifyitems(self, items):
        """Turn by turn; in a turn files apart, as they have fixtures. Of a test of the first turn
        two cases, its others in the second."""
        cases, order, places = Counter(), {}, {test: i for i, test in enumerate(self.tests)}
        for item in items:
            test, file = test_of(item.nodeid), item.nodeid.partition("::")[0]
            if test in self.tests:
                turn = max(self.tests[test], int(cases[test] > 1))
                order[item] = (turn, self.files.index(file), places[test])
                cases[test] += 1
        items[:] = sorted(order, key=order.get)

    def pytest_collectreport(self, report):
        self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.killer.exists():
            self.killer.write_text(report.nodeid)

    def pytest_keyboard_interrupt(self, excinfo):
        """A mutant that calls itself cancelled; pytest says the same when the time is over."""
        if excinfo.type is KeyboardInterrupt and not self.killer.exists():
            self.killer.write_text("a call that says it was cancelled")

    def pytest_runtest_teardown(self, item):
        if sum(os.times()[:4]) > self.budget:
            item.session.shouldstop = "the time is over"


def choose(mutant: Mutant, recorded: dict) -> dict[str, int]:
    """Tests that reach the block of a mutant and their turn: quick ones, slow ones."""
    if mutant.path.endswith(".py"):
        meet, first = meeting(mutant, recorded), []
    else:
        own = CORE_TESTS.get(Path(mutant.path).stem, ())
        meet = [test for part in (*own, *CORE_TESTS[""]) for test in recorded if part in test]
        first = [test for test in meet if any(part in test for part in own)]
    meet = sorted(meet, key=lambda test: (test not in first, recorded[test][0]))
    return {test: int(recorded[test][0] > QUICK) for test in meet}


# --- running them ---------------------------------------------------------------------------------


def make_copy(folder: Path) -> Path:
    skip = shutil.ignore_patterns(".git", "build", "__pycache__", "*.png", "reproduction")
    shutil.copytree(ROOT, folder, ignore=skip)
    cmake = folder / "CMakeLists.txt"  # -O3 takes ten times as long to compile
    cmake.write_text(cmake.read_text().replace("-O3", "-O0"))
    if not list(folder.glob("src/mnarkmeans/libmnarkmeans_core.*")) and not build(folder):
        raise SystemExit("the core cannot be built")
    return folder


def build(copy: Path) -> bool:
    steps = (["cmake", "-S", ".", "-B", "build", "-DMNARKMEANS_INPLACE=ON"],
             ["cmake", "--build", "build"])  # fmt: skip
    return all(not subprocess.run(s, cwd=copy, capture_output=True).returncode for s in steps)


def run_pytest(copy: Path, limit: float, arguments: list[str], plugin: object) -> None:
    """In a process of its own, for so many seconds of the processor."""
    import resource  # of POSIX alone, as setsid

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit),) * 2)
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    os.environ["PYTHONPATH"] = str(copy / "src")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer than most tests
    with open(copy / "log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    import pytest

    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={copy}/tmp"]
    code = pytest.main([*options, *arguments], plugins=[plugin])
    if isinstance(plugin, Recorder):
        (copy / "seconds").write_text(json.dumps(plugin.seconds))
    os._exit(code)


def in_process(copy: Path, limit: float, *arguments) -> int | None:
    """The exit code of `run_pytest`; None if it waited for something for ever."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=run_pytest, args=(copy, limit, *arguments))
    process.start()
    process.join(600 + 10 * limit)
    code = process.exitcode
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # and what the tests left running
    process.join()
    return code


def record(folder: Path, known: dict) -> dict:
    """Of each test its seconds and the blocks it reaches; files that are ``known`` are not run."""
    copy = make_copy(folder / "recorded")
    instrument(copy)
    texts = {str(f.relative_to(copy)): f.read_text() for f in (copy / "tests").rglob("test_*.py")}
    hashes = {f: hashlib.sha256(t.encode()).hexdigest() for f, t in texts.items()}
    asked = {f: h for f, h in sorted(hashes.items()) if not UNASKED.search(f)}
    new = [f for f, h in asked.items() if known.get("files", {}).get(f) != h]
    tests, reached = known.get("tests", {}), defaultdict(set)
    tests = {t: at for t, at in tests.items() if t.partition("::")[0] in asked.keys() - new}
    if new:
        in_process(copy, 7200, new, Recorder(copy / "hits"))
        for line in (copy / "hits").read_text().splitlines():
            test, _, key = line.partition("\t")
            reached[test].add(key)
        for test, seconds in json.loads((copy / "seconds").read_text()).items():
            tests[test] = (sum(seconds) / len(seconds), sorted(reached[test]))
    return {"files": asked, "tests": tests}


def run_tests(copy: Path, tests: dict[str, int], budget: float, only: str = "") -> str:
    """The test that failed, or how else they ended; nothing if all is well."""
    killer = copy / "killer"
    killer.unlink(missing_ok=True)
    chosen = Chosen(tests, killer, budget)
    code = in_process(copy, 30 + 3 * budget, ["-x", *([only] if only else chosen.files)], chosen)
    if killer.exists():
        return killer.read_text()
    if code in (1, 3):  # pytest itself
        raise SystemExit((copy / "log").read_text())
    return "" if code in (0, 2, 5) else f"the end of pytest with {code}"


@contextlib.contextmanager
def mutated(mutant: Mutant, copy: Path):
    """The copy with the mutant in it, if that can be built."""
    file, original = copy / mutant.path, (ROOT / mutant.path).read_text()
    library = next(copy.glob("src/mnarkmeans/libmnarkmeans_core.*"))
    shutil.copy(library, copy / "library")

    def write(text: str) -> None:
        file.write_text(text)
        for stale in file.parent.glob(f"__pycache__/{file.stem}.*"):
            stale.unlink()  # a mutant may be as old as the original, and as long

    try:
        write(mutant.apply(original))
        yield file.suffix == ".py" or build(copy)
    finally:
        write(original)
        shutil.copy(copy / "library", library)


def judge(mutant: Mutant, copy: Path, recorded: dict, budget: float) -> str:
    """ "survived", or how it was killed; tests that fail without the mutant are not asked again."""
    tests, killer = choose(mutant, recorded), ""
    with mutated(mutant, copy) as built:
        if not built:
            return "killed: does not compile"
        pinned = {test: turn for test, turn in tests.items() if "test_results" in test}
        others = {test: turn for test, turn in tests.items() if test not in pinned}
        for some in filter(None, (pinned, others)):  # to collect all would take longer
            killer = killer or run_tests(copy, some, budget)
    if not killer:
        return "survived" if tests else "survived: no test reaches it"
    test = test_of(killer)
    if test in recorded and run_tests(copy, {test: 0}, budget, killer):
        print(f"{test} fails without a mutant", flush=True)
        del recorded[test]
        return judge(mutant, copy, recorded, budget)
    return f"killed by {killer}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.mutation")
    parser.add_argument("--mutants", type=int, default=0, help="drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="parts of paths")
    parser.add_argument("--named", action="store_true", help="the list of benchmarks/mutants.py")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for a mutant")
    parser.add_argument("--recorded", type=Path, help="what tests reach: read, mended")
    parser.add_argument("--history", action="store_true", help="append to history.csv")
    given = parser.parse_args(arguments)
    mutants = named(given.only) if given.named else []
    mutants += draw(given.mutants, given.seed, given.only)
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        known = given.recorded.read_text() if given.recorded and given.recorded.exists() else "{}"
        record_of_tests = record(Path(folder), json.loads(known))
        if given.recorded:
            given.recorded.write_text(json.dumps(record_of_tests))
        recorded = record_of_tests["tests"]
        print(f"{len(recorded)} tests pass", flush=True)
        copy = make_copy(Path(folder, "copy"))
        for mutant in mutants:
            began = time.perf_counter()
            verdicts.append(judge(mutant, copy, recorded, given.seconds))
            took = time.perf_counter() - began
            print(f"{mutant.describe()}\n    {verdicts[-1]} ({took:.0f} s)", flush=True)
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
