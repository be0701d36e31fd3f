"""The language server of both languages, for editors: `spaseq lsp`, over standard input and output.

`editing` says what is wrong with a text, what a word in it means and what may be written next; `server` says it in the
Language Server Protocol (pygls, the extra `lsp`); `options` has the command. Errors are those of `check`, from the
studio's process (`spaseq.tools.studio.workers`). What words mean is in `hovers.json`, made of the references by
`python -m tests.support.hovers`.
"""

from __future__ import annotations

from spaseq.tools.lsp.options import add_lsp

__all__ = ["add_lsp"]
