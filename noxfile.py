"""The steps of ``.ci/run`` one by one, each in an environment of its own: ``nox -s mypy``.

``nox -s nightly -- sanitize`` runs sections of ``.ci/nightly``.
"""

import nox

nox.options.sessions = ["ruff", "mypy", "lint-imports", "check-core", "tests"]
nox.options.reuse_existing_virtualenvs = True
PYTHONS = ["3.11", "3.12", "3.13"]


@nox.session(python=PYTHONS)
def tests(session):
    """The suite, or what is named after ``--``."""
    session.install(".[test]")
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session
def ruff(session):
    session.install("ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def mypy(session):
    session.install(".[test]")
    session.run("mypy")


@nox.session(name="lint-imports")
def lint_imports(session):
    session.install(".", "import-linter")
    session.run("lint-imports")


@nox.session(name="check-core")
def check_core(session):
    """Warnings of the compiler, symbols shared between instruction sets."""
    session.run("bash", ".ci/check-core", external=True)


@nox.session
def docs(session):
    session.install(".[docs]")
    html = f"{session.create_tmp()}/html"
    session.run("sphinx-build", "-q", "-W", "--keep-going", "docs", html)
    session.run("python", "docs/check_links.py", html)


@nox.session
def demo(session):
    session.install(".[all]")
    session.chdir(session.create_tmp())
    session.run("mnarkmeans", "demo")


@nox.session
def nightly(session):
    session.run("bash", ".ci/nightly", *session.posargs, external=True)
