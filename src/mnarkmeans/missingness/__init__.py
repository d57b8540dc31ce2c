"""How values go missing: simulate it (`ampute`) and look at it (`diagnose`)."""

from ._diagnose import Diagnosis, diagnose
from ._mechanisms import ampute

__all__ = ["Diagnosis", "ampute", "diagnose"]
