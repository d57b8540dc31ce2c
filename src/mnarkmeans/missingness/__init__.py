"""How values go missing: simulate it (`ampute`) and look at it."""

from mnarkmeans.missingness._mechanisms import ampute

__all__ = ["ampute"]
