"""Model files that hold numbers and words only.

A model is a folder with two files:

    model.json   format, version, the estimator's parameters and results, feature names, notes of
                 the caller, the SHA-256 of model.npz, and a SHA-256 of all of this
    model.npz    the arrays, without pickles

Reading runs no code from the files: JSON and plain arrays go in, every field is checked
and an estimator is built from them. A checksum reveals damage and careless edits; it
does not prove who wrote the model.

Versions: 2 has all results of the fit under "fitted", and lam_ may be an array; 1 had arrays of the
fit in the archive only.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import __version__
from ._em.em import LEAST_FREEDOM, MOST_FREEDOM
from ._em.mechanisms import MECHANISMS, Parameter, mechanism_of
from ._io import ARRAY, join, pack, split, unpack, write_together
from ._kmeans import MNARKMeans
from ._mixture import MixtureMissingness, MNARMixture
from ._solver import STARTS
from ._validation import check_missing_values, is_named, unnamed

# --- model checks ---------------------------------------------------------------------------------

MOST = 2**31 - 1  # of anything that is counted


def checked_names(names: Any) -> list[str]:
    """Names of the features: words, each once."""
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise ValueError(f"feature_names must be a list of words, found {names!r:.40}")
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"feature_names has {repeated[0]!r:.40} more than once")
    return names


def checked_model(params: dict[str, Any], fitted: dict[str, Any], p: int) -> MNARKMeans:
    """A fitted estimator from its parameters and results, for p features."""
    estimator: MNARKMeans = with_parameters(MNARKMeans, params, p)
    if not isinstance(estimator.init, str):
        _centers("params/init", estimator.init, p)
    for name, check in FITTED.items():
        if name not in fitted:
            raise ValueError(f"fitted lacks {name}")
        setattr(estimator, name, check(name, fitted[name], p))
    k = len(estimator.cluster_centers_)
    if estimator.n_clusters != k:
        raise ValueError(f"n_clusters is {estimator.n_clusters}, but cluster_centers_ has {k} rows")
    estimator.n_features_in_ = p
    return estimator


COUNTS = ("n_clusters", "n_components", "n_init", "max_iter", "random_state", "n_jobs", "verbose")


def with_parameters(kind: type, params: dict[str, Any], p: int) -> Any:
    """An estimator of this kind that is not fitted yet, for p features."""
    known = kind().get_params(deep=False)
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ValueError(f"params has the unknown parameter {unknown[0]!r:.40}")
    for name in COUNTS:
        if not (name == "n_init" and params.get(name) == "auto"):
            _check_whole(f"params/{name}", params.get(name))
    for name in ("lam", "reference", "init"):
        value = params.get(name, "")
        if value is None and name == "reference":
            continue  # the default
        if not isinstance(value, (str, int, float, np.ndarray)):
            raise ValueError(f"params/{name} must be a word, a number or an array")
    estimator = kind(**params)
    try:
        estimator._check_parameters()
        check_missing_values(estimator.missing_values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"params: {str(error).rstrip('.')}") from error
    if not isinstance(estimator.reference, (str, type(None))):
        _per_feature("params/reference", estimator.reference, p)
    return estimator


def _check_whole(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, int) or abs(value) > 2 * MOST + 1):
        raise ValueError(f"{name} must be a whole number that is not huge, found {value!r:.40}")


def _array(name: str, value: Any, *shape: int | None) -> np.ndarray:
    """Finite numbers of a shape, of which None is any length."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.ndim != len(shape):
        raise ValueError(f"{name} must be a {len(shape)}-dimensional array of numbers")
    if not np.isfinite(value).all():
        raise ValueError(f"{name} has entries that are not finite numbers")
    if any(wanted not in (None, size) for wanted, size in zip(shape, value.shape, strict=True)):
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} has the shape {value.shape} instead of {wanted}")
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, found {value!r:.40}")
    return float(value)


def _at_least(name: str, value: Any, least: float = 0.0) -> Any:
    if np.min(value) < least:
        kind = "must be positive" if least > 0 else "must not be negative"
        raise ValueError(f"{name} {kind}, found {np.min(value):g}")
    return value


def _centers(name: str, value: Any, p: int) -> np.ndarray:
    if not len(_array(name, value, None, p)):
        raise ValueError(f"{name} has the shape {value.shape}, without rows")
    return value


def _per_feature(name: str, value: Any, p: int) -> Any:
    """A number, or one for each feature."""
    if isinstance(value, np.ndarray) and value.ndim:
        if len(_array(name, value, None)) != p:
            raise ValueError(f"{name} has {len(value)} numbers for {p} columns")
        return value
    return _number(name, value.item() if isinstance(value, np.ndarray) else value)


def _reference(name: str, value: Any, p: int) -> np.ndarray:
    return np.full(p, _per_feature(name, value, p))


def _count(name: str, value: Any, p: int) -> int:
    if type(value) is not int or not 0 <= value <= MOST:
        raise ValueError(f"{name} must be a whole number from 0 to {MOST}, found {value!r:.40}")
    return value


FITTED: dict[str, Callable[[str, Any, int], Any]] = {
    "cluster_centers_": _centers,
    "reference_": _reference,
    "lam_": lambda name, value, p: _at_least(name, _per_feature(name, value, p)),
    "loss_path_": lambda name, value, p: _array(name, value, None),
    "start_losses_": lambda name, value, p: _array(name, value, None),
    "inertia_": lambda name, value, p: _at_least(name, _number(name, value)),
    "n_iter_": _count,
}


# --- mixture checks -------------------------------------------------------------------------------

FITTED_MIXTURE: dict[str, Callable[[MNARMixture], Any]] = {
    "weights_": attrgetter("weights_"),
    "means_": attrgetter("means_"),
    "covariances_": attrgetter("covariances_"),
    "reference_": attrgetter("reference_"),
    "freedom": lambda mixture: mixture._parameters().freedom,
    "temper_": attrgetter("temper_"),
    "lower_bounds_": lambda mixture: np.array(mixture.lower_bounds_),
    "converged_": lambda mixture: bool(mixture.converged_),
    "has_gaps": attrgetter("_mechanism.has_gaps"),
    "missingness_": lambda mixture: mixture.missingness_._asdict(),
}


def checked_mixture(params: dict[str, Any], fitted: dict[str, Any], p: int) -> MNARMixture:
    """A fitted mixture from its parameters and results, for p features."""
    for name in ("weights_init", "means_init"):
        if not isinstance(params.get(name), (type(None), np.ndarray)):
            raise ValueError(f"params/{name} must be an array")
    estimator: MNARMixture = with_parameters(MNARMixture, params, p)
    if estimator.means_init is not None:
        _array("params/means_init", estimator.means_init, estimator.n_components, p)
    lacking = [name for name in FITTED_MIXTURE if name not in fitted]
    if lacking:
        raise ValueError(f"fitted lacks {lacking[0]}")
    k = estimator.n_components
    estimator.weights_ = _at_least("weights_", _array("weights_", fitted["weights_"], k))
    estimator.means_ = _array("means_", fitted["means_"], k, p)
    shape = (k,) if estimator.covariance_type == "spherical" else (k, p)
    covariances = _array("covariances_", fitted["covariances_"], *shape)
    estimator.covariances_ = _at_least("covariances_", covariances, 1e-300)
    estimator.reference_ = _reference("reference_", fitted["reference_"], p)
    freedom = _number("freedom", fitted["freedom"])
    if freedom != 0 and not LEAST_FREEDOM <= freedom <= MOST_FREEDOM:
        bounds = f"{LEAST_FREEDOM:g} to {MOST_FREEDOM:g}"
        raise ValueError(f"freedom must be 0 or {bounds}, found {freedom:g}")
    estimator.degrees_of_freedom_ = freedom if freedom > 0 else math.inf
    estimator.tails_ = "t" if freedom > 0 else "normal"
    estimator.temper_ = _at_least("temper_", _number("temper_", fitted["temper_"]))
    bounds = _array("lower_bounds_", fitted["lower_bounds_"], None).tolist()
    if not bounds:
        raise ValueError("lower_bounds_ must have a number for each round")
    estimator.lower_bounds_, estimator.lower_bound_ = bounds, bounds[-1]
    estimator.n_iter_ = len(bounds)
    estimator.converged_ = bool(fitted["converged_"])
    estimator.missingness_ = _missingness(fitted["missingness_"], k, p)
    estimator.mechanism_ = estimator.missingness_.mechanism
    has_gaps = fitted["has_gaps"]
    if not isinstance(has_gaps, np.ndarray) or has_gaps.dtype != bool or has_gaps.shape != (p,):
        raise ValueError(f"has_gaps must be {p} times true or false")
    estimator._mechanism = mechanism_of(
        estimator.mechanism_, estimator.missingness_.parameters, has_gaps
    )
    estimator.n_features_in_ = p
    return estimator


def _parameter(name: str, value: Any, rule: Parameter, k: int, p: int) -> Any:
    sizes = {"k": k, "p": p, "1": 1}
    shape = tuple(sizes[letter] for letter in rule.shape)
    value = _array(name, value, *shape) if shape else _number(name, value)
    if not rule.least <= np.min(value) <= np.max(value) <= rule.most:
        kind = "a probability" if rule.most == 1.0 else "positive"
        raise ValueError(f"missingness_/{name} must be {kind}")
    return value


def _missingness(found: Any, k: int, p: int) -> MixtureMissingness:
    if not isinstance(found, dict) or set(found) != set(MixtureMissingness._fields):
        raise ValueError(f"missingness_ must have {', '.join(MixtureMissingness._fields)}")
    name = found["mechanism"]
    if name not in MECHANISMS:
        raise ValueError(f"missingness_ has the unknown mechanism {name!r:.40}")
    stored, wanted = found["parameters"], MECHANISMS[name].own_parameters
    if not isinstance(stored, dict) or set(stored) != set(wanted):
        raise ValueError(f"missingness_ of {name} must have {', '.join(wanted)}")
    parameters = {own: _parameter(own, stored[own], rule, k, p) for own, rule in wanted.items()}
    numbers = {}
    for field in ("log_likelihoods", "scores"):
        if not isinstance(found[field], dict) or set(found[field]) - set(MECHANISMS):
            raise ValueError(f"missingness_/{field} must have a number for each mechanism")
        numbers[field] = {one: _number(one, value) for one, value in found[field].items()}
    return MixtureMissingness(name, parameters, **numbers)


# --- model files ----------------------------------------------------------------------------------

FORMAT = "mnarkmeans-model"
FORMAT_VERSION = 2
JSON_NAME, ARRAYS_NAME = "model.json", "model.npz"
ARRAYS_OF_VERSION_1 = ("cluster_centers_", "reference_", "loss_path_", "start_losses_")


class ModelFileError(ValueError):
    """A model file that cannot be used, and what to do about it."""


class SavedModel(NamedTuple):
    """What a model file holds."""

    estimator: Any  # fitted MNARKMeans (its `labels_` are not stored) or MNARMixture
    feature_names: list[str]  # in the order of the centres
    extra: dict[str, Any]  # what the caller stored beside it, arrays included
    info: dict[str, Any]  # the whole JSON document


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
    names = feature_names or getattr(
        estimator, "feature_names_in_", unnamed(estimator.n_features_in_)
    )
    is_mixture = isinstance(estimator, MNARMixture)
    if not is_mixture:
        estimator = as_kmeans(estimator)
    params = estimator.get_params(deep=False)
    if not isinstance(params["random_state"], (int, type(None))):
        params["random_state"] = None  # a generator has gone on since
    for name, value in params.items():
        if is_named(value):  # lam or reference for each feature, as they were aligned with X
            params[name] = np.asarray(getattr(estimator, f"{name}_"), dtype=float)
        elif isinstance(value, (list, tuple, np.ndarray)):
            params[name] = np.asarray(value, dtype=float)
    if is_mixture:
        fitted = {name: read(estimator) for name, read in FITTED_MIXTURE.items()}
    else:
        fitted = {name: getattr(estimator, name) for name in FITTED}
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
    and blocks on a cluster as if fitted whole.
    """
    if type(model) is MNARKMeans:
        return model
    params = model.get_params(deep=False)
    # A search has no lam; estimators without the parameter use Lloyd's algorithm.
    params = {"lam": model.lam_, "algorithm": "lloyd"} | params
    params |= {"n_clusters": len(model.cluster_centers_), "n_init": len(model.start_losses_)}
    if isinstance(params["init"], str) and params["init"] not in STARTS:
        del params["init"]  # k-means|| is for clusters
    plain = MNARKMeans(
        **{name: params[name] for name in MNARKMeans().get_params() if name in params}
    )
    for name in (*FITTED, "labels_", "missingness_", "n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(plain, name, getattr(model, name))
    return plain


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
        arrays = _read_arrays(file, document)
        document = _as_written_today(document)
        names = checked_names(join(document.get("feature_names"), "feature_names", arrays))
        params = join(document.get("params"), "params", arrays)
        fitted = join(document.get("fitted"), "fitted", arrays)
        extra = join(document.get("extra"), "extra", arrays)
        for name, found in (("params", params), ("fitted", fitted), ("extra", extra)):
            if not isinstance(found, dict):
                raise ValueError(f"{name} must be an object, found {found!r:.40}")
        kind = document.get("estimator")
        if kind not in ("MNARKMeans", "MNARMixture"):
            raise ValueError(f"estimator must be 'MNARKMeans' or 'MNARMixture', found {kind!r:.40}")
        check: Any = checked_model if kind == "MNARKMeans" else checked_mixture
        estimator = check(params, fitted, len(names))
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError(f"{file} is nested too deeply") from None
    except ValueError as error:
        reason = " ".join(str(error).split())  # an array that was found is shown in several lines
        raise ModelFileError(f"{file}: {reason}; fit the model again") from error
    return SavedModel(estimator, names, extra, document)


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
    named = document.get("arrays")
    if not isinstance(named, dict) or not isinstance(named.get("sha256"), str):
        raise ModelFileError(f"{file}: arrays must name a checksum, found {named!r:.40}; fit again")
    file = file.parent / ARRAYS_NAME
    if not file.is_file():
        raise ModelFileError(f"{file}, the other half of the model, is not there; copy it as well")
    content = file.read_bytes()
    if _sha256(content) != named["sha256"]:
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
    # Half a character is refused later, with its place; here it only needs a sum.
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return _sha256(text.encode(errors="surrogatepass"))
