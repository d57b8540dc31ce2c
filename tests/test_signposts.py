"""The map of the code, and every signpost in comments and guides, name what exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
PACKAGE = ROOT / "src" / "mnarkmeans"
CORE = ROOT / "src" / "core"
PLACES = [ROOT, CORE, PACKAGE, ROOT / "src", ROOT / "tests"]
FILE = r"[\w./]+\.(?:h|cpp|py)"

pytestmark = pytest.mark.skipif(not CORE.exists(), reason="the sources of the core are not here")


def find(name, beside=ROOT):
    """The file of that name, from the root, the core, the package or one's own folder."""
    return next((at / name for at in [*PLACES, beside] if (at / name).is_file()), None)


def test_the_map_shows_every_folder_and_module_and_no_other():
    table = GUIDE.read_text().split("<!-- map -->")[1].split("<!-- end of map -->")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    there = {p.name for p in PACKAGE.glob("*.py")} - {"__init__.py"}
    there |= {f"{p.parent.name}/" for p in PACKAGE.glob("*/__init__.py")}
    there |= {p.name for p in CORE.iterdir()}
    assert sorted(shown) == sorted(there)


PACKAGES = sorted(
    p.parent.relative_to(PACKAGE).as_posix() for p in PACKAGE.glob("*/**/__init__.py")
)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_opens_with_a_line_for_each_of_its_modules(name):
    folder = PACKAGE / name
    opening = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    shown = re.findall(r"^(\w+)  +\S", opening, re.M)
    there = {p.stem for p in folder.glob("*.py")} - {"__init__"}
    there |= {p.parent.name for p in folder.glob("*/__init__.py")}
    assert sorted(shown) == sorted(there)


def test_what_a_file_of_the_core_includes_stands_below_it():
    shown = re.findall(r"`(\w+\.(?:h|cpp))`", GUIDE.read_text().split("src/core`. What")[1])
    for path in CORE.iterdir():
        for name in re.findall(r'#include "(\w+\.h)"', path.read_text()):
            assert shown.index(path.name) < shown.index(name), (path.name, name)


def sources():
    return [*CORE.iterdir(), *PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), GUIDE]


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_that_are_named_exist(path):
    """In backticks, in brackets, or as a path of a test."""
    text = path.read_text()
    named = re.findall(rf"`({FILE})(?:::\w+)?`|\(({FILE})\)|\b(tests/{FILE})", text)
    missing = {name for names in named for name in names if name and not find(name, path.parent)}
    assert not missing


def test_what_the_guide_says_is_in_a_file_is_in_it():
    text = GUIDE.read_text()
    pairs = re.findall(rf"`(\w+)` in `({FILE})`", text)
    pairs += [(name, file) for file, name in re.findall(rf"`({FILE})`, `(\w+)`", text)]
    pairs += [(name, file) for file, name in re.findall(rf"`({FILE})::(\w+)`", text)]
    assert len(pairs) > 10
    assert [pair for pair in pairs if not defines(pair[1], pair[0])] == []


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    """A | that is not meant to end a cell would cut it."""
    tables = re.findall(r"(?:^\|.*\n)+", GUIDE.read_text(), re.M)
    assert len(tables) >= 3
    for table in tables:
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()} == {3}


def defines(file_name, name):
    """Not only in a comment: a function, a class, a constant or a field of that name."""
    code = re.sub(r"//[^\n]*|#[^\n]*|\"{3}.*?\"{3}", "", find(file_name).read_text(), flags=re.S)
    ways = rf"\b(?:def|class|struct|enum)\s+{name}\b|^{name}\b|\b{name}\s*[=({{:;,]"
    return re.search(ways, code, re.M) is not None
