"""Random tables against the slow oracle: ``python -m benchmarks.fuzz --minutes 10 --seed 1``.

cases    a case from a seed and a number: a table in some form and place, centres, penalties
checks   what must hold of it, and what does not

The oracle and the backends are those of the tests (``tests/oracle.py``,
``tests/backends.py``).
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
