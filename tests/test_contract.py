"""Defaults are those of the documentation, and refusals name what was found."""

import ast
import importlib
import inspect
import math
import re

import numpy as np
import pytest

from mnarkmeans import read_table
from mnarkmeans.datasets import make_gaussian_clusters

MODULES = ["", ".dask", ".metrics", ".missingness", ".datasets", ".tl", ".baselines", ".tables",
           ".displays"]  # fmt: skip


def documented():
    """Of public names and the methods of public classes."""
    for name in MODULES:
        module = importlib.import_module("mnarkmeans" + name)
        for public in module.__all__:
            one = getattr(module, public)
            methods = vars(one).values() if inspect.isclass(one) else ()
            for part in (one, *methods):
                if (inspect.isfunction(part) or inspect.isclass(part)) and part.__doc__:
                    yield pytest.param(part, id=part.__qualname__)


@pytest.mark.parametrize("part", {param.id: param for param in documented()}.values())
def test_defaults_are_those_of_the_documentation(part):
    said = re.findall(r"^ *(\w+(?:, \w+)*) :(?:[^\n]|\n +(?=default))*?default=(\S+)$",
                      part.__doc__, re.MULTILINE)  # fmt: skip
    parameters = inspect.signature(part).parameters if said else {}
    for names, text in said:
        try:
            value = math.nan if text == "nan" else ast.literal_eval(text)
        except (SyntaxError, ValueError):  # words
            continue
        for name in names.split(", "):
            assert repr(parameters[name].default) == repr(value), name


def test_a_table_of_the_paper_is_what_is_made_unless_asked_otherwise():
    whole = make_gaussian_clusters(mechanism=None, random_state=0)
    assert whole.data.shape == (300, 2)
    assert np.linalg.norm(whole.centers[0] - whole.centers[1]) == pytest.approx(3.0)
    within = whole.data - whole.centers[whole.target]
    assert (len(whole.centers), within.std()) == (3, pytest.approx(1.0, abs=0.1))


@pytest.mark.parametrize("delimiter", ["ab", "é", '"', "\n"])
def test_a_delimiter_is_one_ordinary_character(delimiter, tmp_path):
    (tmp_path / "table.csv").write_text("id,a,b\nr,1,2\ns,3,4\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must be one character"):
        read_table(tmp_path / "table.csv", delimiter=delimiter)
