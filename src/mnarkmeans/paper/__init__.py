"""The paper, and a little beyond it: one module per figure or table, all on one runner.

>>> from mnarkmeans.paper import EXPERIMENTS
>>> list(EXPERIMENTS)[:3]
['figure1', 'figure2', 'figure3']
"""

from . import (
    beyond_choice,
    beyond_lymphoma,
    beyond_proteomics,
    beyond_random,
    beyond_real,
    beyond_time,
    beyond_usoskin,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    table1,
    table2,
    table3,
)
from ._experiment import Experiment
from ._runner import run

__all__ = ["EXPERIMENTS", "Experiment", "run"]

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        figure1,
        figure2,
        figure3,
        figure4,
        figure5,
        figure6,
        figure7,
        table1,
        table2,
        table3,
        beyond_usoskin,
        beyond_choice,
        beyond_lymphoma,
        beyond_real,
        beyond_random,
        beyond_proteomics,
        beyond_time,
    )
}
