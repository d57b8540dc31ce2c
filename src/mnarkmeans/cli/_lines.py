"""The lines of a text file: plain or gzipped, in any encoding, they come as blocks of UTF-8.

Every block holds whole lines, and no line is longer than `LONGEST_LINE`: a file without line ends,
which may be a bomb of a megabyte that unpacks to gigabytes, is refused after that many bytes.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from ._errors import OtherEncoding, UserError

LONGEST_LINE = 1 << 25  # bytes: 100,000 columns of 300 characters each
CHUNK = 1 << 20
LINE_END = re.compile(rb"\r\n|\n|\r")
_BLANKS = re.compile(rb"[ \t]+")
_BLANKS_AT_THE_END = re.compile(rb" ?(\r\n|\n|\r) ?")


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The bytes of a plain or gzipped file; damage is told in one sentence."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file; copy or download it again") from error


def blocks(path: Path, encoding: str) -> Iterator[bytes]:
    """The text of the file as UTF-8, a few whole lines at a time."""
    decoder = codecs.getincrementaldecoder(encoding)()
    rest = b""
    with opened(path) as stream:
        while chunk := stream.read(CHUNK):
            text = rest + _decoded(path, encoding, decoder, chunk)
            cut = text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, -1) + 1  # not between \r and \n
            rest = text[cut:]
            if len(rest) > LONGEST_LINE:
                raise UserError(
                    f"{path} has a line of more than {LONGEST_LINE >> 20} MB; a table has one row "
                    "in each line"
                )
            if cut:
                yield text[:cut]
        rest += _decoded(path, encoding, decoder, b"", final=True)
    if rest:
        yield rest + b"\n"


def _decoded(path: Path, encoding: str, decoder: Any, chunk: bytes, final: bool = False) -> bytes:
    try:
        return decoder.decode(chunk, final).encode()
    except UnicodeDecodeError as error:
        raise OtherEncoding(
            f"{path} is not {encoding.removesuffix('-sig').upper()} text (byte "
            f"0x{error.object[error.start]:02x} cannot be read); save it as UTF-8 or name its "
            "encoding, for example --encoding cp1252 for a file from an older Excel"
        ) from error
    except UnicodeError as error:
        raise UserError(f"{path} cannot be read as {encoding}: {error}") from error


def after(parts: Iterator[bytes], lines: int) -> Iterator[bytes]:
    """The blocks without the first so many lines."""
    for block in parts:
        ends = [found.end() for found in islice(LINE_END.finditer(block), lines)]
        lines -= len(ends)
        if not lines:
            yield block[ends[-1] if ends else 0 :]
            break
    yield from parts


def single_blanks(block: bytes) -> bytes:
    """Runs of blanks outside of quotes become one, and none is left at the ends of a line.

    Examples
    --------
    >>> single_blanks(b'  a   "b  c" 1 \\n')
    b'a "b  c" 1\\n'
    """
    pieces = block.split(b'"')
    pieces[::2] = [_BLANKS.sub(b" ", piece) for piece in pieces[::2]]
    return _BLANKS_AT_THE_END.sub(rb"\1", b'"'.join(pieces)).lstrip(b" ")


def without_blank_end(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks up to the last line that is not blank."""
    held = b""
    for part in parts:
        block = held + part
        text = block.rstrip()
        held = block[len(text) :]
        if text:
            yield text
    yield b"\n"


def without_remarks(parts: Iterator[bytes], mark: bytes) -> Iterator[bytes]:
    """The blocks without lines that begin with this mark.

    Examples
    --------
    >>> list(without_remarks(iter([b"1\\n!end\\n2\\n"]), b"!"))
    [b'1\\n2\\n']
    """
    for part in parts:
        lines = part.splitlines(keepends=True)
        yield b"".join(line for line in lines if not line.startswith(mark))


class Stream(io.RawIOBase):
    """Blocks as a file, for libraries that read one."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest = parts, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        while not self._rest:
            block = next(self._parts, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(out), len(self._rest))
        out[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
