"""The language server of both languages, for editors: `spaseq lsp`, over standard input and output.

`editing` has the errors of a text, the meaning of a word and the words that may be written next. `server` serves these
in the Language Server Protocol (pygls, the extra `lsp`). `options` has the command. Errors are those of `check`, from
the studio's process (`spaseq.tools.studio.workers`). The meanings of words are in `hovers.json`, made of the references
by `python -m tests.support.hovers`.
"""

from __future__ import annotations

from spaseq.tools.lsp.options import add_lsp

__all__ = ["add_lsp"]
