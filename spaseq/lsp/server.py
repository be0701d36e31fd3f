"""The Language Server Protocol, by pygls: diagnostics, hover and completion (`spaseq.lsp.editing`)."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import ServerTextPosition, ServerTextRange, TextDocument

from spaseq.lsp.editing import meaning, remarks, words_at
from spaseq.studio.workers import Worker
from spaseq.version import VERSION
from spaseq.words import LANGUAGES, language_of

__all__ = ["language_server", "serve"]

_PAUSE: Final = 0.15
"""Seconds without a change before a text is checked."""
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_SEVERITY: Final = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_KINDS: Final = {
    "keyword": types.CompletionItemKind.Keyword,
    "variable": types.CompletionItemKind.Variable,
    "GPM": types.CompletionItemKind.Function,
    "stream": types.CompletionItemKind.Module,
    "prefix": types.CompletionItemKind.Module,
}


def _language(document: TextDocument) -> str | None:
    if document.language_id in LANGUAGES:
        return document.language_id
    return language_of(document.uri)


def _lines(text: str) -> list[str]:
    """Lines with their ends as the protocol has them. pygls ends them at every sign that Python takes for one, a form
    feed or U+2028 in a text as well, so it is asked for nothing that counts lines."""
    return _LINE.findall(text)


def _place(text: str, offset: int) -> ServerTextPosition:
    """In code points."""
    lines = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return ServerTextPosition(len(lines) - 1, len(lines[-1]))


def _range(document: TextDocument, start: int, end: int) -> types.Range:
    text = document.source
    return document.position_codec.range_to_client_units(
        _lines(text), ServerTextRange(_place(text, start), _place(text, end))
    )


def _offset(document: TextDocument, position: types.Position) -> int:
    lines = _lines(document.source)
    if position.line >= len(lines):  # behind the last line's end
        return len(document.source)
    place = document.position_codec.position_from_client_units(lines, position)
    return sum(map(len, lines[: place.line])) + place.character


def language_server(worker: Worker) -> LanguageServer:
    """The server; `worker` checks queries."""
    server = LanguageServer("spaseq", VERSION, types.TextDocumentSyncKind.Full)

    async def checked(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        version = document.version
        await asyncio.sleep(_PAUSE)
        language = _language(document)
        if language is None or server.workspace.get_text_document(uri).version != version:
            return
        text, source = document.source, uri.rpartition("/")[2] or "query"
        found = await asyncio.to_thread(remarks, worker, language, text, source)
        if server.workspace.get_text_document(uri).version != version:
            return
        said = [
            types.Diagnostic(
                _range(document, remark.start, remark.end), remark.text, _SEVERITY[remark.kind], source=language
            )
            for remark in found
        ]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, said, version))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await checked(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await checked(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document, language, offset = _at(params)
        found = None if language is None else meaning(language, document.source, offset)
        if found is None:
            return None
        start, end, text = found
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), _range(document, start, end))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["?", "$"]))
    def completion(params: types.CompletionParams) -> types.CompletionList:
        document, language, offset = _at(params)
        words = [] if language is None else words_at(language, document.source, offset)
        items = [_item(document, offset, word.text, word.kind) for word in words]
        return types.CompletionList(is_incomplete=False, items=items)

    def _at(params: Any) -> tuple[TextDocument, str | None, int]:
        """The document, its language and the offset; no language for a document that is not open."""
        document = server.workspace.get_text_document(params.text_document.uri)
        language = None if document.version is None else _language(document)
        return document, language, 0 if language is None else _offset(document, params.position)

    return server


def _item(document: TextDocument, offset: int, text: str, kind: str) -> types.CompletionItem:
    """The word in place of what of it has been written: editors differ in whether `?` belongs to a word."""
    source = document.source
    start = offset
    while start > 0 and (source[start - 1].isalnum() or source[start - 1] in "_-?$"):
        start -= 1
    edit = types.TextEdit(_range(document, start, offset), text)
    return types.CompletionItem(text, kind=_KINDS[kind], detail=kind, filter_text=text, text_edit=edit)


def serve() -> None:
    """Serves standard input until it ends."""
    worker = Worker()
    worker.warm()
    try:
        language_server(worker).start_io()
    finally:
        worker.close()
