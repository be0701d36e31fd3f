"""`studio`: its words, for both commands, and its start."""

from __future__ import annotations

import argparse
import importlib.util
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.tools.command.late import late_file
from spaseq.tools.command.options import add_text_form, add_times, count

_ABOUT: Final = (
    "Open a page on this machine with a query, its events, its matches and its automaton. Queries of both languages; "
    "it begins with what the command line names, else with an example."
)


def add_studio(commands: Any, command: str) -> None:
    """Adds `studio` to a command, `ceql` or `spaseq`."""
    parser = commands.add_parser("studio", help="open a page to write and try queries", description=_ABOUT)
    add_studio_words(parser)
    parser.set_defaults(command=lambda options: _serve(options, command))


def add_studio_words(parser: argparse.ArgumentParser) -> None:
    """Adds the words of `studio`."""
    parser.add_argument("query", nargs="?", metavar="QUERY", help="file of the query; its suffix tells the language")
    parser.add_argument("--language", choices=("ceql", "spaseq"), help="the language, where no suffix tells it")
    inputs = parser.add_argument_group("input, as of run")
    inputs.add_argument("--events", action="append", default=[], metavar="FILE", help="events (CEQL)")
    inputs.add_argument("--stream", action="append", default=[], metavar="NAME=FILE[,FILE…]", help="files of a stream")
    inputs.add_argument("--kb", action="append", default=[], metavar="IRI=FILE[,FILE…]",
                        help="background knowledge for GRAPH <IRI> (SPAseq)")  # fmt: skip
    inputs.add_argument("--groups", action="append", default=[], metavar="IRI=PROPERTY[,PROPERTY…]",
                        help="groups of what these connect (SPAseq)")  # fmt: skip
    events = parser.add_argument_group("events and time, as of run")
    events.add_argument("--type-column", metavar="COLUMN", help="column of the event type (CEQL)")
    events.add_argument("--type", metavar="NAME", help="type of all events (CEQL)")
    events.add_argument("--valuations", action="store_true", help="say which variable took which events (CEQL)")
    events.add_argument("--event-by", metavar="graph|subject|size:N", help="what makes an event (SPAseq)")
    events.add_argument("--ties", metavar="instant|arrival", help="graphs of equal time (SPAseq)")
    events.add_argument("--malformed", metavar="drop|error", help="lines that cannot be read (SPAseq)")
    events.add_argument("--entailment", choices=("rdfs", "owl-rl"), help="reason over the knowledge (SPAseq)")
    add_times(events, "column or predicate", "what the events have")
    add_text_form(parser.add_argument_group("text files of events (CEQL), as of run"))
    parser.set_defaults(time_unit=None, interval=None, lateness=None, late=None)
    page = parser.add_argument_group("page")
    page.add_argument("--port", type=count, default=0, metavar="N", help="port of this machine (a free one)")
    page.add_argument("--no-browser", action="store_true", help="print the address only")


def _serve(options: argparse.Namespace, command: str) -> int:
    """Serves the page until Ctrl-C."""
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(f"the studio needs {' and '.join(missing)}", "pip install 'spaseq[studio]'")
    if late_file(options) is not None:
        raise OptionError("--late FILE is not of the studio", "--late drop counts late events; run writes them")
    import uvicorn

    from spaseq.tools.studio.server import application
    from spaseq.tools.studio.setups import examples, of_command_line

    words = argparse.ArgumentParser()
    add_studio_words(words)
    own = of_command_line(options, command)
    known = sorted(examples(words.parse_args), key=lambda setup: setup.language != command)
    token = secrets.token_urlsafe(24)
    app = application(token, ([own] if own else []) + known)
    listening = _bind(options.port)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/#token={token}"
    print(f"studio: {address}\nCtrl-C ends it", flush=True)
    app.state.warm()
    folder = tempfile.TemporaryDirectory(prefix="spaseq-browser-", ignore_cleanup_errors=True)

    def end() -> None:
        app.state.close()
        folder.cleanup()

    try:
        if not options.no_browser:
            page = _leading_page(address, folder.name)
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        ending = server.handle_exit

        def handle_exit(sig: int, frame: FrameType | None) -> None:
            # The server waits for the answers that it owes, and so for a run: that ends now. The thread, because a
            # handler of signals must not wait for a lock.
            threading.Thread(target=end, daemon=True).start()
            ending(sig, frame)

        server.handle_exit = handle_exit  # type: ignore[method-assign]
        server.run(sockets=[listening])
    finally:
        end()
    return 0


def _leading_page(address: str, folder: str) -> str:
    """The address of a page that leads to `address`, and that nobody else may read.

    The browser is started with it, because other users see the words of commands, and `address` has the token.
    """
    page = Path(folder) / "studio.html"
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html>\n<meta charset="utf-8">\n<title>studio</title>\n'
            f'<meta name="referrer" content="no-referrer">\n<meta http-equiv="refresh" content="0; url={address}">\n'
            f'<p><a href="{address}">The studio</a></p>\n'
        )
    return page.as_uri()


def _bind(port: int) -> socket.socket:
    """A socket of this machine alone. Raises `OptionError` if the port is taken."""
    found = socket.socket()
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
        found.listen(128)  # from now on a browser that opens the address waits for the server, and is not refused
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"--port {port}: {reason}", "leave --port out, and a free one is taken") from None
    return found
