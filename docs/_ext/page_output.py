"""Show what the code of a page prints.

The Python blocks of a page are run in order, in one namespace and an empty folder, when the page is
read; what a block prints is put below it. A block right after ``<!-- not run: reason -->`` is left
alone. So no output in these pages can be out of date, and a block that fails fails the build.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import textwrap
import traceback
import warnings

from sphinx.util import logging

logger = logging.getLogger(__name__)

BLOCK = re.compile(
    r"(?P<skip><!-- not run: .+? -->\s*\n)?^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


def add_output(app, docname, source):
    if docname.startswith(("auto_examples", "api")) or "```python" not in source[0]:
        return
    namespace = {"__name__": "page"}

    def with_output(found):
        if found["skip"]:
            return found[0]
        try:
            printed = run(textwrap.dedent(found["code"]), namespace, docname)
        except Exception:
            logger.warning("a code block failed:\n%s", traceback.format_exc(), location=docname)
            return found[0]
        if not printed:
            return found[0]
        block = f"```{{code-block}} text\n:class: page-output\n\n{printed}\n```"
        return f"{found[0]}\n\n" + textwrap.indent(block, found["indent"])

    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            source[0] = BLOCK.sub(with_output, source[0])
        finally:
            os.chdir(before)


def run(code: str, namespace: dict, page: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, f"<{page}>", "exec"), namespace)
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        plt.close("all")
    return printed.getvalue().rstrip()


def setup(app):
    app.connect("source-read", add_output)
    return {"parallel_read_safe": False}
