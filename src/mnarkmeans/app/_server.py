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
import tempfile
import threading
import webbrowser
from pathlib import Path, PurePath
from typing import Any

from .._io import require
from ..tables._table import quoted
from ._preview import Refused, command_for, preview
from ._runs import Run, Runs

require("uvicorn", "app")
require("starlette", "app")

import uvicorn  # noqa: E402 (a clear error comes first)
from starlette.applications import Starlette  # noqa: E402
from starlette.concurrency import run_in_threadpool  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402
from starlette.middleware.base import BaseHTTPMiddleware  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

HOST = "127.0.0.1"
LARGEST_UPLOAD = 8 << 30
PREFIX = "mnarkmeans-app"  # of temporary folders; the port follows
PAGES = {"": "page.html", "page.js": "page.js", "page.css": "page.css"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# A report has scripts of its own, and may do less than the page.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)


class App:
    """What the page works on: files that were dropped, runs, one temporary folder."""

    def __init__(self, folder: Path, token: str, port: int) -> None:
        self.folder, self.token = folder, token
        self.hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
        self.runs = Runs()
        self.files: dict[str, Path] = {}
        answers = {
            **dict.fromkeys((f"GET {name}" for name in PAGES), self.static),
            "POST files": self.upload,
            "POST preview": self.preview,
            "POST command": self.command,
            "GET runs": self.list_runs,
            "POST runs": self.start,
            "POST runs/{number:int}/stop": self.stop_or_resume,
            "POST runs/{number:int}/resume": self.stop_or_resume,
            "POST runs/{number:int}/apply": self.apply,
            "GET runs/{number:int}/all.zip": self.archive,
            "GET runs/{number:int}/files/{name:path}": self.result,
        }
        routes = [
            Route(f"/{token}/{where.partition(' ')[2]}", answer, methods=where.split()[:1])
            for where, answer in answers.items()
        ]
        self.asgi = Starlette(
            routes=routes,
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=self.guard)],
            exception_handlers={Refused: self.refused},
        )

    async def guard(self, request: Request, answer: Any) -> Response:
        """Refuse requests without the token, for another host, or from another page."""
        host, origin = request.headers.get("host"), request.headers.get("origin")
        origins = [None, *(f"http://{name}" for name in self.hosts)]
        token = request.scope["path"].lstrip("/").partition("/")[0].encode()
        is_own = secrets.compare_digest(token, self.token.encode())
        if host not in self.hosts or origin not in origins or not is_own:
            return PlainTextResponse("Refused.", status_code=403)
        response: Response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    async def refused(self, request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status_code=getattr(error, "status", 400))

    async def static(self, request: Request) -> Response:
        name = PAGES[request.url.path.rsplit("/", 1)[1]]
        return FileResponse(Path(__file__).with_name(name))

    async def upload(self, request: Request) -> Response:
        """The body is the file; its name is a parameter."""
        name, key = safe_name(request.query_params.get("name", "")), secrets.token_hex(8)
        path = self.folder / key / name
        path.parent.mkdir()
        most = min(LARGEST_UPLOAD, shutil.disk_usage(self.folder).free // 2)
        written = 0
        try:
            with path.open("wb") as file:
                async for chunk in request.stream():
                    written += len(chunk)
                    if written > most:
                        raise Refused(
                            f"{name} is larger than {most / 2**30:.1f} GB, the most this page "
                            "takes. Use the command line: it reads the file where it is.", 413
                        )  # fmt: skip
                    await run_in_threadpool(file.write, chunk)
            if not written:
                raise Refused(f"{name} is empty.")
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
        self.files[key] = path
        return JSONResponse({"file": key, "name": name, "size": written})

    async def preview(self, request: Request) -> Response:
        body, path = await self._body(request)
        return JSONResponse(await run_in_threadpool(preview, path, body.get("settings")))

    async def command(self, request: Request) -> Response:
        """What to type for the same result."""
        body, path = await self._body(request)
        words = ["mnarkmeans", *command_for(path.name, body, out=f"{path.stem}-clusters")]
        return JSONResponse({"command": " ".join(map(quoted, words))})

    async def list_runs(self, request: Request) -> Response:
        return JSONResponse([run.describe() for run in self.runs.all])

    async def start(self, request: Request) -> Response:
        body, path = await self._body(request)
        out, k = f"result{len(self.runs.all) + 1}", str(body.get("clusters"))
        arguments = command_for(path.name, body, out)
        title = f"{k.replace(':', ' to ')} cluster{'s' * (k != '1')} of {path.name}"
        return JSONResponse(self.runs.add(title, path, arguments, out).describe(), 201)

    async def stop_or_resume(self, request: Request) -> Response:
        run, act = self._run(request), request.url.path.rsplit("/", 1)[1]
        await run_in_threadpool(self.runs.stop if act == "stop" else self.runs.resume, run)
        return JSONResponse(run.describe())

    async def apply(self, request: Request) -> Response:
        """Labels for, or missing values filled in, another file (or the same) with this model."""
        run = self._run(request)
        body, path = await self._body(request, run.file)
        verb = body.get("verb")
        if verb not in ("predict", "impute") or "model.json" not in run.files():
            raise Refused("There is no model to apply.")
        title, ending = "labels for", "labels.csv"
        if verb == "impute":
            same = path.suffix in (".tsv", ".txt", ".parquet")
            title, ending = "missing values filled in", f"filled{path.suffix if same else '.csv'}"
        out = f"{path.stem}-{len(self.runs.all) + 1}-{ending}"
        arguments = [verb, os.path.relpath(run.out, path.parent), path.name, "-o", out]
        made = self.runs.add(f"{title} {path.name}, with run {run.number}", path, arguments, out)
        return JSONResponse(made.describe(), 201)

    async def result(self, request: Request) -> Response:
        path = self._run(request).files().get(request.path_params["name"])
        if path is None:  # only the names that the page was given
            raise Refused("There is no such file.", 404)
        if path.suffix == ".html" and "download" not in request.query_params:
            return FileResponse(path, headers={"Content-Security-Policy": REPORT_POLICY})
        return FileResponse(path, filename=path.name)

    async def archive(self, request: Request) -> Response:
        run = self._run(request)
        path = await run_in_threadpool(shutil.make_archive, str(run.out), "zip", run.out)
        return FileResponse(path, filename=f"{run.file.stem}-{run.out.name}.zip")

    async def _body(self, request: Request, file: Path | None = None) -> tuple[Any, Path]:
        """What the page sent, and the file it is about."""
        try:
            body = await request.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Refused("The app does not understand this request.")
        path = self.files.get(str(body.get("file"))) if body.get("file") else file
        if path is None:
            raise Refused("This file is no longer here; drop it again.", 404)
        return body, path

    def _run(self, request: Request) -> Run:
        number = request.path_params["number"]
        if not 1 <= number <= len(self.runs.all):
            raise Refused("There is no such run.", 404)
        return self.runs.all[number - 1]


def safe_name(name: str) -> str:
    """The last part of a name, without anything a path or a command could trip over."""
    last = PurePath(name.replace("\\", "/")).name
    return re.sub(r"[^\w.()+\- ]", "_", last)[-120:].strip(" .-") or "table.csv"


def remove_leftovers() -> None:
    """Folders of earlier apps that were killed: nobody answers at their port."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}-*-*"):
        with contextlib.suppress(ValueError, OverflowError), socket.socket() as probe:
            if probe.connect_ex((HOST, int(folder.name.split("-")[2]))) != 0:
                shutil.rmtree(folder, ignore_errors=True)


def serve(port: int = 0, *, browser: bool = True) -> None:
    """Run the app until Ctrl-C, and print its address.

    Parameters
    ----------
    port : int, default=0
        Port on 127.0.0.1; 0 picks a free one.
    browser : bool, default=True
        Open the page in the browser.

    Examples
    --------
    >>> from mnarkmeans.app import serve
    >>> serve(browser=False)  # doctest: +SKIP
    http://127.0.0.1:40361/cyLowsoDA4ES7ztZR6eOMw/
    """
    remove_leftovers()
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            sentence = f"port {port} cannot be used ({error.strerror}); name another"
            raise ValueError(sentence) from None
        listening.listen()  # from here on the address answers
        port, token = listening.getsockname()[1], secrets.token_urlsafe(16)
        address = f"http://{HOST}:{port}/{token}/"
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}-{port}-"))
        app = App(folder, token, port)
        config = uvicorn.Config(
            app.asgi, log_level="error", lifespan="off", timeout_graceful_shutdown=1,
            server_header=False,
        )  # fmt: skip
        try:
            print(address, flush=True)
            if browser:
                threading.Timer(0.5, webbrowser.open, (address,)).start()
            with contextlib.suppress(KeyboardInterrupt):
                uvicorn.Server(config).run(sockets=[listening])
        finally:
            app.runs.close()
            shutil.rmtree(folder, ignore_errors=True)
