"""Model files that hold numbers and words only.

A model is a folder with two files:

    model.json   format, version, the estimator's parameters and results, feature names, notes of
                 the caller, the SHA-256 of model.npz, and a SHA-256 of all of this
    model.npz    the arrays, without pickles

Reading runs no code from the files: JSON and plain arrays go in, an estimator is built from them
and every shape is checked. A checksum tells damage and careless edits; it does not tell who wrote
the model.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__

FORMAT = "mnarkmeans-model"
FORMAT_VERSION = 1
JSON_NAME, ARRAYS_NAME = "model.json", "model.npz"
FITTED_ARRAYS = ("cluster_centers_", "reference_", "loss_path_", "start_losses_")
FITTED_NUMBERS = ("lam_", "inertia_", "n_iter_")


class ModelFileError(ValueError):
    """A model file that cannot be used, and what to do about it."""


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    estimator : fitted MNARKMeans (its `labels_` are not stored)
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
    estimator : MNARKMeans
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
    arrays = {f"fitted/{name}": np.asarray(getattr(estimator, name)) for name in FITTED_ARRAYS}
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        params[name] = _split(value, f"params/{name}", arrays)
    names = feature_names or getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"V{j + 1}" for j in range(arrays["fitted/cluster_centers_"].shape[1])]
    document: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "written_by": f"mnarkmeans {__version__}",
        "estimator": "MNARKMeans",
        "params": params,
        "fitted": {name: _split(getattr(estimator, name), name, arrays) for name in FITTED_NUMBERS},
        "feature_names": [str(name) for name in names],
        "extra": _split(extra or {}, "extra", arrays),
    }
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    document["arrays"] = {"file": ARRAYS_NAME, "sha256": _sha256(packed.getvalue())}
    document["sha256"] = _document_sum(document)
    (folder / ARRAYS_NAME).write_bytes(packed.getvalue())
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / JSON_NAME).write_text(text + "\n", encoding="utf-8")


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
        With one sentence on what is wrong with the file.

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
    document = _read_document(file)
    arrays = _read_arrays(file.parent / ARRAYS_NAME, document)
    try:
        return _assemble(document, arrays)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ModelFileError(f"{file} lacks a part of the model ({error}); fit it again") from error


def _read_document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelFileError(f"{file} may not be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{file} is not a whole model file (cut short or damaged); copy it or fit it again"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} is not a mnarkmeans model")
    version = document.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{file} has no valid format version (found {version!r})")
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
    if not file.is_file():
        raise ModelFileError(f"{file}, the other half of the model, is not there; copy it as well")
    content = file.read_bytes()
    if _sha256(content) != document["arrays"]["sha256"]:
        raise ModelFileError(
            f"{file} does not belong to its {JSON_NAME} (cut short, damaged or of another model); "
            "copy both again or fit the model again"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"{file} holds something else than numbers; fit it again") from error


def _assemble(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> SavedModel:
    from .._estimators.kmeans import MNARKMeans

    params = {k: _join(v, arrays) for k, v in document["params"].items()}
    known = MNARKMeans().get_params(deep=False)
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ModelFileError(f"the model has an unknown parameter {unknown[0]!r}; fit it again")
    estimator = MNARKMeans(**params)
    for name in FITTED_ARRAYS:
        setattr(estimator, name, arrays[f"fitted/{name}"])
    for name in FITTED_NUMBERS:
        setattr(estimator, name, _join(document["fitted"][name], arrays))
    names = [str(name) for name in document["feature_names"]]
    centers, reference = estimator.cluster_centers_, estimator.reference_
    p = len(names)
    if centers.ndim != 2 or centers.shape[1] != p or np.shape(reference) not in ((), (p,)):
        raise ModelFileError(
            f"the model's centres have shape {centers.shape} for {p} columns; fit it again"
        )
    if not (np.isfinite(centers).all() and np.isfinite(reference).all()):
        raise ModelFileError("the model's centres are not all finite numbers; fit it again")
    estimator.n_features_in_ = p
    return SavedModel(estimator, names, _join(document["extra"], arrays), document)


def _split(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The JSON part of a value; arrays move to `arrays` under their path."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiub":
            value = [str(v) for v in value.ravel()]
        else:
            arrays[name] = value
            return {"$array": name}
    if isinstance(value, dict):
        return {str(k): _split(v, f"{name}/{k}", arrays) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_split(v, f"{name}/{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"$number": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(f"{name} is a {type(value).__name__}, which a model file cannot hold")


def _join(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The inverse of `_split`."""
    if isinstance(value, dict):
        if set(value) == {"$array"}:
            return arrays[value["$array"]]
        if set(value) == {"$number"}:
            return float(value["$number"])
        return {k: _join(v, arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [_join(v, arrays) for v in value]
    return value


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _document_sum(document: dict[str, Any]) -> str:
    rest = {k: v for k, v in document.items() if k != "sha256"}
    return _sha256(json.dumps(rest, sort_keys=True, ensure_ascii=False).encode())
