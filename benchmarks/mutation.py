"""Would the tests notice? One small change at a time, drawn at random, and the suite is run.

    python -m benchmarks.mutation --mutants 100 --seed 1 [--only _solver.py core/] [--history]

A mutant is the package with one comparison, operator, constant or condition changed, in Python (by
its syntax tree) or in the C++ core (by its text; the core is built again). Tests that mention the
changed module run first, then all others; the first failure kills the mutant. Survivors are listed:
each is a missing test, or an equivalent change.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# Texts, pictures and pages are judged by eye; versions and the command's wiring change no result.
LEFT_OUT = ("_versions.py", "__main__.py", "displays/", "baselines/")
COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip
SYMBOLS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
# Of C++: what is replaced (with spaces, so that templates and pointers are left alone).
CORE = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " + ": " - ",
    " - ": " + ", " * ": " / ", " += ": " -= ", " && ": " || ",
}  # fmt: skip


class Mutant(NamedTuple):
    """Text from ``start`` to ``stop`` of a file becomes ``new``."""

    path: Path
    start: int
    stop: int
    new: str
    line: int

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.stop :]

    def describe(self) -> str:
        text = (ROOT / self.path).read_text()
        line = text.splitlines()[self.line - 1].strip()
        return (
            f"{self.path}:{self.line}: {text[self.start : self.stop]!r} -> {self.new!r} in {line}"
        )


def python_mutants(path: Path) -> list[Mutant]:
    text = (ROOT / path).read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []

    def at(line: int, column: int) -> int:
        row = text[starts[line - 1] : starts[line]]
        return starts[line - 1] + len(row.encode()[:column].decode())

    def between(left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        first = at(left.end_lineno or 0, left.end_col_offset or 0)
        place = text.find(old, first, at(right.lineno, right.col_offset))
        if place >= 0:
            found.append(Mutant(path, place, place + len(old), new, left.end_lineno or 0))

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            kind = type(node.ops[0])
            between(node.left, node.comparators[0], SYMBOLS[kind], COMPARISONS[kind])
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            is_text = any(isinstance(side, ast.JoinedStr) for side in (node.left, node.right))
            if not is_text:
                between(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            between(node.values[0], node.values[1], *words)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            first = at(node.lineno, node.col_offset)
            found.append(Mutant(path, first, first + 3, "   ", node.lineno))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            first, last = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            found.append(Mutant(path, first, last, repr(node.value + 1), node.lineno))
    return found


def core_mutants(path: Path) -> list[Mutant]:
    text = (ROOT / path).read_text()
    found = []
    for old, new in CORE.items():
        for match in re.finditer(re.escape(old), text):
            line = text.count("\n", 0, match.start()) + 1
            whole = text.splitlines()[line - 1]
            code = whole.split("//")[0]
            if old.strip() in code and not code.lstrip().startswith(("#", "*", "/*", "template")):
                found.append(Mutant(path, match.start(), match.end(), new, line))
    return found


def draw(count: int, seed: int, only: list[str]) -> list[Mutant]:
    """Every place where something can be changed is equally likely."""
    package = sorted((ROOT / "src/mnarkmeans").rglob("*.py"))
    core = sorted((ROOT / "src/core").glob("*.[hc]*"))
    every = []
    for file in [*package, *core]:
        path = file.relative_to(ROOT)
        if any(part in str(path) for part in LEFT_OUT):
            continue
        if only and not any(part in str(path) for part in only):
            continue
        every += python_mutants(path) if file.suffix == ".py" else core_mutants(path)
    return random.Random(seed).sample(every, min(count, len(every)))


def test_files(mutant: Mutant) -> tuple[list[str], list[str]]:
    """Tests that mention the module first, then all others."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    if mutant.path.suffix == ".py":
        words = [mutant.path.stem.strip("_"), mutant.path.parent.name.strip("_")]
    else:
        words = ["oracle", "golden", "_core"]
    near = [t for t in tests if any(word in t.read_text() or word in t.stem for word in words)]
    rest = [t for t in tests if t not in near]
    return tuple([str(t.relative_to(ROOT)) for t in some] for some in (near, rest))


def survives(mutant: Mutant, copy: Path, seconds: float) -> bool:
    file, original = copy / mutant.path, (ROOT / mutant.path).read_text()
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    file.write_text(mutant.apply(original))
    try:
        if file.suffix != ".py" and not build(copy):
            return False  # does not compile
        for tests in test_files(mutant):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
            try:
                done = subprocess.run(
                    command, cwd=copy, env=environment, capture_output=True, timeout=seconds
                )
            except subprocess.TimeoutExpired:
                return False
            if done.returncode not in (0, 5):
                return False
        return True
    finally:
        file.write_text(original)
        if file.suffix != ".py":
            build(copy)


def build(copy: Path) -> bool:
    steps = (["cmake", "-S", ".", "-B", "build", "-DMNARKMEANS_INPLACE=ON"],
             ["cmake", "--build", "build"])  # fmt: skip
    return all(not subprocess.run(s, cwd=copy, capture_output=True).returncode for s in steps)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="parts of paths")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="then a mutant counts as killed"
    )
    parser.add_argument("--history", action="store_true", help="append to history.csv")
    given = parser.parse_args(arguments)
    mutants = draw(given.mutants, given.seed, given.only)
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "mutated"
        skip = shutil.ignore_patterns(".git", "build", "__pycache__", "*.png", "reproduction")
        shutil.copytree(ROOT, copy, ignore=skip)
        build(copy)
        for number, mutant in enumerate(mutants, 1):
            began = time.perf_counter()
            alive = survives(mutant, copy, given.seconds)
            survivors += [mutant] * alive
            word = "SURVIVED" if alive else "killed"
            seconds = time.perf_counter() - began
            print(f"{number}/{len(mutants)} {word} {seconds:.0f} s {mutant.describe()}", flush=True)
    killed = len(mutants) - len(survivors)
    print(f"{killed} of {len(mutants)} mutants killed ({killed / len(mutants):.0%})")
    if given.history:
        from .history import append
        from .measured import Measured

        append([Measured("mutants killed", killed, len(mutants), "mutants")], "any", 1)


if __name__ == "__main__":
    main()
