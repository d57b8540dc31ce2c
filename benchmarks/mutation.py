"""Would the tests notice? One small change of the package at a time, and the tests that meet it.

    python -m benchmarks.mutation --mutants 100 --seed 1 [--only _solver.py core/] [--history]
    python -m benchmarks.mutation --named

A mutant is the package with one comparison, operator, number or condition changed, in Python or in
the C++ core (which is built again). NAMED are mutants that once survived. First a few cases of
every test run, to learn which blocks of statements they reach. Of a mutant, the tests that reach
the changed block run, quick ones first, for a minute of the processor; the first failure kills it.
The core is then also asked under the address sanitizer, as every night (.ci/nightly). A mutant that
equivalent.md argues to change no result is counted apart. Any other survivor is a missing test.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import keyword
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
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from .mutants import NAMED

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("_versions.py", "__main__.py", "displays/")  # judged by eye, or without any result
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
         "+": "-", "-": "+", "*": "/", "/": "*", "and": "or", "or": "and"}  # fmt: skip
# In C++ with spaces around, so that templates and pointers are left alone.
CORE_SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "+": "-", "-": "+",
              "*": "/", "+=": "-=", "&&": "||"}  # fmt: skip
# Which tests meet the core is not recorded: these do, first those that name the changed file.
CORE_TESTS = re.compile("golden|tests/core/|exactness|laws|starts|test_input|mixture|estimator|"
                        "edges|mini-batches")  # fmt: skip
WORDS = set(keyword.kwlist) - {"None", "True", "False"}
SECONDS = 60.0  # of the processor, for the tests of a mutant
QUICK = 0.5  # seconds of a test that has its turn first
CASES = 4  # of a parametrised test that are recorded
# Not asked: slow for what they meet, about other things than results, or against the clock.
UNASKED = re.compile("benchmarks|performance|package|types|docs|studies|reproduction|umap|fuzz|"
                     "interrupts|browser|dask_cluster|waiting|library|within_a_second")  # fmt: skip
ALWAYS = "defaults_are_those_of_the_documentation"  # is asked of every mutant of Python
# What .ci/nightly asks of the core that watches itself, and how it ends where that sees something.
INSTRUMENTED = [".ci/instrumented", "address", sys.executable, "-m", "pytest", "-q", "-x",
                "-p", "no:cacheprovider", "tests/core", "tests/test_golden.py"]  # fmt: skip
SANITIZED = re.compile("AddressSanitizer|runtime error:")
DATA = Path(os.environ.get("MNARKMEANS_DATA", ROOT.parent / "shared" / "data"))
# Imported once, as they take longer than most tests.
PRELOADED = ("hypothesis.extra.numpy", "pandas", "scipy.stats", "scipy.sparse", "sklearn.cluster",
             "sklearn.mixture", "sklearn.utils.estimator_checks", "pyarrow", "matplotlib.pyplot",
             "typer", "rich.console", "jinja2", "dask.array", "pytest")  # fmt: skip


class Mutant(NamedTuple):
    """Text from ``start`` to ``stop`` of a file becomes ``new``."""

    path: str
    text: str
    start: int
    stop: int
    new: str
    name: str = ""

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    def apply(self) -> str:
        return self.text[: self.start] + self.new + self.text[self.stop :]

    def describe(self) -> str:
        change = f"{self.text[self.start : self.stop]!r} -> {self.new!r}"
        where = self.name or self.text.splitlines()[self.line - 1].strip()
        return f"{self.path}:{self.line}: {change} ({where})"


def argued(mutant: Mutant) -> str:
    """Why no result shows it: the last column of a line of equivalent.md. A line names the file, a
    piece of its code with the change inside, and what that becomes (or "any": whatever it does)."""
    for line in (ROOT / "benchmarks/equivalent.md").read_text().splitlines():
        cells = [cell.strip("` ") for cell in line.replace("\\", "").strip("| ").split(" | ")]
        if len(cells) != 4 or not mutant.path.endswith(cells[0]):
            continue
        _, code, becomes, why = cells
        for found in re.finditer(re.escape(code), mutant.text):
            if found.start() <= mutant.start and mutant.stop <= found.end():
                before = mutant.text[found.start() : mutant.start]
                after = mutant.text[mutant.stop : found.end()]
                if becomes in ("any", before + mutant.new + after):
                    return why
    return ""


def python_mutants(path: str) -> list[Mutant]:
    text, found, operand, before = (ROOT / path).read_text(), [], False, ""
    starts = [0, 0]  # of the lines, which are counted from 1
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        new, word = None, token.string
        if operand and word in SWAPS:  # behind an operand: no *args, no sign
            new = SWAPS[word]
        elif word == "not" and not operand and before != "is":  # nor that of `a not in b`
            new = "   "
        elif token.type == tokenize.NUMBER:
            number = ast.literal_eval(word)
            new = repr(number + 1) if number + 1 != number else None  # 1e300 is the same
        if new is not None:
            place = starts[token.start[0]] + token.start[1]
            found.append(Mutant(path, text, place, place + len(word), new))
        operand = word in (")", "]") or token.type in (tokenize.NUMBER, tokenize.STRING)
        operand |= token.type == tokenize.NAME and word not in WORDS
        before = word
    return found


def core_mutants(path: str) -> list[Mutant]:
    text, found, start = (ROOT / path).read_text(), [], 0
    for line in text.splitlines(keepends=True):
        code = line.split("//")[0]
        if not code.lstrip().startswith(("#", "*", "/*", "template")):
            for match in re.finditer(r"(?<= )([<>=+*&-]+)(?= )", code):
                if new := CORE_SWAPS.get(match[0]):
                    place = start + match.start()
                    found.append(Mutant(path, text, place, place + len(match[0]), new))
        start += len(line)
    return found


def draw(count: int, seed: int, only: list[str]) -> list[Mutant]:
    """Every place where something can be changed is equally likely."""
    every = []
    for file in sorted([*(ROOT / "src/mnarkmeans").rglob("*.py"), *(ROOT / "src/core").iterdir()]):
        path = file.relative_to(ROOT).as_posix()
        if not any(part in path for part in LEFT_OUT) and any(part in path for part in only):
            every += python_mutants(path) if file.suffix == ".py" else core_mutants(path)
    return random.Random(seed).sample(every, min(count, len(every)))


def named(only: list[str]) -> list[Mutant]:
    """Those of the list; the text that a mutant changes is in its file exactly once."""
    found = []
    for name, path, old, new in NAMED:
        text = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        if text.count(old) != 1:
            raise SystemExit(f"{path} has {old!r} {text.count(old)} times: mend benchmarks/mutants")
        if any(part in path for part in only):
            place = text.index(old)
            found.append(Mutant(path, text, place, place + len(old), new, name))
    return found


# --- which tests ----------------------------------------------------------------------------------

HITS = """
import os

log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
test, seen = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0], set()


def hit(place):
    if (test, place) not in seen:
        seen.add((test, place))
        os.write(log, (test + "\\t" + place + "\\n").encode())
"""


def blocks(text: str) -> list[tuple[int, int]]:
    """First and last line of each list of statements within a function."""
    found, lines = set(), text.splitlines()
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    for node in (node for function in functions for node in ast.walk(function)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if not isinstance(block, list) or not block:
                continue
            is_text = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
            first = block[int(is_text and len(block) > 1)]
            line = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
            begins = not lines[line - 1][: first.col_offset].strip(" @")
            if begins and not lines[line - 1].lstrip().startswith("elif "):
                found.add((line, block[-1].end_lineno))
    return sorted(found)


def instrument(copy: Path) -> None:
    """Every block of the package reports, once for every test, that it was reached."""
    (copy / "src/mutation_hits.py").write_text(HITS.format(log=str(copy / "hits")))
    for file in (copy / "src/mnarkmeans").rglob("*.py"):
        text, path = file.read_text(), file.relative_to(copy).as_posix()
        lines = text.splitlines()
        for first, _ in reversed(blocks(text)):
            indent = re.match(" *", lines[first - 1])[0]
            lines.insert(first - 1, f"{indent}__import__('mutation_hits').hit('{path}:{first}')")
        file.write_text("\n".join(lines) + "\n")


def places(mutant: Mutant) -> set[str]:
    """The block of a mutant; of one outside functions, the blocks that mention its name."""
    around = [first for first, last in blocks(mutant.text) if first <= mutant.line <= last]
    if around:
        return {f"{mutant.path}:{max(around)}"}
    top = next(n for n in ast.parse(mutant.text).body if mutant.line <= n.end_lineno)
    line, found = mutant.text.splitlines()[top.lineno - 1], set()
    name = re.search(r"(?:def |class |)(\w+)", line)[1]
    for file in (ROOT / "src/mnarkmeans").rglob("*.py"):
        text, path = file.read_text(), file.relative_to(ROOT).as_posix()
        for first, last in blocks(text) if name in text else ():
            if name in "\n".join(text.splitlines()[first - 1 : last]):
                found.add(f"{path}:{first}")
    return found


def test_of(nodeid: str) -> str:
    """The function; cases of test_results have little in common and are tests of their own."""
    return nodeid if "test_results" in nodeid else nodeid.partition("[")[0]


class Recorder:
    """A plugin of pytest: seconds of a few cases of every test, and which test it is.

    What a fixture reaches counts for all tests that ask for it.
    """

    def __init__(self):
        self.seconds, self.fixtures = defaultdict(list), defaultdict(set)

    def pytest_collection_modifyitems(self, items):
        cases = defaultdict(list)
        for item in items:
            if not UNASKED.search(item.nodeid) and "browser" not in item.fixturenames:
                cases[test_of(item.nodeid)].append(item)
                for definitions in item._fixtureinfo.name2fixturedefs.values():
                    self.fixtures[test_of(item.nodeid)].add(fixture_name(definitions[-1]))
        items[:] = [item for some in cases.values() for item in some[:: -(-len(some) // CASES)]]

    def pytest_runtest_logstart(self, nodeid):
        import mutation_hits

        mutation_hits.test = nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        import mutation_hits

        before, mutation_hits.test = mutation_hits.test, fixture_name(fixturedef)
        try:
            return (yield)
        finally:
            mutation_hits.test = before

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.seconds[test_of(report.nodeid)].append(report.duration)

    def pytest_unconfigure(self):
        told = {t: (min(s), sorted(self.fixtures[t])) for t, s in self.seconds.items()}
        Path("recorded").write_text(json.dumps(told))


def fixture_name(definition) -> str:
    return f"{definition.baseid}:{definition.argname}"


def record(copy: Path) -> dict[str, tuple[float, list[str]]]:
    """Of each test its seconds and the blocks it reaches."""
    instrument(copy)
    if in_process(copy, 7200, ["tests"], Recorder()) not in (0, 1):
        raise SystemExit((copy / "log").read_text())
    reached = defaultdict(set)
    for line in (copy / "hits").read_text().splitlines():
        test, _, place = line.partition("\t")
        reached[test_of(test)].add(place)
    tests = json.loads((copy / "recorded").read_text())
    return {
        test: (seconds, sorted(reached[test].union(*(reached[f] for f in fixtures))))
        for test, (seconds, fixtures) in tests.items()
    }


def choose(mutant: Mutant, recorded: dict) -> dict[str, int]:
    """Tests that reach the block of a mutant and their turn: quick ones, slow ones."""
    own = Path(mutant.path).stem
    if mutant.path.endswith(".py"):
        at = places(mutant)
        meet = [t for t, (_, reached) in recorded.items() if at & {*reached} or ALWAYS in t]
    else:
        meet = [test for test in recorded if CORE_TESTS.search(test)]
        meet.sort(key=lambda test: own not in test)
    slow = {test: int(recorded[test][0] > QUICK) for test in meet}
    return dict(sorted(slow.items(), key=lambda item: item[1]))


class Chosen:
    """A plugin of pytest: some tests, in their turns, until one fails or the time is over."""

    def __init__(self, tests: dict[str, int], killer: Path):
        self.tests, self.killer = tests, killer
        self.files = list(dict.fromkeys(test.partition("::")[0] for test in tests))

    def pytest_collection_modifyitems(self, items):
        """In a turn file by file, as they have fixtures. Of a test of the first turn two cases, its
        others in the second."""
        cases, order, tests = Counter(), {}, list(self.tests)
        for item in items:
            test, file = test_of(item.nodeid), item.nodeid.partition("::")[0]
            if test in self.tests:
                turn = max(self.tests[test], int(cases[test] > 1))
                order[item] = (turn, self.files.index(file), tests.index(test))
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
        if sum(os.times()[:4]) > SECONDS:
            item.session.shouldstop = "the time is over"


# --- running them ---------------------------------------------------------------------------------


def make_copy(folder: Path) -> Path:
    skip = shutil.ignore_patterns(".git", "build", "__pycache__", "*.png", "reproduction")
    shutil.copytree(ROOT, folder, ignore=skip)
    cmake = folder / "CMakeLists.txt"  # -O3 takes ten times as long to compile
    cmake.write_text(re.sub("-O3|-O1 -g", "-O0", cmake.read_text()))
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
    os.environ["MNARKMEANS_DATA"] = str(DATA)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer than most tests
    with open("log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={copy}/tmp"]
    os._exit(pytest.main([*options, *arguments], plugins=[plugin]))


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


def run_tests(copy: Path, tests: dict[str, int], only: str = "") -> str:
    """The test that failed, or how else they ended; nothing if all is well."""
    killer = copy / "killer"
    killer.unlink(missing_ok=True)
    chosen = Chosen(tests, killer)
    code = in_process(copy, 30 + 3 * SECONDS, ["-x", *([only] if only else chosen.files)], chosen)
    if killer.exists():
        return killer.read_text()
    if code in (1, 3):  # pytest itself
        raise SystemExit((copy / "log").read_text())
    return "" if code in (0, 2, 5) else f"the end of pytest with {code}"


@contextlib.contextmanager
def mutated(mutant: Mutant, copy: Path):
    """The copy with the mutant in it, if that can be built."""
    file = copy / mutant.path
    library = next(copy.glob("src/mnarkmeans/libmnarkmeans_core.*"))
    shutil.copy(library, copy / "library")

    def write(text: str) -> None:
        file.write_text(text)
        for stale in file.parent.glob(f"__pycache__/{file.stem}.*"):
            stale.unlink()  # a mutant may be as old as the original, and as long

    original = file.read_text()
    try:
        write(mutant.apply())
        yield file.suffix == ".py" or build(copy)
    finally:
        write(original)
        shutil.copy(copy / "library", library)


def sanitizer(mutant: Mutant, copy: Path) -> str:
    """What it sees, if anything: reads and writes beyond an array, undefined behaviour."""
    with mutated(mutant, copy):
        done = subprocess.run(INSTRUMENTED, cwd=copy, capture_output=True, text=True)
    return "the address sanitizer" if SANITIZED.search(done.stdout + done.stderr) else ""


def judge(mutant: Mutant, copy: Path, recorded: dict) -> str:
    """ "survived", or how it was killed; tests that fail without the mutant are not asked again."""
    tests, killer = choose(mutant, recorded), ""
    with mutated(mutant, copy) as built:
        if not built:
            return "killed: does not compile"
        for pinned in (True, False):  # to collect all would take longer
            some = {
                test: turn for test, turn in tests.items() if ("test_results" in test) == pinned
            }
            killer = killer or (some and run_tests(copy, some)) or ""
    if not killer and mutant.path.endswith((".h", ".cpp")):
        killer = sanitizer(mutant, copy)
    if not killer:
        return "survived" if tests else "survived: no test reaches it"
    test = test_of(killer)
    if test in recorded and run_tests(copy, {test: 0}, killer):
        print(f"{test} fails without a mutant", flush=True)
        del recorded[test]
        return judge(mutant, copy, recorded)
    return f"killed by {killer}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.mutation")
    parser.add_argument("--mutants", type=int, default=0, help="drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[""], help="parts of paths")
    parser.add_argument("--named", action="store_true", help="the list of benchmarks/mutants.py")
    parser.add_argument("--recorded", type=Path, help="keep here what tests reach, if not there")
    parser.add_argument("--history", action="store_true", help="append to history.csv")
    given = parser.parse_args(arguments)
    mutants = named(given.only) if given.named else []
    mutants += draw(given.mutants, given.seed, given.only)
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        if given.recorded and given.recorded.exists():
            recorded = json.loads(given.recorded.read_text())
        else:
            recorded = record(make_copy(Path(folder, "recorded")))
        if given.recorded:
            given.recorded.write_text(json.dumps(recorded))
        print(f"{len(recorded)} tests pass", flush=True)
        copy = make_copy(Path(folder, "copy"))
        for mutant in mutants:
            began = time.perf_counter()
            why = argued(mutant)
            verdicts.append(f"equivalent: {why}" if why else judge(mutant, copy, recorded))
            took = time.perf_counter() - began
            print(f"{mutant.describe()}\n    {verdicts[-1]} ({took:.0f} s)", flush=True)
    killed = sum(verdict.startswith("killed") for verdict in verdicts)
    equivalent = sum(verdict.startswith("equivalent") for verdict in verdicts)
    others = len(mutants) - equivalent
    print(f"{killed} of {len(mutants)} mutants killed, {equivalent} equivalent: ", end="")
    print(f"{killed / max(others, 1):.1%} of the {others} others")
    if given.history:
        from .measured import Measured, append_history

        append_history([Measured("mutants killed", killed, others, "of those with an effect")], 1)
    return int(
        any(v.startswith("survived") for v, m in zip(verdicts, mutants, strict=True) if m.name)
    )


if __name__ == "__main__":
    sys.exit(main())
