"""Options: described once, the same for every verb that has them."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module

import pytest
import typer

from mnarkmeans.cli._options import (
    Reading,
    Source,
    Steps,
    parse_cluster_range,
    parse_clusters,
    parse_lam,
    parse_lams,
)
from mnarkmeans.cli._source import table_key


def options_of(verb):
    return set(getattr(import_module(f"mnarkmeans.cli.{verb}"), verb).__annotations__)


@pytest.mark.parametrize("verb", ["fit", "select", "compare", "diagnose"])
def test_verbs_that_read_a_table_take_all_its_options(verb):
    for group in (Reading, Steps, Source):
        assert {field.name for field in fields(group)} <= options_of(verb)


@pytest.mark.parametrize("verb", ["predict", "impute"])
def test_verbs_that_use_a_model_do_not_choose_columns_or_steps(verb):
    assert {field.name for field in fields(Reading)} <= options_of(verb)
    assert not options_of(verb) & {"columns", "drop", "log1p"}


def test_words_become_numbers():
    assert (parse_lam("auto"), parse_lam("0.5")) == ("auto", 0.5)
    assert parse_lams("0,1,10") == [0.0, 1.0, 10.0]
    assert parse_clusters("4") == 4
    assert [parse_cluster_range(text) for text in ("4", "2:4", "5,3")] == [[4], [2, 3, 4], [3, 5]]
    for parse, text in ((parse_lam, "1,2"), (parse_lams, "-1"), (parse_cluster_range, "0:2")):
        with pytest.raises(typer.BadParameter, match="must be"):
            parse(text)


def test_the_reference_file_is_an_input_and_part_of_the_key(tmp_path):
    table, limits = tmp_path / "t.csv", tmp_path / "ref.csv"
    table.write_text("a\n1\n")
    limits.write_text("feature,value\na,0\n")
    source = Source(data=table, reference=str(limits))
    assert source.inputs == [table, limits]
    assert Source(data=table, reference="min").inputs == [table]
    before = table_key(source)
    limits.write_text("feature,value\na,1\n")
    assert table_key(source) != before, "finished work belongs to other limits"
