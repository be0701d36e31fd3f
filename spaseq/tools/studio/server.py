"""The HTTP of the studio: the page, and the four addresses that it requests.

Only clients with the token, which is in the address that the command prints, get answers of the interface. Only pages
of this server may send requests (`Host`, no CORS). The page loads nothing but its own files (CSP). All answers are
JSON, errors included.
"""

from __future__ import annotations

import hmac
import json
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from spaseq.core.errors import OptionError
from spaseq.core.words import LANGUAGES, patterns
from spaseq.tools.studio.replies import VERSION, failure
from spaseq.tools.studio.requests import BODY, job
from spaseq.tools.studio.setups import Setup
from spaseq.tools.studio.workers import Worker

TOKEN: Final = "x-spaseq-token"
"""The header of the token."""
_CHECK_SECONDS: Final = 30.0
_HOSTS: Final = ("127.0.0.1", "localhost")
_PAGE: Final = {
    "/": ("index.html", "text/html"),
    "/studio.css": ("studio.css", "text/css"),
    "/studio.js": ("studio.js", "text/javascript"),
    "/editor.js": ("editor.js", "text/javascript"),
}
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def application(token: str, setups: Iterable[Setup]) -> Starlette:
    """The application; the page begins with the first of the setups. `state.close()` ends its processes."""
    studio = _Studio(token, setups)
    routes = [Route(path, studio.file, methods=["GET"]) for path in _PAGE]
    routes += [
        Route("/api/examples", studio.guarded(studio.examples), methods=["GET"]),
        Route("/api/check", studio.guarded(studio.check), methods=["POST"]),
        Route("/api/run", studio.guarded(studio.run), methods=["POST"]),
        Route("/api/cancel", studio.guarded(studio.cancel), methods=["POST"]),
    ]
    found = Starlette(routes=routes, exception_handlers={HTTPException: _refuse})
    found.state.close = studio.close
    found.state.warm = studio.warm
    return found


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer(failure(error.detail), error.status_code)


def _answer(form: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(form), status, _HEADERS, "application/json")


Endpoint = Callable[[Request], Awaitable[Response]]


class _Studio:
    """The state of a studio: its setups, and the processes, one for checks and one for runs."""

    def __init__(self, token: str, setups: Iterable[Setup]) -> None:
        self._token = token.encode()
        self._setups = {setup.name: setup for setup in setups}
        self._checker = Worker()
        self._runner = Worker()
        self._running = threading.Lock()

    def warm(self) -> None:
        """Starts the processes."""
        self._checker.warm()
        self._runner.warm()

    def close(self) -> None:
        """Ends the processes."""
        self._checker.close()
        self._runner.close()

    def guarded(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint, for clients with the token and this host."""

        async def checked(request: Request) -> Response:
            if refused := _foreign(request):
                return refused
            if not hmac.compare_digest(request.headers.get(TOKEN, "").encode(), self._token):
                hint = "open the address that the command printed; it ends with the token"
                return _answer(failure("this needs the token of the studio", hint), 403)
            try:
                return await endpoint(request)
            except OptionError as error:
                return _answer(failure(error.problem, error.hint, "Request"), 400)
            except ClientDisconnect:
                return _answer(failure("the request was broken off"), 400)

        return checked

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        if refused := _foreign(request):
            return refused
        name, kind = _PAGE[request.url.path]
        text = files("spaseq.tools.studio").joinpath("page", name).read_text("utf-8")
        return Response(text, 200, _HEADERS, kind)

    async def examples(self, request: Request) -> Response:
        """All setups by name, or one of them whole."""
        name = request.query_params.get("name")
        if name is None:
            known = [setup.form(whole=False) for setup in self._setups.values()]
            colours = {language: patterns(language) for language in LANGUAGES}
            return _answer({"version": VERSION, "errors": [], "examples": known, "patterns": colours})
        if name not in self._setups:
            return _answer(failure(f"there is no example {name!r}"), 404)
        form = await run_in_threadpool(self._setups[name].form, whole=True)
        return _answer({"version": VERSION, "errors": [], **form})

    async def check(self, request: Request) -> Response:
        """The findings about a query; the answer to a query that is wrong is 200 too."""
        asked = job(await _body(request), "check", self._setups)
        seconds = min(asked.request["seconds"], _CHECK_SECONDS)
        found = await run_in_threadpool(self._checker.ask, {**asked.request, "seconds": seconds}, seconds)
        return _answer(found)

    async def run(self, request: Request) -> Response:
        """The first matches; 409 while another run is going on."""
        asked = job(await _body(request), "run", self._setups)

        def ran() -> dict[str, Any] | None:
            if not self._running.acquire(blocking=False):
                return None
            cancels = self._runner.cancels
            try:
                with tempfile.TemporaryDirectory(prefix="spaseq-studio-", ignore_cleanup_errors=True) as folder:
                    return self._runner.ask(asked.written(folder), asked.request["seconds"], cancels)
            finally:
                self._running.release()

        found = await run_in_threadpool(ran)
        if found is None:
            return _answer(failure("a run is going on", "cancel it first, or wait"), 409)
        return _answer(found)

    async def cancel(self, request: Request) -> Response:
        """Ends the run that is going on."""
        stopped = self._running.locked()
        if stopped:
            await run_in_threadpool(self._runner.cancel)
            self._runner.warm()
        return _answer({"version": VERSION, "errors": [], "stopped": stopped})


def _foreign(request: Request) -> Response | None:
    """The refusal of a request that was sent to another host: a page elsewhere that has its name point here."""
    host = request.headers.get("host", "")
    if host.rpartition(":")[0] in _HOSTS or host in _HOSTS:
        return None
    return _answer(failure(f"this is not the host {host!r}", "open the address that the command printed"), 400)


async def _body(request: Request) -> Any:
    """The body as JSON. Raises `OptionError`, and `HTTPException` for one that is too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY:
            raise HTTPException(413, f"a request has at most {BODY:,} bytes")
        parts.append(part)
    try:
        return json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise OptionError("the request is no JSON") from None
