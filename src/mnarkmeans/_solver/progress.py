"""Tell a waiting user how a fit goes on: ``verbose`` lines and scikit-learn's callbacks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .results import StartResults

try:  # scikit-learn >= 1.9
    from sklearn.callback import with_callbacks
except ImportError:

    def with_callbacks(method: Any) -> Any:
        """Older scikit-learn has no callbacks."""
        return method


@contextmanager
def starts_progress(estimator: Any, n_starts: int) -> Iterator[Any]:
    """Yields what ``run_starts`` calls with each finished batch of starts.

    Each start is one task of the estimator's callbacks (a ``ProgressBar`` counts starts).
    """
    context = None
    if hasattr(estimator, "_skl_callbacks"):
        context = estimator._init_callback_context(max_subtasks=n_starts)
        context.call_on_fit_task_begin(estimator=estimator)
    yield _reporter(estimator, context, n_starts)
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator)


def _reporter(estimator: Any, context: Any, n_starts: int) -> Callable[[StartResults], None] | None:
    if context is None and not estimator.verbose:
        return None
    lock = threading.Lock()  # batches finish on several threads
    done = 0

    def report(results: StartResults) -> None:
        nonlocal done
        with lock:
            for loss, n_iter in zip(results.losses, results.n_iter, strict=True):
                done += 1
                if context is not None:
                    task = context.subcontext(task_name="start")
                    task.call_on_fit_task_begin(estimator=estimator)
                    task.call_on_fit_task_end(estimator=estimator)
                if estimator.verbose:
                    print(f"start {done}/{n_starts}: loss {loss:.6g} after {n_iter} iterations")

    return report


__all__ = ["starts_progress", "with_callbacks"]
