"""Damaged bytes for the tests of files that strangers may have written."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b"\n", b"\r", b",", b'"', b"\0", b"NA", b"nan", b"inf", b"-1e999", b"=1+1",
                     b"\xff\xfe", b"\t\t"]),
)  # fmt: skip


@st.composite
def mutations(draw, content: bytes) -> bytes:
    """Bytes changed, inserted, removed, repeated; the file cut short."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        until = at + draw(st.integers(0, 12))
        kind = draw(st.sampled_from(["change", "insert", "remove", "cut", "again", "bit"]))
        if kind == "change":
            piece = draw(PIECES)
            content = content[:at] + piece + content[at + len(piece) :]
        elif kind == "insert":
            content = content[:at] + draw(PIECES) + content[at:]
        elif kind == "remove":
            content = content[:at] + content[until:]
        elif kind == "cut":
            content = content[:at]
        elif kind == "again":
            content = content[:until] + content[at:]
        elif content:
            flipped = content[at] ^ (1 << draw(st.integers(0, 7)))
            content = content[:at] + bytes([flipped]) + content[at + 1 :]
    return content


def assert_one_sentence(message: str) -> None:
    """A refusal is a sentence for a person."""
    assert len(message.strip()) > 10
    assert "\n" not in message
    assert "Traceback" not in message
