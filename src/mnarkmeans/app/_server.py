"""The server of ``mnarkmeans app``: one page, on this computer only.

Everything lies under a random token in the address. A request without it, for another host or from
another site is refused. Uploads are streamed into a temporary folder under names of our own; the
folder is removed at the end, and after a crash at the next start.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import webbrowser
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePath
from typing import Any

from .._io import require
from ..tables._table import quoted
from ._look import LookError, command_for, look
from ._runs import Run, Runs

require("uvicorn", "app")
require("starlette", "app")

import uvicorn  # noqa: E402 (a clear error comes first)
from starlette.applications import Starlette  # noqa: E402
from starlette.concurrency import run_in_threadpool  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

HOST = "127.0.0.1"
LARGEST_UPLOAD = 8 << 30
PREFIX = "mnarkmeans-app-"
PAGES = {"": "page.html", "page.js": "page.js", "page.css": "page.css"}
# What the page may load and do, and, more narrowly, what a report may: it has scripts of its own.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)


class Refused(Exception):
    """A request that cannot be served; its text is for the person."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class App:
    """What the page works on: files that were dropped, runs, one temporary folder."""

    def __init__(self, folder: Path, token: str, port: int) -> None:
        self.folder, self.token, self.port = folder, token, port
        self.runs = Runs()
        self.files: dict[str, Path] = {}

    def asgi(self) -> Any:
        def route(path: str, answer: Callable[..., Awaitable[Response]], *methods: str) -> Route:
            return Route(f"/{self.token}/{path}", answer, methods=list(methods) or ["GET"])

        routes = [
            *(route(path, self.static) for path in PAGES),
            route("files", self.upload, "POST"),
            route("look", self.look, "POST"),
            route("command", self.command, "POST"),
            route("runs", self.list_runs, "GET"),
            route("runs", self.start, "POST"),
            route("runs/{number:int}/stop", self.stop, "POST"),
            route("runs/{number:int}/continue", self.go_on, "POST"),
            route("runs/{number:int}/apply", self.apply, "POST"),
            route("runs/{number:int}/all.zip", self.archive),
            route("runs/{number:int}/files/{name:path}", self.result),
        ]
        handlers = {Refused: self._refused, LookError: self._refused}
        return Guard(Starlette(routes=routes, exception_handlers=handlers), self.token, self.port)

    async def _refused(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status", 400)
        return JSONResponse({"error": str(error)}, status_code=status)

    async def static(self, request: Request) -> Response:
        name = PAGES[request.url.path.rsplit("/", 1)[1]]
        return FileResponse(Path(__file__).with_name(name))

    async def upload(self, request: Request) -> Response:
        """The body is the file; its name is a parameter."""
        name = safe_name(request.query_params.get("name", ""))
        key = secrets.token_hex(8)
        path = self.folder / key / name
        path.parent.mkdir()
        room = min(LARGEST_UPLOAD, shutil.disk_usage(self.folder).free // 2)
        written = 0
        try:
            with path.open("wb") as file:
                async for chunk in request.stream():
                    written += len(chunk)
                    if written > room:
                        raise Refused(
                            f"{name} is larger than {room / 2**30:.1f} GB, the most this page "
                            "takes. Use the command line: it reads the file where it is.", 413
                        )  # fmt: skip
                    await run_in_threadpool(file.write, chunk)
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
        if not written:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise Refused(f"{name} is empty.")
        self.files[key] = path
        return JSONResponse({"file": key, "name": name, "size": written})

    async def look(self, request: Request) -> Response:
        given = await self._json(request)
        return JSONResponse(await run_in_threadpool(look, self._file(given), given))

    async def command(self, request: Request) -> Response:
        """What to type for the same result."""
        given = await self._json(request)
        name = self._file(given).name
        words = ["mnarkmeans", *command_for(name, given, out=f"{Path(name).stem}-clusters")]
        return JSONResponse({"command": " ".join(map(quoted, words))})

    async def list_runs(self, request: Request) -> Response:
        return JSONResponse([run.describe() for run in self.runs.all])

    async def start(self, request: Request) -> Response:
        given = await self._json(request)
        path = self._file(given)
        number = len(self.runs.all) + 1
        arguments = command_for(path.name, given, out=f"result{number}")
        k = str(given["clusters"])
        many = f"{k.replace(':', ' to ')} cluster{'s' * (k != '1')}"
        run = self.runs.add(
            f"{many} of {path.name}", path, arguments, path.parent / f"result{number}"
        )
        return JSONResponse(run.describe(), status_code=201)

    async def stop(self, request: Request) -> Response:
        run = self._run(request)
        await run_in_threadpool(self.runs.stop, run)
        return JSONResponse(run.describe())

    async def go_on(self, request: Request) -> Response:
        run = self._run(request)
        self.runs.again(run)
        return JSONResponse(run.describe())

    async def apply(self, request: Request) -> Response:
        """Labels for, or missing values filled in, another file (or the same) with this model."""
        run, given = self._run(request), await self._json(request)
        verb = given.get("verb")
        if verb not in ("predict", "impute") or run.state != "done" or not run.out.is_dir():
            raise Refused("There is no model to apply.")
        path = self._file(given) if given.get("file") else run.folder / run.file
        suffix = path.suffix if verb == "impute" and path.suffix != ".gz" else ".csv"
        ending = "labels.csv" if verb == "predict" else f"filled{suffix}"
        number = len(self.runs.all) + 1
        out = path.parent / f"{path.stem}-{number}-{ending}"
        model = os.path.relpath(run.out, path.parent)
        what = "labels for" if verb == "predict" else "missing values filled in"
        arguments = [verb, model, path.name, "-o", out.name]
        made = self.runs.add(f"{what} {path.name}, with run {run.number}", path, arguments, out)
        return JSONResponse(made.describe(), status_code=201)

    async def result(self, request: Request) -> Response:
        run, name = self._run(request), request.path_params["name"]
        if name not in run.files():  # the names that the page was given, and no other path
            raise Refused("There is no such file.", 404)
        path = run.out / name if run.out.is_dir() else run.out
        if name.endswith(".html") and "download" not in request.query_params:
            return FileResponse(path, headers={"Content-Security-Policy": REPORT_POLICY})
        return FileResponse(path, filename=path.name)

    async def archive(self, request: Request) -> Response:
        run = self._run(request)
        path = run.out.with_name(f"{run.out.name}.zip")
        await run_in_threadpool(write_archive, run, path)
        return FileResponse(path, filename=f"{Path(run.file).stem}-{run.out.name}.zip")

    async def _json(self, request: Request) -> dict[str, Any]:
        try:
            given = await request.json()
        except ValueError:
            given = None
        if not isinstance(given, dict):
            raise Refused("The request is not one of this page.")
        return given

    def _file(self, given: dict[str, Any]) -> Path:
        path = self.files.get(str(given.get("file")))
        if path is None:
            raise Refused("This file is no longer here; drop it again.", 404)
        return path

    def _run(self, request: Request) -> Run:
        try:
            return self.runs.get(request.path_params["number"])
        except KeyError:
            raise Refused("There is no such run.", 404) from None


class Guard:
    """Refuses requests without the token, for another host, or from another page."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1")
                   for name, value in scope["headers"]}  # fmt: skip
        token = scope["path"].split("/")[1] if "/" in scope["path"] else ""
        allowed = (
            scope["type"] == "http"
            and headers.get("host") in self.hosts
            and headers.get("origin", "null-or-same") in {*self.origins, "null-or-same"}
            and secrets.compare_digest(token.encode(), self.token.encode())
        )
        if not allowed:
            await PlainTextResponse("Refused.", status_code=403)(scope, receive, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                for name, value in {
                    b"content-security-policy": PAGE_POLICY.encode(),
                    b"x-content-type-options": b"nosniff",
                    b"referrer-policy": b"no-referrer",
                    b"cross-origin-resource-policy": b"same-origin",
                    b"cache-control": b"no-store",
                }.items():
                    if name not in present:
                        message["headers"].append((name, value))
            await send(message)

        await self.app(scope, receive, guarded)


def safe_name(name: str) -> str:
    """The last part of a name, without anything a path or a command could trip over."""
    last = PurePath(name.replace("\\", "/")).name
    kept = re.sub(r"[^\w.()+\- ]", "_", last).strip(" .-")[-120:]
    return kept or "table.csv"


def write_archive(run: Run, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in run.files():
            archive.write(run.out / name if run.out.is_dir() else run.out, name)


def remove_leftovers(parent: Path) -> None:
    """Folders of earlier apps that were killed: their process is gone."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if not is_running(int((folder / "pid").read_text())):
                shutil.rmtree(folder, ignore_errors=True)


def is_running(pid: int) -> bool:
    if sys.platform == "win32":
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x1000, False, pid)
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def serve(port: int = 0, *, browser: bool = True, say: Callable[[str], None] = print) -> None:
    """Run the app until Ctrl-C.

    Parameters
    ----------
    port : int, default=0
        Port on 127.0.0.1; 0 takes a free one.
    browser : bool, default=True
        Open the page in the browser.
    say : callable
        Takes the line with the address.

    Examples
    --------
    >>> from mnarkmeans.app import serve
    >>> serve(browser=False)  # doctest: +SKIP
    http://127.0.0.1:40361/cyLowsoDA4ES7ztZR6eOMw/
    """
    parent = Path(tempfile.gettempdir())
    remove_leftovers(parent)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise ValueError(
                f"port {port} cannot be used ({error.strerror}); name another"
            ) from None
        listening.listen()  # from here on the address answers
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(16)
        address = f"http://{HOST}:{port}/{token}/"
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        (folder / "pid").write_text(str(os.getpid()))
        app = App(folder, token, port)
        try:
            server = uvicorn.Server(
                uvicorn.Config(
                    app.asgi(),
                    log_level="error",
                    lifespan="off",
                    timeout_graceful_shutdown=1,
                    server_header=False,
                )
            )
            say(address)
            if browser:
                threading.Timer(0.5, webbrowser.open, (address,)).start()
            with contextlib.suppress(KeyboardInterrupt):
                server.run(sockets=[listening])
        finally:
            app.runs.close()
            shutil.rmtree(folder, ignore_errors=True)
