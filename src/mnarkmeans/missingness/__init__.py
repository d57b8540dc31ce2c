"""How values go missing: simulate it (`ampute`) and look at it (`diagnose`).

_mechanisms  `ampute`: ways for a value to go missing
_diagnose    `diagnose`: how many gaps, where, and near which values
_summaries   plain counts of a table with gaps
_cells       missing shares by cluster and feature, and against magnitude
_strength    how likely each mechanism is, clusters given
_reading     from these to a word and to advice
"""

from ._diagnose import Diagnosis, diagnose
from ._mechanisms import ampute

__all__ = ["Diagnosis", "ampute", "diagnose"]
