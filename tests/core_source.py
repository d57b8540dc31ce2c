"""What tests/test_house.py asks of the C++: its functions, how long they are and what they take.

No compiler: braces are counted, and what stands before one says what it opens. Comments, text and
macros are blanked first (their lines stay, so that numbers of lines are true). Outside of functions
whatever has an argument list is a function, whether its body follows or not; pointers to functions
too. Lambdas have the lines of the function around them, and parameters of their own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BLANKED = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE,
)
PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
TEMPLATE = re.compile(r"\btemplate\s*<")
SCOPE = re.compile(r"\b(namespace|struct|class|union|enum|extern)\b[^()=]*$")
ENDS_A_HEAD = re.compile(r"(\)|\}|\b(const|noexcept|override|mutable)|->[^()]*)\s*$")
ATTRIBUTE = re.compile(r"\b(alignas|decltype|__attribute__|__declspec)\s*\(")
POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(")
NAMED = re.compile(r"(operator\s*(?:\(\s*\)|[^(]+)|~?\w+)\s*\(")
LAMBDA = re.compile(r"(\[[^][]*\])\s*\(")


class Function(NamedTuple):
    name: str
    parameters: int
    lines: int  # of the body, up to its closing brace; 0 where it is only declared, or one line


def blank(source):
    """The source without comments, text and macros, line by line as it was."""
    return BLANKED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), source)


def closing(text, begin):
    """Where the bracket at begin is closed."""
    opened, closed, depth = text[begin], PAIRS[text[begin]], 0
    for at in range(begin, len(text)):
        depth += (text[at] == opened) - (text[at] == closed)
        if depth == 0:
            return at
    raise ValueError(f"{opened} is never closed: {text[begin : begin + 60]!r}")


def parameters(text, begin):
    """How many parameters the list that opens at begin has: commas outside of further brackets."""
    inside = text[begin + 1 : closing(text, begin)].replace("->", "")
    depth = commas = 0
    for character in inside:
        depth += (character in PAIRS) - (character in PAIRS.values())
        commas += character == "," and depth == 0
    return 0 if inside.strip() in ("", "void") else commas + 1


def signature(head):
    """Name and number of parameters of the function that head announces, if it does."""
    head = ATTRIBUTE.sub("(", head)
    found = NAMED.search(head)
    if found is None or "=" in head[: found.start()]:
        return None
    found = POINTER.match(head, found.end() - 1) or found
    return found.group(1).strip(), parameters(head, found.end() - 1)


def without_templates(head):
    """What stands before a brace or a semicolon, without every `template <...>`."""
    while found := TEMPLATE.search(head):
        head = head[closing(head, found.end() - 1) + 1 :]
    return head


def functions(source):
    """Every function of a C++ source, and every lambda, in their order."""
    text = blank(source)
    begin = at = 0
    while at < len(text):
        head = without_templates(text[begin:at]) if text[at] in "{};" else ""
        if text[at] == "(":
            at = closing(text, at)
        elif text[at] == "{" and not SCOPE.search(head):
            end = closing(text, at)
            if ENDS_A_HEAD.search(head) and (announced := signature(head)):
                yield Function(*announced, text.count("\n", at, end))
                for found in LAMBDA.finditer(text, at, end):
                    yield Function(found.group(1), parameters(text, found.end() - 1), 0)
                begin = end + 1
            at = end
        elif text[at] in "{};":
            if announced := signature(head):
                yield Function(*announced, 0)
            begin = at + 1
        at += 1
