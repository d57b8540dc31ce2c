"""Models are saved to the files that the command line writes; `mnarkmeans.load` reads them."""

from __future__ import annotations

from pathlib import Path

from sklearn.utils.validation import check_is_fitted


class Saving:
    """`save`, for every estimator."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a folder: model.json and model.npz, numbers and words only.

        `mnarkmeans.load` and the command line read it. A search, batches and fits on a cluster
        become the MNARKMeans that they end with; labels of the fitted rows are not stored.

        Parameters
        ----------
        path : path
            The folder; it is made if it is not there, and a model in it is replaced.
        """
        check_is_fitted(self)
        # On use: model files lie above the estimators, and are only needed when asked for.
        from .._io.model_files import save_model

        Path(path).mkdir(parents=True, exist_ok=True)
        save_model(self, path)
