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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import __version__
from ._em.mechanisms import MECHANISMS, Parameter
from ._io import join, pack, split, unpack, write_files
from ._kmeans import MNARKMeans
from ._mixture import MixtureMissingness, MNARMixture
from ._solver import STARTS, effective_threads
from ._validation import check_missing_values, is_named

FORMAT = "mnarkmeans-model"
FORMAT_VERSION = 2
JSON_NAME, ARRAYS_NAME = "model.json", "model.npz"
PARTS = ("params", "fitted", "extra")
ANY = -math.inf  # the least a number may be, if any will do
# The numbers of a fitted estimator: axes (k clusters, p features, * any length) and range.
FITTED = {
    "MNARKMeans": {
        "cluster_centers_": Parameter("kp", least=ANY), "reference_": Parameter("p", least=ANY),
        "loss_path_": Parameter("*"), "start_losses_": Parameter("*"), "lam_": Parameter(""),
        "inertia_": Parameter(""), "n_iter_": Parameter(""),
    },
    "MNARMixture": {
        "weights_": Parameter("k"), "means_": Parameter("kp", least=ANY),
        "covariances_": Parameter("kp", least=1e-300), "reference_": Parameter("p", least=ANY),
        "freedom": Parameter("", least=1.5, most=80.0), "temper_": Parameter(""),
        "lower_bounds_": Parameter("*", least=ANY),
    },
}  # fmt: skip


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
    folder, arrays = Path(folder), dict[str, np.ndarray]()
    names = feature_names or getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = unnamed(estimator.n_features_in_)
    if not isinstance(estimator, MNARMixture):
        estimator = as_kmeans(estimator)
    kind, params = type(estimator).__name__, estimator.get_params(deep=False)
    if not isinstance(params["random_state"], (int, type(None))):
        params["random_state"] = None  # a generator has gone on since
    for name, value in params.items():
        if is_named(value):  # lam or reference for each feature, as they were aligned with X
            value = getattr(estimator, f"{name}_")
        if isinstance(value, (list, tuple, np.ndarray)):
            params[name] = np.asarray(value, dtype=float)
    fitted = {name: getattr(estimator, name, None) for name in FITTED[kind]}
    if isinstance(estimator, MNARMixture):
        fitted |= {
            "freedom": estimator._parameters().freedom,  # 0: normal clusters
            "lower_bounds_": np.array(estimator.lower_bounds_),
            "has_gaps": estimator._mechanism.has_gaps,
            "converged_": estimator.converged_,
            "missingness_": estimator.missingness_._asdict(),
        }
    document: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "written_by": f"mnarkmeans {__version__}",
        "estimator": kind,
        "feature_names": [*map(str, names)],
    }
    try:
        for part, value in zip(PARTS, (params, fitted, extra or {}), strict=True):
            document[part] = split(value, part, arrays)
    except ValueError as error:
        raise ModelFileError(str(error)) from error
    packed = pack(arrays)
    document["arrays"] = {"file": ARRAYS_NAME, "sha256": _sha256(packed)}
    document["sha256"] = _document_sum(document)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    # Half of a new model beside half of the old one would be neither.
    write_files(folder, {JSON_NAME: f"{text}\n".encode(), ARRAYS_NAME: packed})


def unnamed(p: int) -> list[str]:
    """V1, V2, ...: what features are called that have no names."""
    return [f"V{j + 1}" for j in range(p)]


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
    kept = {*FITTED["MNARKMeans"], "labels_", "missingness_", "n_features_in_", "feature_names_in_"}
    for name in kept:
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
        names = document.get("feature_names")
        if not isinstance(names, list) or not names or {*map(type, names)} != {str}:
            raise ValueError(f"feature_names must be a list of words, found {names!r:.40}")
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
    version, writer = document.get("format_version"), document.get("written_by")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{file} has the format version {version!r:.40}, written by {writer!r:.60}; this "
            f"mnarkmeans reads version {FORMAT_VERSION}: use the one that wrote it, or fit again"
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
        _set_mixture(model, fitted, {"k": model.n_components, "p": p, "1": 1})
    else:
        rules = FITTED[kind]
        if isinstance(fitted.get("lam_"), np.ndarray):
            rules = rules | {"lam_": Parameter("p")}
        model.__dict__.update(_numbers("fitted", fitted, rules, {"k": model.n_clusters, "p": p}))
    model.n_features_in_ = p
    return model


def _set_mixture(model: MNARMixture, fitted: dict[str, Any], sizes: dict[str, int]) -> None:
    rules = dict(FITTED["MNARMixture"])
    if model.covariance_type == "spherical":
        rules["covariances_"] = rules["covariances_"]._replace(shape="k")
    if fitted.get("freedom") == 0.0:  # normal clusters
        rules["freedom"] = Parameter("")
    numbers = _numbers("fitted", fitted, rules, sizes)
    freedom, bounds = numbers.pop("freedom"), numbers.pop("lower_bounds_").tolist()
    if not bounds:
        raise ValueError("lower_bounds_ must have a number for each iteration")
    has_gaps, p = fitted.get("has_gaps"), sizes["p"]
    if not isinstance(has_gaps, np.ndarray) or has_gaps.dtype != bool or has_gaps.shape != (p,):
        raise ValueError(f"has_gaps must be {p} times true or false")
    missingness = _checked_missingness(fitted.get("missingness_"), sizes)
    name, parameters = missingness.mechanism, missingness.parameters
    model.__dict__.update(
        numbers, lower_bounds_=bounds, lower_bound_=bounds[-1], n_iter_=len(bounds),
        converged_=bool(fitted.get("converged_")), missingness_=missingness, mechanism_=name,
        degrees_of_freedom_=freedom or math.inf, tails_="t" if freedom else "normal",
        _mechanism=MECHANISMS[name](**parameters, has_gaps=has_gaps),
    )  # fmt: skip


def _checked_missingness(stored: Any, sizes: dict[str, int]) -> MixtureMissingness:
    if not isinstance(stored, dict) or set(stored) != set(MixtureMissingness._fields):
        raise ValueError(f"missingness_ must have {', '.join(MixtureMissingness._fields)}")
    name = stored["mechanism"]
    if not isinstance(name, str) or name not in MECHANISMS:
        raise ValueError(f"missingness_ has the unknown mechanism {name!r:.40}")
    rules = {"parameters": MECHANISMS[name].own_parameters}
    for field in ("log_likelihoods", "scores"):
        compared = stored[field] if isinstance(stored[field], dict) else {}
        rules[field] = dict.fromkeys(set(MECHANISMS) & set(compared), Parameter("", least=ANY))
    numbers = {f: _numbers(f"missingness_/{f}", stored[f], rules[f], sizes) for f in rules}
    return MixtureMissingness(name, **numbers)


def _numbers(
    place: str, stored: Any, rules: dict[str, Parameter], sizes: dict[str, int]
) -> dict[str, Any]:
    """What is stored by these names: finite numbers, alone or in float arrays, after the rules.

    ``sizes``: how long an axis is, by its letter; one without a size may have any length.
    """
    if not isinstance(stored, dict):
        raise ValueError(f"{place} must be an object, found {stored!r:.40}")
    checked = {}
    for name, (shape, most, least) in rules.items():
        if name not in stored:
            raise ValueError(f"{place} lacks {name}")
        value = stored[name]
        array = np.asarray(value if isinstance(value, (np.ndarray, int, float)) else None)
        kinds, many = ("f", f"{len(shape)}-dimensional array of ") if shape else ("fi", "")
        is_numbers = array.dtype.kind in kinds and np.isfinite(array).all()
        if not is_numbers or array.ndim != len(shape):
            wanted = f"{many}finite number{'s' if shape else ''}"
            raise ValueError(f"{name} must be a {wanted}, found {value!r:.40}")
        lengths = [sizes.get(axis, size) for axis, size in zip(shape, array.shape, strict=True)]
        if array.shape != tuple(lengths):
            wanted = " x ".join(map(str, lengths))
            raise ValueError(f"{name} has the shape {array.shape} instead of {wanted}")
        for wrong in array[(array < least) | (array > most)].flat:
            range_ = f">= {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
            raise ValueError(f"{name} must be {range_}, found {wrong:g}")
        checked[name] = array if shape else array.item()
    return checked
