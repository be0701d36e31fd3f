"""`studio`: its words, for both commands, and its start."""

from __future__ import annotations

import argparse
import importlib.util
import secrets
import socket
import threading
import webbrowser
from types import FrameType
from typing import Any, Final

from spaseq.command.options import add_times, count
from spaseq.errors import OptionError

__all__ = ["add_studio", "add_studio_words"]

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
    events.add_argument("--valuations", action="store_true", help="say which variable took which events (CEQL)")
    events.add_argument("--event-by", metavar="graph|subject|size:N", help="what makes an event (SPAseq)")
    events.add_argument("--ties", metavar="instant|arrival", help="graphs of equal time (SPAseq)")
    events.add_argument("--malformed", metavar="drop|error", help="lines that cannot be read (SPAseq)")
    events.add_argument("--entailment", choices=("rdfs", "owl-rl"), help="reason over the knowledge (SPAseq)")
    add_times(events, "column or predicate", "what the events have, else arrival")
    parser.set_defaults(time_unit=None, interval=None, lateness=None, late=None)
    page = parser.add_argument_group("page")
    page.add_argument("--port", type=count, default=0, metavar="N", help="port of this machine (a free one)")
    page.add_argument("--no-browser", action="store_true", help="print the address only")


def _serve(options: argparse.Namespace, command: str) -> int:
    """Serves the page until Ctrl-C."""
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(f"the studio needs {' and '.join(missing)}", "pip install 'spaseq[studio]'")
    import uvicorn

    from spaseq.studio.server import application
    from spaseq.studio.setups import examples, of_command_line

    words = argparse.ArgumentParser()
    add_studio_words(words)
    own = of_command_line(options, command)
    known = sorted(examples(words.parse_args), key=lambda setup: setup.language != command)
    token = secrets.token_urlsafe(24)
    app = application(token, ([own] if own else []) + known)
    listening = _bound(options.port)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/#token={token}"
    print(f"studio: {address}\nCtrl-C ends it", flush=True)
    app.state.warm()
    if not options.no_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    try:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        ending = server.handle_exit

        def handle_exit(sig: int, frame: FrameType | None) -> None:
            # The server waits for the answers that it owes, and so for a run: that ends now. The thread, because a
            # handler of signals must not wait for a lock.
            threading.Thread(target=app.state.close, daemon=True).start()
            ending(sig, frame)

        server.handle_exit = handle_exit  # type: ignore[method-assign]
        server.run(sockets=[listening])
    finally:
        app.state.close()
    return 0


def _bound(port: int) -> socket.socket:
    """A socket of this machine alone. Raises `OptionError` where the port is taken."""
    found = socket.socket()
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
        found.listen(128)  # from now on who opens the address waits for the server, and is not refused
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"--port {port}: {reason}", "leave --port out, and a free one is taken") from None
    return found
