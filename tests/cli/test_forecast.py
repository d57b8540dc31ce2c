"""Time left of `compare`: from tries on a few rows, put right by what was seen."""

import numpy as np
import pytest

pytest.importorskip("typer")

from mnarkmeans.cli import _forecast
from mnarkmeans.cli._forecast import Forecast, forecast


class Clock:
    """Time passes only where a method works: a hundredth of a second for each row."""

    def __init__(self, each=0.01):
        self.now, self.each = 0.0, each

    def perf_counter(self):
        return self.now

    def run(self, name, rows):
        self.now += self.each * rows.shape[0]


def test_a_try_on_a_few_rows_tells_the_whole(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_forecast, "time", clock)
    found = forecast(["zero", "knn"], np.zeros((1000, 2)), 3, clock.run)
    assert found.seconds["zero"] == pytest.approx(10.0)
    assert found.seconds["knn"] == pytest.approx(0.4 + 0.8 * (1000**2 - 40**2) / (120**2 - 40**2))
    assert found.left(["zero", "knn"]) == "about 73 s left"


def test_methods_without_time_for_a_try_are_not_guessed(monkeypatch):
    clock = Clock(each=0.07)
    monkeypatch.setattr(_forecast, "time", clock)
    found = forecast(["zero", "mean", "mice"], np.zeros((1000, 2)), 3, clock.run)
    assert list(found.seconds) == ["zero"]
    assert found.left(["zero", "mean", "mice"]) == "about 70 s left and 2 not guessed"
    assert found.left(["mean"]) == ""


def test_what_was_seen_puts_the_guess_right():
    found = Forecast({"zero": 1.0, "mice": 10.0})
    found.finished("zero", 3.0)
    assert found.left(["mice"]) == "about 30 s left"


def test_a_limit_bounds_the_guess():
    found = Forecast({"zero": 1.0, "mice": 500.0}, limit=20.0)
    assert found.left(["zero", "mice"]) == "about 21 s left, 40 s at most"
    assert Forecast({}, limit=20.0).left(["zero", "mice"]) == "40 s at most"


def test_what_is_around_a_method_is_no_part_of_it():
    found = Forecast({"zero": 1.0, "mean": 1.0, "mice": 10.0}, limit=20.0)
    found.finished("zero", 1.0, whole=4.0)
    assert found.left(["mean", "mice"]) == "about 17 s left, 46 s at most"


def test_a_small_table_is_done_before_a_forecast_is():
    assert forecast(["zero"], np.zeros((300, 2)), 3, None).seconds == {}
