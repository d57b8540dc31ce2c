"""How values go missing: make values missing (`ampute`), and look at those of a table (`diagnose`).

`Missingness` is what fitted estimators keep as ``missingness_``: why lam and reference are what
they are. `methods_paragraph` describes a fitted k-means model in the words of a methods section.
"""

from .._missingness import Missingness
from ._ampute import ampute
from ._diagnose import Diagnosis, diagnose
from ._paragraph import methods_paragraph

__all__ = ["Diagnosis", "Missingness", "ampute", "diagnose", "methods_paragraph"]
