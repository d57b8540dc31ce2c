"""Model files that hold numbers and words only.

A model is a folder with two files:

    model.json   format, version, the estimator's parameters and results, feature names, notes of
                 the caller, the SHA-256 of model.npz, and a SHA-256 of all of this
    model.npz    the arrays, without pickles

Reading runs no code from the files: JSON and plain arrays go in, every field is checked
and an estimator is built from them. A checksum reveals damage and careless edits; it
does not prove who wrote the model.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import __version__
from ._em.em import LEAST_FREEDOM, MOST_FREEDOM
from ._em.mechanisms import MECHANISMS
from ._io import join, pack, split, unpack, write_together
from ._kmeans import MNARKMeans
from ._mixture import MixtureMissingness, MNARMixture
from ._solver import STARTS, effective_threads
from ._validation import check_missing_values, is_named, unnamed

FORMAT = "mnarkmeans-model"
FORMAT_VERSION = 2
JSON_NAME, ARRAYS_NAME = "model.json", "model.npz"
PARTS = ("params", "fitted", "extra")
# Numbers by name, and their axes: k clusters, p features, * any length.
FITTED = {
    "cluster_centers_": "kp", "reference_": "p", "loss_path_": "*", "start_losses_": "*",
    "lam_": "", "inertia_": "", "n_iter_": "",
}  # fmt: skip
FITTED_MIXTURE = {
    "weights_": "k", "means_": "kp", "covariances_": "kp", "reference_": "p", "freedom": "",
    "temper_": "", "lower_bounds_": "*",
}  # fmt: skip
NOT_NUMBERS = ("converged_", "has_gaps", "missingness_")  # of a mixture
LOWEST = dict.fromkeys(["lam_", "inertia_", "n_iter_", "weights_", "temper_"], 0.0)


class ModelFileError(ValueError):
    """A model file that cannot be used, and what to do about it."""


class SavedModel(NamedTuple):
    """What a model file holds."""

    estimator: Any  # fitted MNARKMeans (its `labels_` are not stored) or MNARMixture
    feature_names: list[str]  # in the order of the centres
    extra: dict[str, Any]  # what the caller stored beside it, arrays included


# --- writing --------------------------------------------------------------------------------------


def save_model(
    estimator: Any,
    folder: str | Path,
    *,
    feature_names: list[str] | None = None,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write `model.json` and `model.npz` into an existing folder.

    `extra`: anything JSON can hold, and arrays, to be returned by `load_model`.
    """
    folder = Path(folder)
    arrays: dict[str, np.ndarray] = {}
    unnamed_features = unnamed(estimator.n_features_in_)
    names = feature_names or getattr(estimator, "feature_names_in_", unnamed_features)
    is_mixture = isinstance(estimator, MNARMixture)
    estimator = estimator if is_mixture else as_kmeans(estimator)
    params = estimator.get_params(deep=False)
    if not isinstance(params["random_state"], (int, type(None))):
        params["random_state"] = None  # a generator has gone on since
    for name, value in params.items():
        if is_named(value):  # lam or reference for each feature, as they were aligned with X
            params[name] = np.asarray(getattr(estimator, f"{name}_"), dtype=float)
        elif isinstance(value, (list, tuple, np.ndarray)):
            params[name] = np.asarray(value, dtype=float)
    fields = (*FITTED_MIXTURE, *NOT_NUMBERS) if is_mixture else FITTED
    fitted = {name: getattr(estimator, name, None) for name in fields}
    if is_mixture:
        fitted["freedom"] = estimator._parameters().freedom
        fitted["lower_bounds_"] = np.array(estimator.lower_bounds_)
        fitted["has_gaps"] = estimator._mechanism.has_gaps
        fitted["missingness_"] = estimator.missingness_._asdict()
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
    write_together({folder / JSON_NAME: f"{text}\n".encode(), folder / ARRAYS_NAME: packed})


def as_kmeans(model: Any) -> MNARKMeans:
    """Any model of centres as MNARKMeans with its parameters: a search with its choice, batches
    and blocks on a cluster as if fitted whole."""
    if type(model) is MNARKMeans:
        return model
    # A search has no lam; estimators without the parameter use Lloyd's algorithm.
    params = {"lam": model.lam_, "algorithm": "lloyd"} | model.get_params(deep=False)
    params |= {"n_clusters": len(model.cluster_centers_), "n_init": len(model.start_losses_)}
    if isinstance(params["init"], str) and params["init"] not in STARTS:
        del params["init"]  # k-means|| is for clusters
    plain = MNARKMeans()
    plain.set_params(**{name: params[name] for name in plain.get_params() if name in params})
    for name in (*FITTED, "labels_", "missingness_", "n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(plain, name, getattr(model, name))
    return plain


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _document_sum(document: dict[str, Any]) -> str:
    rest = {key: value for key, value in document.items() if key != "sha256"}
    return _sha256(json.dumps(rest, sort_keys=True, ensure_ascii=False).encode())


# --- reading --------------------------------------------------------------------------------------


def load(path: str | Path) -> MNARKMeans | MNARMixture:
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

    A ModelFileError says in one sentence what is wrong with the file, and where.
    """
    path = Path(path)
    file = path / JSON_NAME if path.is_dir() else path
    if not file.is_file():
        inside = f" (no {JSON_NAME} inside)" if path.is_dir() else ""
        raise ModelFileError(f"there is no model at {path}{inside}")
    try:
        document = _read_document(file)
        arrays = _read_arrays(file.parent / ARRAYS_NAME, document)
        names = _checked_names(document.get("feature_names"))
        parts = {name: join(document.get(name), name, arrays) for name in PARTS}
        for name, part in parts.items():
            if not isinstance(part, dict):
                raise ValueError(f"{name} must be an object, found {part!r:.40}")
        params, fitted, extra = parts.values()
        estimator = _checked_model(document.get("estimator"), params, fitted, len(names))
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(f"{file} cannot be read: {error.strerror}") from error
    except RecursionError:
        raise ModelFileError(f"{file} is nested too deeply") from None
    except ValueError as error:
        reason = " ".join(str(error).split())  # an array that was found is shown in several lines
        raise ModelFileError(f"{file}: {reason}; fit the model again") from error
    return SavedModel(estimator, names, extra)


def _read_document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFileError(
            f"{file} is not a whole model file (cut short or damaged); copy it or fit it again"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{file} is not a mnarkmeans model")
    version = document.get("format_version")
    if type(version) is not int or version < FORMAT_VERSION:
        raise ValueError(f"there is no valid format_version (found {version!r:.40})")
    if version > FORMAT_VERSION:
        writer = str(document.get("written_by", "a newer mnarkmeans"))[:60]
        raise ModelFileError(
            f"{file} has format version {version}, written by {writer}; this version reads up to "
            f"{FORMAT_VERSION}: run pip install --upgrade mnarkmeans"
        )
    if document.get("sha256") != _document_sum(document):
        raise ValueError("the file was changed after it was written")
    return document


def _read_arrays(file: Path, document: dict[str, Any]) -> dict[str, np.ndarray]:
    named = document.get("arrays")
    if not isinstance(named, dict) or not isinstance(named.get("sha256"), str):
        raise ValueError(f"arrays must name a checksum, found {named!r:.40}")
    if not file.is_file():
        raise ModelFileError(f"{file}, the second file of the model, is missing; copy it as well")
    content = file.read_bytes()
    if _sha256(content) != named["sha256"]:
        raise ModelFileError(
            f"{file} does not belong to its {JSON_NAME} (cut short, damaged or of another model); "
            "copy both again or fit the model again"
        )
    return unpack(content)


# --- checks ---------------------------------------------------------------------------------------
# What a fit needs is checked when the model is fitted again; here what a prediction needs.


def _checked_names(names: Any) -> list[str]:
    """Names of the features: words, each once."""
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise ValueError(f"feature_names must be a list of words, found {names!r:.40}")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"feature_names has {name!r:.40} more than once")
    return names


def _checked_model(kind: Any, params: dict[str, Any], fitted: dict[str, Any], p: int) -> Any:
    """A fitted estimator for p features, from its parameters and results."""
    if kind not in ("MNARKMeans", "MNARMixture"):
        raise ValueError(f"estimator must be 'MNARKMeans' or 'MNARMixture', found {kind!r:.40}")
    model: Any = MNARKMeans() if kind == "MNARKMeans" else MNARMixture()
    unknown = sorted(set(params) - set(model.get_params(deep=False)))
    if unknown:
        raise ValueError(f"params has the unknown parameter {unknown[0]!r:.40}")
    try:
        model.set_params(**params)._check_parameters()
        check_missing_values(model.missing_values)
        effective_threads(model.n_jobs)
    except (TypeError, ValueError) as error:
        raise ValueError(f"params: {str(error).rstrip('.')}") from error
    if kind == "MNARMixture":
        _set_mixture(model, fitted, p)
    else:
        per_feature = {"lam_": "p" if isinstance(fitted.get("lam_"), np.ndarray) else ""}
        _set_numbers(model, fitted, FITTED | per_feature, {"k": model.n_clusters, "p": p})
    model.n_features_in_ = p
    return model


def _set_numbers(model: Any, fitted: dict[str, Any], axes: dict[str, str], sizes: Any) -> None:
    for name, shape in axes.items():
        if name not in fitted:
            raise ValueError(f"fitted lacks {name}")
        low = LOWEST.get(name, -math.inf)
        setattr(model, name, _numbers(name, fitted[name], *map(sizes.get, shape), low=low))


def _numbers(
    name: str, value: Any, *shape: int | None, low: float = -math.inf, high: float = math.inf
) -> Any:
    """Finite numbers of a shape, in which None is any length: a float array, or a number."""
    array = np.asarray(value if isinstance(value, (np.ndarray, int, float)) else None)
    kinds = "f" if shape else "fi"
    if array.dtype.kind not in kinds or array.ndim != len(shape) or not np.isfinite(array).all():
        wanted = f"{len(shape)}-dimensional array of finite numbers" if shape else "finite number"
        raise ValueError(f"{name} must be a {wanted}, found {value!r:.40}")
    if any(wanted not in (None, size) for wanted, size in zip(shape, array.shape, strict=True)):
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} has the shape {array.shape} instead of {wanted}")
    for wrong in array[(array < low) | (array > high)].flat:
        range_ = f">= {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} must be {range_}, found {wrong:g}")
    return array if shape else array.item()


def _set_mixture(model: MNARMixture, fitted: dict[str, Any], p: int) -> None:
    k = model.n_components
    spread = {"covariances_": "k" if model.covariance_type == "spherical" else "kp"}
    _set_numbers(model, fitted, FITTED_MIXTURE | spread, {"k": k, "p": p})
    _numbers("covariances_", model.covariances_, *model.covariances_.shape, low=1e-300)
    freedom = float(model.__dict__.pop("freedom"))
    if freedom != 0.0:
        _numbers("freedom", freedom, low=LEAST_FREEDOM, high=MOST_FREEDOM)
    model.degrees_of_freedom_ = freedom or math.inf
    model.tails_ = "t" if freedom else "normal"
    model.lower_bounds_ = bounds = fitted["lower_bounds_"].tolist()
    if not bounds:
        raise ValueError("lower_bounds_ must have a number for each iteration")
    model.lower_bound_, model.n_iter_ = bounds[-1], len(bounds)
    _check_keys("fitted", fitted, (*FITTED_MIXTURE, *NOT_NUMBERS))
    model.converged_ = bool(fitted["converged_"])
    model.missingness_ = _checked_missingness(fitted["missingness_"], {"k": k, "p": p, "1": 1})
    model.mechanism_ = model.missingness_.mechanism
    has_gaps = fitted["has_gaps"]
    if not isinstance(has_gaps, np.ndarray) or has_gaps.dtype != bool or has_gaps.shape != (p,):
        raise ValueError(f"has_gaps must be {p} times true or false")
    parameters = model.missingness_.parameters
    model._mechanism = MECHANISMS[model.mechanism_](**parameters, has_gaps=has_gaps)


def _checked_missingness(found: Any, sizes: dict[str, int]) -> MixtureMissingness:
    """``sizes``: how long an axis is, by its letter."""
    _check_keys("missingness_", found, MixtureMissingness._fields)
    name = found["mechanism"]
    if name not in MECHANISMS:
        raise ValueError(f"missingness_ has the unknown mechanism {name!r:.40}")
    rules = MECHANISMS[name].own_parameters
    stored = found["parameters"]
    _check_keys(f"missingness_ of {name}", stored, rules)
    parameters = {
        own: _numbers(own, stored[own], *map(sizes.get, rule.shape), low=rule.least, high=rule.most)
        for own, rule in rules.items()
    }
    numbers = {}
    for field in ("log_likelihoods", "scores"):
        if not isinstance(found[field], dict) or set(found[field]) - set(MECHANISMS):
            raise ValueError(f"missingness_/{field} must have a number for each mechanism")
        numbers[field] = {one: _numbers(one, value) for one, value in found[field].items()}
    return MixtureMissingness(name, parameters, **numbers)


def _check_keys(name: str, found: Any, wanted: Any) -> None:
    if not isinstance(found, dict) or set(found) != set(wanted):
        raise ValueError(f"{name} must have {', '.join(wanted)}")
