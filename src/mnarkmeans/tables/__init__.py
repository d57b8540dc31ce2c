"""Tables of laboratories: reading and preparing them."""

from ._batch import BatchCenter

__all__ = ["BatchCenter"]
