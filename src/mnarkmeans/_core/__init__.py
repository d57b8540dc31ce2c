"""The only door to the compiled core (``src/core``).

library     find and load it, check that it fits, choose the instruction set
arrays      what goes in: tables, centres, sums, starts
waiting     calls that may take long, and how they are interrupted
calls       its functions, one by one
likelihood  the E-step of mixtures with gaps
"""

from .arrays import Centers, Known, Starts, Stats, Table
from .calls import (
    FirstPass,
    Seeding,
    add_rows,
    assign,
    choose_rescued,
    decide,
    distances,
    fill_rows,
    first_pass,
    hartigan,
    impute,
    last_look,
    lloyd,
    loss_of,
    pass_,
    rescue,
    seed,
    update,
)
from .library import available_levels, level, set_level

__all__ = [
    "Centers", "FirstPass", "Known", "Seeding", "Starts", "Stats", "Table", "add_rows", "assign",
    "available_levels", "choose_rescued", "decide",
    "distances", "fill_rows", "first_pass", "hartigan", "impute", "last_look", "level", "lloyd",
    "loss_of", "pass_", "rescue", "seed", "set_level", "update",
]  # fmt: skip
