"""Defaults are those of the documentation."""

import ast
import importlib
import inspect
import math
import re

import pytest

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
