"""Tell a waiting user how a fit goes on: ``verbose`` lines and scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .results import StartResults

try:  # scikit-learn >= 1.9
    from sklearn.callback import with_callbacks
except ImportError:

    def with_callbacks(method: Any) -> Any:
        """Older scikit-learn has no callbacks."""
        return method


class StartsProgress:
    """What ``run_starts`` tells of its starts: when they end, and then what became of them."""

    def __init__(self, estimator: Any, context: Any, n_starts: int):
        self.estimator, self.context, self.n_starts = estimator, context, n_starts
        self._ended = self._finished = 0

    def ended(self, count: int) -> None:
        """So many starts, of all, have come to their ends."""
        while self._ended < count:
            self._ended += 1
            if self.context is not None:
                task = self.context.subcontext(task_name="start")
                task.call_on_fit_task_begin(estimator=self.estimator)
                task.call_on_fit_task_end(estimator=self.estimator)

    def finished(self, results: StartResults) -> None:
        """The next ones, in their order."""
        for loss, n_iter in zip(results.losses, results.n_iter, strict=True):
            self._finished += 1
            if self.estimator.verbose:
                told = f"start {self._finished}/{self.n_starts}: loss {loss:.6g}"
                print(f"{told} after {n_iter} iterations")
        self.ended(self._finished)


@contextmanager
def starts_progress(estimator: Any, n_starts: int) -> Iterator[StartsProgress]:
    """Each start is one task of the estimator's callbacks (a ``ProgressBar`` counts starts)."""
    context = None
    if hasattr(estimator, "_skl_callbacks"):
        context = estimator._init_callback_context(max_subtasks=n_starts)
        context.call_on_fit_task_begin(estimator=estimator)
    yield StartsProgress(estimator, context, n_starts)
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator)


__all__ = ["StartsProgress", "starts_progress", "with_callbacks"]
