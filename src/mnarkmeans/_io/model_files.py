"""Model files that hold numbers and words only.

A model is a folder with two files:

    model.json   format, version, the estimator's parameters and results, feature names, notes of
                 the caller, the SHA-256 of model.npz, and a SHA-256 of all of this
    model.npz    the arrays, without pickles

Reading runs no code from the files: JSON and plain arrays go in, every field is checked
(`model_checks`) and an estimator is built from them. A checksum tells damage and careless edits; it
does not tell who wrote the model.

Versions: 2 has all results of the fit under "fitted", and lam_ may be an array; 1 had arrays of the
fit in the archive only.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._data.frames import unnamed
from .._estimators.kmeans import MNARKMeans
from .._estimators.mixture import MNARMixture
from .._solver.starts import STARTS
from . import atomic
from .mixture_checks import checked_mixture, fitted_mixture
from .model_checks import FITTED, checked_model, checked_names
from .plain_values import ARRAY, join, pack, split, unpack

FORMAT = "mnarkmeans-model"
FORMAT_VERSION = 2
JSON_NAME, ARRAYS_NAME = "model.json", "model.npz"
ARRAYS_OF_VERSION_1 = ("cluster_centers_", "reference_", "loss_path_", "start_losses_")


class ModelFileError(ValueError):
    """A model file that cannot be used, and what to do about it."""


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    estimator : fitted MNARKMeans (its `labels_` are not stored) or MNARMixture
    feature_names : the columns, in the order of the centres
    extra : what the caller stored beside it, arrays included
    info : the whole JSON document
    """

    estimator: Any
    feature_names: list[str]
    extra: dict[str, Any]
    info: dict[str, Any]


def save_model(
    estimator: Any,
    folder: str | Path,
    *,
    feature_names: list[str] | None = None,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write `model.json` and `model.npz` into an existing folder.

    Parameters
    ----------
    estimator : MNARMixture, MNARKMeans or another model of centres
        A fitted estimator.
    folder : path
        Where to write.
    feature_names : list of str, optional
        Names of the columns; by default `feature_names_in_` or V1, V2, ...
    extra : dict, optional
        Anything JSON can hold, and arrays, to be returned by `load_model`.

    Examples
    --------
    >>> import tempfile
    >>> from mnarkmeans import MNARKMeans
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit([[0.0, 1.0], [5.0, 6.0], [5.0, 7.0]])
    >>> folder = tempfile.mkdtemp()
    >>> save_model(model, folder)
    >>> load_model(folder).estimator.predict([[0.0, 1.0], [5.0, 6.5]]).tolist() == [
    ...     int(model.labels_[0]), int(model.labels_[1])]
    True
    """
    folder = Path(folder)
    arrays: dict[str, np.ndarray] = {}
    names = feature_names or getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = unnamed(estimator.n_features_in_)
    is_mixture = isinstance(estimator, MNARMixture)
    if not is_mixture:
        estimator = as_kmeans(estimator)
    params = estimator.get_params(deep=False)
    if not isinstance(params["random_state"], (int, type(None))):
        params["random_state"] = None  # a generator has gone on since
    for name, value in params.items():
        if isinstance(value, (list, tuple, np.ndarray)):
            params[name] = np.asarray(value, dtype=float)
    fitted = (
        fitted_mixture(estimator)
        if is_mixture
        else {name: getattr(estimator, name) for name in FITTED}
    )
    try:
        document: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "written_by": f"mnarkmeans {__version__}",
            "estimator": "MNARMixture" if is_mixture else "MNARKMeans",
            "params": split(params, "params", arrays),
            "fitted": split(fitted, "fitted", arrays),
            "feature_names": [str(name) for name in names],
            "extra": split(extra or {}, "extra", arrays),
        }
    except ValueError as error:
        raise ModelFileError(str(error)) from error
    packed = pack(arrays)
    document["arrays"] = {"file": ARRAYS_NAME, "sha256": _sha256(packed)}
    document["sha256"] = _document_sum(document)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    # Half of a new model beside half of the old one would be neither.
    atomic.write_together({folder / JSON_NAME: f"{text}\n".encode(), folder / ARRAYS_NAME: packed})


def as_kmeans(model: Any) -> MNARKMeans:
    """Any model of centres as MNARKMeans, told what it was told: a search with its choice, batches
    and blocks on a cluster as if fitted whole.
    """
    if type(model) is MNARKMeans:
        return model
    told = model.get_params(deep=False)
    # A search was told no lam; what else has no word for the algorithm moves no single rows.
    told = {"lam": model.lam_, "algorithm": "lloyd"} | told
    told |= {"n_clusters": len(model.cluster_centers_), "n_init": len(model.start_losses_)}
    if isinstance(told["init"], str) and told["init"] not in STARTS:
        del told["init"]  # k-means|| is for clusters
    plain = MNARKMeans(**{name: told[name] for name in MNARKMeans().get_params() if name in told})
    for name in (*FITTED, "labels_", "missingness_", "n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(plain, name, getattr(model, name))
    return plain


def load(path: str | Path) -> Any:
    """Read a model written by `save`, or by `mnarkmeans fit` or `select` on the command line.

    Parameters
    ----------
    path : path
        The folder, or the model.json inside it.

    Returns
    -------
    model : MNARKMeans or MNARMixture
        Fitted, without the labels of its rows. Loading runs no code from the files.

    Warns
    -----
    UserWarning
        If the command line prepared its table (logarithm, scaling): `predict` expects values that
        are prepared likewise.

    Examples
    --------
    >>> import tempfile
    >>> import mnarkmeans
    >>> X = [[0.0, 1.0], [0.2, float("nan")], [5.0, 6.0], [5.1, 6.2]]
    >>> model = mnarkmeans.MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> folder = tempfile.mkdtemp()
    >>> model.save(folder)
    >>> bool((mnarkmeans.load(folder).predict(X) == model.labels_).all())
    True
    """
    saved = load_model(path)
    if saved.feature_names != unnamed(len(saved.feature_names)):
        saved.estimator.feature_names_in_ = np.array(saved.feature_names, dtype=object)
    steps = saved.extra.get("prepared")
    if steps and isinstance(steps, list):
        warnings.warn(
            f"This model was fitted on prepared values ({'; '.join(map(str, steps))}): bring X "
            "into that form first, or use mnarkmeans predict on the command line, which does.",
            UserWarning,
            stacklevel=2,
        )
    return saved.estimator


def load_model(path: str | Path) -> SavedModel:
    """Read a model from its folder or its `model.json`.

    Parameters
    ----------
    path : path
        The folder, or the JSON file inside it.

    Returns
    -------
    SavedModel
        The estimator, its feature names and what was stored beside it.

    Raises
    ------
    ModelFileError
        With one sentence on what is wrong with the file, and where.

    Examples
    --------
    >>> load_model("no/such/folder")
    Traceback (most recent call last):
    ...
    mnarkmeans._io.model_files.ModelFileError: there is no model at no/such/folder
    """
    path = Path(path)
    file = path / JSON_NAME if path.is_dir() else path
    if not file.is_file():
        inside = f" (no {JSON_NAME} inside)" if path.is_dir() else ""
        raise ModelFileError(f"there is no model at {path}{inside}")
    try:
        document = _read_document(file)
        arrays = _read_arrays(file, document)
        document = _as_written_today(document)
        names = checked_names(join(document.get("feature_names"), "feature_names", arrays))
        params = join(document.get("params"), "params", arrays)
        fitted = join(document.get("fitted"), "fitted", arrays)
        estimator = _checked(document.get("estimator"), params, fitted, len(names))
        extra = join(document.get("extra"), "extra", arrays)
        if not isinstance(extra, dict):
            raise ValueError(f"extra must be an object, found {extra!r:.40}")
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError(f"{file} has brackets within brackets without end") from None
    except ValueError as error:
        told = " ".join(str(error).split())  # an array that was found is shown in several lines
        raise ModelFileError(f"{file}: {told}; fit the model again") from error
    return SavedModel(estimator, names, extra, document)


def _checked(kind: Any, params: Any, fitted: Any, p: int) -> Any:
    if kind != "MNARMixture":
        return checked_model(kind, params, fitted, p)
    if not isinstance(params, dict) or not isinstance(fitted, dict):
        raise ValueError("params and fitted must be objects")
    return checked_mixture(params, fitted, p)


def _read_document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelFileError(f"{file} may not be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelFileError(
            f"{file} is not a whole model file (cut short or damaged); copy it or fit it again"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} is not a mnarkmeans model")
    version = document.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{file} has no valid format_version (found {version!r:.40})")
    if version > FORMAT_VERSION:
        writer = str(document.get("written_by", "a newer mnarkmeans"))[:60]
        raise ModelFileError(
            f"{file} has format version {version}, written by {writer}; this version reads up to "
            f"{FORMAT_VERSION}: run pip install --upgrade mnarkmeans"
        )
    if document.get("sha256") != _document_sum(document):
        raise ModelFileError(f"{file} was changed after it was written; fit the model again")
    return document


def _read_arrays(file: Path, document: dict[str, Any]) -> dict[str, np.ndarray]:
    told = document.get("arrays")
    if not isinstance(told, dict) or not isinstance(told.get("sha256"), str):
        raise ModelFileError(f"{file}: arrays must name a checksum, found {told!r:.40}; fit again")
    file = file.parent / ARRAYS_NAME
    if not file.is_file():
        raise ModelFileError(f"{file}, the other half of the model, is not there; copy it as well")
    content = file.read_bytes()
    if _sha256(content) != told["sha256"]:
        raise ModelFileError(
            f"{file} does not belong to its {JSON_NAME} (cut short, damaged or of another model); "
            "copy both again or fit the model again"
        )
    try:
        return unpack(content)
    except ValueError as error:
        raise ModelFileError(f"{file}: {error}; fit the model again") from error


def _as_written_today(document: dict[str, Any]) -> dict[str, Any]:
    """Older versions in the form of this one."""
    fitted = document.get("fitted")
    if document["format_version"] == 1 and isinstance(fitted, dict):
        arrays = {name: {ARRAY: f"fitted/{name}"} for name in ARRAYS_OF_VERSION_1}
        return document | {"fitted": fitted | arrays}
    return document


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _document_sum(document: dict[str, Any]) -> str:
    rest = {k: v for k, v in document.items() if k != "sha256"}
    # Half a character is told by its place later on; here it only needs a sum.
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return _sha256(text.encode(errors="surrogatepass"))
