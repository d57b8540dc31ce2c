#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.10.14"]
# ///
"""The steps of ``.ci/run`` one by one, each in an environment of its own: ``nox -s mypy``.

``nox -s nightly -- sanitize`` runs sections of ``.ci/nightly``.
"""

import nox

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(name="pre-commit")
def pre_commit(session):
    """Style, spelling, shell scripts, workflows: the hooks over every file."""
    session.install("pre-commit")
    session.run("pre-commit", "run", "--all-files", *session.posargs)


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
def portable(session):
    """The tests can be imported where there is no fork and no user number."""
    session.install(".[test]")
    session.run("python", ".ci/portable.py")


@nox.session(name="repo-review")
def repo_review(session):
    """Habits of well-kept repositories; pyproject.toml has the reasons for what is ignored."""
    session.install("sp-repo-review[cli]")
    session.run("repo-review", ".")


@nox.session(python=PYTHONS)
def tests(session):
    """The suite, or what is named after ``--``."""
    session.install(".[test]")
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session(default=False)
def docs(session):
    session.install(".[test,docs]")
    session.run("pytest", "-q", "-n", "2", "docs")
    html = f"{session.create_tmp()}/html"
    session.run("sphinx-build", "-q", "-W", "--keep-going", "docs", html)
    session.run("python", "docs/check_links.py", html)


@nox.session(default=False)
def demo(session):
    session.install(".[all]")
    session.chdir(session.create_tmp())
    session.run("mnarkmeans", "demo")


@nox.session(default=False)
def nightly(session):
    session.run("bash", ".ci/nightly", *session.posargs, external=True)


if __name__ == "__main__":
    nox.main()
