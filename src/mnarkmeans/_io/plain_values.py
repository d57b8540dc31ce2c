"""Numbers, words, lists, dicts and arrays as JSON and an archive of arrays; no pickles.

    {"$array": name}       an array of the archive
    {"$number": "nan"}     a number that JSON has no word for: nan, inf or -inf

Reading runs nothing and allocates no more than the archive holds: its members are not compressed,
and an array whose header promises more bytes than follow is refused.
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import numpy as np

ARRAY, NUMBER = "$array", "$number"
DEEPEST = 100  # brackets within brackets
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


def join(value: Any, name: str, arrays: dict[str, np.ndarray], depth: int = 0) -> Any:
    """The inverse of `split`; a ValueError names the place where it cannot be done."""
    if depth > DEEPEST:  # how deep Python itself would go depends on its version
        raise ValueError(f"{name:.40}... has brackets within brackets without end")
    if isinstance(value, list):
        return [join(part, f"{name}/{i}", arrays, depth + 1) for i, part in enumerate(value)]
    if isinstance(value, str):
        _check_text(value, name)
        return value
    if not isinstance(value, dict):
        return value
    tags = [key for key in value if key.startswith("$")]
    if not tags:
        for key in value:
            _check_text(key, name)
        return {key: join(part, f"{name}/{key}", arrays, depth + 1) for key, part in value.items()}
    if len(value) > 1 or tags[0] not in (ARRAY, NUMBER):
        raise ValueError(f"{name} has the unknown tag {tags[0]!r}")
    word = value[tags[0]]
    known = arrays if tags[0] == ARRAY else NUMBERS
    if not isinstance(word, str) or word not in known:
        raise ValueError(f"{name} has the tag {tags[0]} with the unknown value {word!r}")
    return known[word]


def _check_text(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds half a character (a lone surrogate)") from None


def pack(arrays: dict[str, np.ndarray]) -> bytes:
    """The bytes of an archive, the same for the same arrays."""
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    return packed.getvalue()


def unpack(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an archive; a ValueError names the one that is not an array of numbers."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            return {
                member.filename.removesuffix(".npy"): _array(archive, member) for member in members
            }
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"the archive cannot be read ({error})") from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    name = member.filename.removesuffix(".npy")
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed, which these files are not")
    stream = io.BytesIO(archive.read(member))
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
    except ValueError as error:
        raise ValueError(f"{name} is not an array") from error
    rest = stream.read()
    if dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {dtype} instead of numbers")
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(f"{name} says it has the shape {shape}, but holds {len(rest)} bytes")
    values = np.frombuffer(rest, dtype).reshape(shape, order="F" if by_columns else "C")
    return values.copy()
