"""The paper, and a little beyond it: one module per figure or table, all on one runner.

>>> from mnarkmeans.paper import EXPERIMENTS
>>> list(EXPERIMENTS)[:3]
['figure1', 'figure2', 'figure3']

__main__           python -m mnarkmeans.paper
_experiment        what an experiment is
_runner            runs experiments; finished repetitions are never redone
_store             their results on disk
_procedure         the paper's procedure as its authors run it
_kmeans            the whole k-means that it starts from
_ours              the package with its defaults
_shared            designs, scores and words of several experiments
_drawing           figures without a screen
_docs              pages for docs/reproduction
figure1            three clusters in the plane
figure2            errors against the strength of MNAR0
figure3            many features that do not matter, all methods
figure4            time against n and p
figure5            error and instability against lam
figure6            the theory's lam
figure7            Usoskin, single cells
table1             iterations until the loss settles
table2             the final loss over 100 starts
table3             Lymphoma
beyond_choice      figure 3 with our choices of lam
beyond_lymphoma    table 3 with our choices of lam
beyond_usoskin     Usoskin with 0 kept as "not expressed"
beyond_real        the two real tables, all methods of this package
beyond_random      values missing at random
beyond_proteomics  values lost below a detection limit
beyond_time        processor time of every method
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
