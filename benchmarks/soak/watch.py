"""A process for each kind of work, and what is seen of it from outside and inside."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection as pipes
import os
import shutil
import tempfile
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import psutil

from .figures import Seen
from .work import KINDS, Work

PATIENCE = 600.0  # seconds without a word, after which a process is taken to hang
KEPT_BY_DASK = {"global.lock", "purge.lock"}  # for the next cluster in the same folder


def serve(kind: str, seconds: float, seed: int, told) -> None:
    """In a process of its own: turn after turn, and after each a message."""
    process = psutil.Process()
    try:
        work: Work = KINDS[kind](seed)
        with work:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                compared = work.turn()
                memory = process.memory_info().rss
                told.send((compared, memory, handles(process), dict(work.counts)))
    except BaseException:
        told.send(traceback.format_exc())
        raise SystemExit(1) from None
    finally:
        told.close()


def handles(process: psutil.Process) -> int:
    return process.num_fds() if hasattr(process, "num_fds") else process.num_handles()


def watch(kinds: list[str], seconds: float, seed: int, say=print) -> tuple[list[Seen], list[str]]:
    """What was seen of each kind, and the names of files that were left behind."""
    with own_folder() as folder:
        seen = [Seen(kind) for kind in kinds]
        spawn = multiprocessing.get_context("spawn")
        running = {}
        for number, s in enumerate(seen):
            ours, theirs = spawn.Pipe(duplex=False)
            process = spawn.Process(target=serve, args=(s.kind, seconds, seed + number, theirs))
            process.start()
            theirs.close()
            running[ours] = s, process
        _listen(running, seconds, say)
        return seen, left_behind(folder)


def left_behind(folder: Path) -> list[str]:
    """Files that nobody will take away.

    A killed worker cannot remove its own folder and the lock on it: Dask does when the next worker
    comes to the same place. After the last kill none does, so that step is taken here.
    """
    for place in list(folder.rglob("dask-scratch-space")):
        from distributed.diskutils import WorkSpace

        WorkSpace(str(place)).new_work_dir(prefix="next-").release()
    files = [path for path in folder.rglob("*") if path.is_file()]
    left = [file for file in files if file.name not in KEPT_BY_DASK]
    return sorted(file.relative_to(folder).as_posix() for file in left)


def _listen(running: dict, seconds: float, say) -> None:
    told = began = time.monotonic()
    heard = dict.fromkeys(running, began)
    while running:
        for pipe in pipes.wait(list(running), timeout=5):
            s, process = running[pipe]
            heard[pipe] = time.monotonic()
            try:
                message = pipe.recv()
                _note(s, message)
                if isinstance(message, str):  # the others go on, and may take an hour
                    say(f"{s.kind}: {message}", flush=True)
            except EOFError:
                process.join()
                if process.exitcode and not s.trouble:
                    s.trouble = f"the process ended with {process.exitcode}"
                del running[pipe]
        for pipe in [p for p in running if time.monotonic() - heard[p] > PATIENCE]:
            s, process = running.pop(pipe)
            s.trouble = f"nothing was heard for {PATIENCE:.0f} s"
            process.kill()
        if time.monotonic() > told + 60:
            told = time.monotonic()
            turns = ", ".join(f"{s.kind} {s.turns}" for s, _ in running.values())
            say(f"{(told - began) / 60:.0f} of {seconds / 60:g} minutes: {turns}", flush=True)


def _note(s: Seen, message) -> None:
    if isinstance(message, str):
        s.trouble = message
        return
    compared, memory, files, s.counts = message
    s.turns += 1
    s.compared += compared
    s.memory.append(memory)
    s.handles.append(files)


@contextmanager
def own_folder():
    """An empty folder in which the processes work and leave their temporary files, if any."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    (folder / "tmp").mkdir()
    (folder / "here").mkdir()
    came_from, before = Path.cwd(), dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(came_from), before.get("PYTHONPATH", "")])
    for name in ("TMPDIR", "DASK_TEMPORARY_DIRECTORY", "JOBLIB_TEMP_FOLDER"):
        os.environ[name] = str(folder / "tmp")
    os.chdir(folder / "here")
    try:
        yield folder
    finally:
        os.chdir(came_from)
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder)
