"""`python -m mnarkmeans` and the `mnarkmeans` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install when its extra is absent."""
    try:
        from .cli._main import run
    except KeyboardInterrupt:  # what it imports may take seconds
        print("error: interrupted before anything was begun", file=sys.stderr)
        sys.exit(130)
    except ModuleNotFoundError as error:
        hint = 'run pip install "mnarkmeans[cli]"'
        print(f"error: the command line needs {error.name}: {hint}", file=sys.stderr)
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
