"""The figures and tables of the paper, one module each; published numbers in published/.

_procedure    the paper's procedure as its authors run it
_runner       runs experiments; finished repetitions are never computed again
_shared       designs, scores, tables and figures that several experiments need
"""

from . import figure1, figure2, figure3, figure4, figure5, figure6, figure7, table1, table2, table3
from ._runner import Experiment, run, write_pages

__all__ = ["EXPERIMENTS", "Experiment", "run", "write_pages"]

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        figure1, figure2, figure3, figure4, figure5, figure6, figure7, table1, table2, table3
    )
}  # fmt: skip
