"""The Language Server Protocol, by pygls: diagnostics, hover and completion (`spaseq.lsp.editing`)."""

from __future__ import annotations

import asyncio
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


def _place(text: str, offset: int) -> ServerTextPosition:
    """In code points; lines end as the protocol has it."""
    lines = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return ServerTextPosition(len(lines) - 1, len(lines[-1]))


def _range(document: TextDocument, start: int, end: int) -> types.Range:
    text = document.source
    return document.range_to_client_units(ServerTextRange(_place(text, start), _place(text, end)))


def language_server(worker: Worker) -> LanguageServer:
    """The server; `worker` checks queries."""
    server = LanguageServer("spaseq", VERSION)

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
        document, offset = _at(params)
        language = _language(document)
        found = None if language is None else meaning(language, document.source, offset)
        if found is None:
            return None
        start, end, text = found
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), _range(document, start, end))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["?", "$"]))
    def completion(params: types.CompletionParams) -> types.CompletionList:
        document, offset = _at(params)
        language = _language(document)
        words = [] if language is None else words_at(language, document.source, offset)
        items = [_item(document, offset, word.text, word.kind) for word in words]
        return types.CompletionList(is_incomplete=False, items=items)

    def _at(params: Any) -> tuple[TextDocument, int]:
        document = server.workspace.get_text_document(params.text_document.uri)
        return document, document.offset_at_position(params.position)

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
