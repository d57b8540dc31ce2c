"""Atomic writes, `save`, plain values as JSON and arrays, optional imports, memory."""

from __future__ import annotations

import html
import importlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

# --- atomic ---------------------------------------------------------------------------------------

MARK = ".mnarkmeans-"  # how names of what is not yet whole begin


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files that belong together, by their names: all of them whole, or none."""
    with TemporaryDirectory(prefix=MARK, dir=folder) as hidden:
        for name, content in contents.items():
            Path(hidden, name).write_bytes(content)
        put_in_place(Path(hidden), folder)


def write_bytes(target: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all; if it is a link, the file it points to."""
    place = Path(os.path.realpath(target))
    write_files(place.parent, {place.name: content})


def put_in_place(hidden: Path, folder: Path) -> None:
    """Move the files of a hidden folder into another, once all of them are on the disk.

    A folder that does not exist yet appears by one rename.
    """
    written = sorted(hidden.iterdir())
    for path in written:
        flush(path)
    flush_folder(hidden)
    if folder.is_dir():
        for path in written:
            path.replace(folder / path.name)
    else:
        folder = hidden.rename(folder).parent
    flush_folder(folder)


def flush(path: Path) -> None:
    """Return when the bytes of a file are on the disk."""
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


def flush_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    with suppress(OSError):  # Windows cannot open a folder, nor can some network drives flush one
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Saving:
    """`save`, which every estimator has."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a folder: model.json and model.npz, numbers and words only.

        `mnarkmeans.load` and the command line read it. A search, batches and fits on a cluster
        become the MNARKMeans that they end with; labels of the fitted rows are not stored. The
        folder is made if it is not there, and a model in it is replaced.
        """
        check_is_fitted(self)
        # On use: model files lie above the estimators, and are only needed when asked for.
        from ._model_files import save_model

        Path(path).mkdir(parents=True, exist_ok=True)
        save_model(self, path)


# --- optional -------------------------------------------------------------------------------------


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra of this package brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError):
            raise ImportError(f"{module} is needed here and cannot be imported: {error}") from error
        raise ImportError(
            f"{module} is needed here and is not installed. "
            f'Install it with: pip install "mnarkmeans[{extra}]"'
        ) from error


class NotebookTable:
    """In notebooks: the first line of the text and some rows of `to_frame()`; or all the text."""

    to_frame: Any

    def _repr_html_(self) -> str:
        text = html.escape(repr(self))
        try:
            frame = self.to_frame()
        except ImportError:
            return f"<pre>{text}</pre>"
        return f"<p>{text.splitlines()[0]}</p>{frame.to_html(max_rows=10, index=False)}"


# --- plain values ---------------------------------------------------------------------------------

ARRAY, NUMBER = "$array", "$number"
NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def split(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The JSON part of a value; OUT arrays: its arrays, under the place where they were found.

    Examples
    --------
    >>> arrays = {}
    >>> split({"a": np.arange(2), "b": [1, math.nan]}, "top", arrays)
    {'a': {'$array': 'top/a'}, 'b': [1, {'$number': 'nan'}]}
    >>> arrays
    {'top/a': array([0, 1])}
    """
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "fiub":
        arrays[name] = value
        return {ARRAY: name}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        if any(str(key).startswith("$") for key in value):
            raise ValueError(f"{name} has a name that begins with $, which a file cannot hold")
        return {str(key): split(part, f"{name}/{key}", arrays) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [split(part, f"{name}/{i}", arrays) for i, part in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return {NUMBER: repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"{name} is a {type(value).__name__}, which a file cannot hold")


def join(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The inverse of `split`; a ValueError names the place where it cannot be done."""
    if isinstance(value, list):
        return [join(part, f"{name}/{i}", arrays) for i, part in enumerate(value)]
    if not isinstance(value, dict):
        return value
    tags = [key for key in value if key.startswith("$")]
    if not tags:
        return {key: join(part, f"{name}/{key}", arrays) for key, part in value.items()}
    if len(value) > 1 or tags[0] not in (ARRAY, NUMBER):
        raise ValueError(f"{name} has the unknown tag {tags[0]!r}")
    word, known = value[tags[0]], arrays if tags[0] == ARRAY else NUMBERS
    if not isinstance(word, str) or word not in known:
        raise ValueError(f"{name} has the tag {tags[0]} with the unknown value {word!r}")
    return known[word]


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dicts that JSON can hold; NaN and infinity become null."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def as_json(value: Any, indent: int | None = 2) -> str:
    """The text of a JSON document."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def pack(arrays: dict[str, np.ndarray]) -> bytes:
    """The bytes of an archive, the same for the same arrays."""
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


def unpack(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an archive; a ValueError names the one that is not an array of numbers."""
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if member.compress_type != zipfile.ZIP_STORED:  # a kilobyte may hold a gigabyte
                    raise ValueError(f"{name} is compressed, which these files are not")
                stream = io.BytesIO(archive.read(member))
                try:
                    array = np.lib.format.read_array(stream, allow_pickle=False)
                except (ValueError, TypeError, OverflowError, MemoryError) as error:
                    raise ValueError(f"{name} is not an array of numbers ({error})") from error
                if array.dtype.kind not in "fiub":
                    raise ValueError(f"{name} holds {array.dtype} instead of numbers")
                arrays[name] = array
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"the archive cannot be read ({error})") from error
    return arrays


# --- memory ---------------------------------------------------------------------------------------

# What a container may use, in the two places where Linux keeps it.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory() -> float:
    """Bytes of the machine's memory, or of the container's if that is less."""
    limits = [math.inf]
    for path in LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            limits.append(int(Path(path).read_text()))
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return float(min(limits))
