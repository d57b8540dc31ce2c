import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests share oracle.py
sys.path.insert(1, str(Path(__file__).parents[1]))  # and look at the benchmarks, where these are


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the two real data sets; tests that need it skip where it is absent."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MNARKMEANS_DATA", beside))
    if not (folder / "lymphoma.x.txt").exists():
        pytest.skip("the real data sets are absent: set MNARKMEANS_DATA to their folder")
    return folder
