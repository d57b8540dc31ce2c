"""How values go missing: simulate it (`ampute`) and look at it (`diagnose`)."""

from mnarkmeans.missingness._diagnose import Diagnosis, diagnose
from mnarkmeans.missingness._mechanisms import ampute

__all__ = ["Diagnosis", "ampute", "diagnose"]
