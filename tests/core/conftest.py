import pytest

from mnarkmeans import _core


@pytest.fixture(params=_core.available_levels())
def each_level(request):
    """Each instruction set of this machine in turn."""
    before = _core.level()
    _core.set_level(request.param)
    yield request.param
    _core.set_level(before)
