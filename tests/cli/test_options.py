"""Options in groups: declared once, the same for every verb that has them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from mnarkmeans._cv import CRITERIA
from mnarkmeans.cli import _verbs
from mnarkmeans.cli._groups import spread
from mnarkmeans.cli._options import Output, Reading, Rereading, Source, Steps, Telling
from mnarkmeans.cli._options.model import Criterion, Fitting, parse_clusters, parse_lam, parse_lams
from mnarkmeans.cli._results import table_key


def options_of(verb):
    return set(verb.__annotations__)


@pytest.mark.parametrize("verb", ["fit", "select", "compare", "diagnose"])
def test_verbs_that_read_a_table_take_all_its_options(verb):
    own = options_of(getattr(_verbs, verb))
    for group in (Reading, Steps, Telling, Output):
        assert {field.name for field in fields(group)} <= own


@pytest.mark.parametrize("verb", ["predict", "impute"])
def test_verbs_that_know_the_columns_do_not_choose_them(verb):
    own = options_of(getattr(_verbs, verb))
    assert {field.name for field in fields(Rereading)} <= own
    assert not own & {"columns", "drop", "log1p"}


def test_criteria_are_those_of_the_search():
    assert {str(name) for name in Criterion} == set(CRITERIA)


def test_groups_may_hold_groups():
    @dataclass
    class Inner:
        x: int
        y: int = 2

    @dataclass
    class Outer:
        inner: Inner
        z: int = 3

    got = []
    # Annotations are objects here: the classes are local, their names mean nothing outside.
    verb = lambda outer, w=4: got.append((outer, w))  # noqa: E731
    verb.__annotations__ = {"outer": Outer, "w": int}
    Outer.__annotations__ = {"inner": Inner, "z": int}
    command = spread(verb)
    assert options_of(command) == {"x", "y", "z", "w"}
    command(x=1, y=2, z=5, w=6)
    assert got == [(Outer(Inner(1, 2), 5), 6)]


def test_words_become_numbers():
    assert (parse_lam("auto"), parse_lam("0.5")) == ("auto", 0.5)
    assert parse_lams("0,1,10") == [0.0, 1.0, 10.0]
    assert (parse_clusters("4"), parse_clusters("2:4"), parse_clusters("5,3")) == (
        [4], [2, 3, 4], [3, 5],
    )  # fmt: skip
    assert Fitting(3).params()["n_clusters"] == 3


def test_the_reference_file_is_an_input(tmp_path):
    table, limits = tmp_path / "t.csv", tmp_path / "ref.csv"
    table.write_text("a\n1\n")
    limits.write_text("feature,value\na,0\n")
    source = Source(table, Reading(), Steps(reference=str(limits)))
    assert source.inputs == [table, limits]
    assert Source(table, Reading(), Steps(reference="min")).inputs == [table]
    before = table_key(source)
    limits.write_text("feature,value\na,1\n")
    assert table_key(source) != before, "work that was begun with other limits is not gone on with"
