"""`spaseq lsp`."""

from __future__ import annotations

import argparse
import importlib.util
from typing import Any

from spaseq.core.errors import OptionError


def add_lsp(commands: Any) -> None:
    """Adds `lsp` to a command."""
    about = (
        "Serve an editor by the Language Server Protocol, over standard input and output; queries of both languages."
    )
    parser = commands.add_parser("lsp", help="the language server, for editors", description=about)
    parser.set_defaults(command=_serve)


def _serve(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("pygls") is None:
        raise OptionError("the language server needs pygls", "pip install 'spaseq[lsp]'")
    from spaseq.tools.lsp.server import serve

    serve()
    return 0
