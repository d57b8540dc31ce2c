"""How much memory there is."""

from __future__ import annotations

import math
import os
from pathlib import Path

# What a container may use, in the two ways in which Linux tells it.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory() -> float:
    """Bytes this process may use: the machine's memory or its limits, whichever is less."""
    limits = [math.inf, *(_told(path) for path in LIMITS)]
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        import resource

        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            soft, _ = resource.getrlimit(kind)
            if soft != resource.RLIM_INFINITY:
                limits.append(soft - _address_space())
    except ImportError:  # not on Windows
        pass
    return float(min(limits))


def _told(path: str) -> float:
    try:
        text = Path(path).read_text().strip()
    except OSError:
        return math.inf
    return float(text) if text.isdigit() else math.inf  # "max" is no limit


def _address_space() -> int:
    """Bytes of address space in use already (libraries mostly), where the system tells."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
