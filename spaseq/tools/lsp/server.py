"""The Language Server Protocol, by pygls: diagnostics, hover and completion (`spaseq.tools.lsp.editing`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import ServerTextPosition, ServerTextRange, TextDocument

from spaseq.core.words import LANGUAGES, language_of
from spaseq.tools.lsp.editing import Remark, is_large, meaning, remarks, words_at
from spaseq.tools.studio.workers import Worker
from spaseq.version import VERSION

_PAUSE: Final = 0.15
"""Seconds without a change before a text is checked."""
_OFFERED: Final = 300
"""Words of a completion. Of more words the editor gets those that begin as the text does, and asks again."""
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
    "function": types.CompletionItemKind.Function,
    "stream": types.CompletionItemKind.Module,
    "prefix": types.CompletionItemKind.Module,
}


def _language(document: TextDocument) -> str | None:
    if document.language_id in LANGUAGES:
        return document.language_id
    return language_of(document.uri)


def _lines(text: str) -> list[str]:
    """Lines with their ends as the protocol has them. The library pygls ends lines at every sign that Python takes for
    a line end, also at a form feed or U+2028 in a text. So it is not used to count lines."""
    return _LINE.findall(text)


def _place(text: str, offset: int) -> ServerTextPosition:
    """In code points."""
    lines = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return ServerTextPosition(len(lines) - 1, len(lines[-1]))


def _range(document: TextDocument, lines: list[str], start: int, end: int) -> types.Range:
    """The range between two offsets. `lines`: those of the document, made once for several ranges."""
    text = document.source
    return document.position_codec.range_to_client_units(lines, ServerTextRange(_place(text, start), _place(text, end)))


def _offset(document: TextDocument, position: types.Position) -> int:
    lines = _lines(document.source)
    if position.line >= len(lines):  # behind the last line's end
        return len(document.source)
    place = document.position_codec.position_from_client_units(lines, position)
    return sum(map(len, lines[: place.line])) + place.character


class _Checks:
    """The checks of open documents, one at a time, by a process, so that the server answers meanwhile."""

    def __init__(self, server: LanguageServer, worker: Worker) -> None:
        self._server = server
        self._worker = worker
        self._turn = asyncio.Lock()
        self._checked: str | None = None
        """The document that the process is checking."""

    async def check(self, uri: str) -> None:
        """Check a document and publish the findings, unless it has changed meanwhile. A check of an older version is
        ended."""
        try:
            await self._check(uri)
        except asyncio.CancelledError:  # the server ends
            self._worker.close()

    async def _check(self, uri: str) -> None:
        document = self._server.workspace.get_text_document(uri)
        version = document.version

        def is_latest() -> bool:
            return self._server.workspace.get_text_document(uri) is document and document.version == version

        await asyncio.sleep(_PAUSE)
        language = _language(document)
        if language is None or not is_latest():
            return
        self.stop(uri)
        async with self._turn:
            if not is_latest():
                return
            text, self._checked = document.source, uri
            found = await asyncio.to_thread(self._find, uri, language, text)
            self._checked = None
        if is_latest():
            said = _diagnostics(document, language, found)
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, said, version))

    def _find(self, uri: str, language: str, text: str) -> list[Remark]:
        if self._checked != uri:  # stopped before the thread began
            return []
        return remarks(self._worker, language, text, uri.rpartition("/")[2] or "query")

    def stop(self, uri: str) -> None:
        """End the check of a document, if it is being checked."""
        if self._checked == uri:
            self._checked = None
            self._worker.cancel()


def _diagnostics(document: TextDocument, language: str, found: Iterable[Remark]) -> list[types.Diagnostic]:
    lines = _lines(document.source)
    return [
        types.Diagnostic(
            _range(document, lines, remark.start, remark.end), remark.text, _SEVERITY[remark.kind], source=language
        )
        for remark in found
    ]


def language_server(worker: Worker) -> LanguageServer:
    """The server; `worker` checks queries."""
    server = LanguageServer("spaseq", VERSION, types.TextDocumentSyncKind.Full)
    checks = _Checks(server, worker)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await checks.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def change(params: types.DidChangeTextDocumentParams) -> None:
        await checks.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        checks.stop(params.text_document.uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document, language, offset = _at(params)
        found = None if language is None else meaning(language, document.source, offset)
        if found is None:
            return None
        start, end, text = found
        place = _range(document, _lines(document.source), start, end)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), place)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["?", "$"]))
    def completion(params: types.CompletionParams) -> types.CompletionList:
        document, language, offset = _at(params)
        if language is None:
            return types.CompletionList(is_incomplete=False, items=[])
        start = _word_start(document.source, offset)
        place = _range(document, _lines(document.source), start, offset)
        words = words_at(language, document.source, offset)
        many = len(words) > _OFFERED
        if many:
            begun = document.source[start:offset].lower()
            words = [word for word in words if word.text.lower().startswith(begun)][:_OFFERED]
        return types.CompletionList(many, [_item(place, word.text, word.kind) for word in words])

    @server.feature(types.SHUTDOWN)
    def shutdown(params: None) -> None:
        worker.close()

    def _at(params: Any) -> tuple[TextDocument, str | None, int]:
        """The document, its language and the offset; no language for a document that is not open, or too large."""
        document = server.workspace.get_text_document(params.text_document.uri)
        language = None if document.version is None or is_large(document.source) else _language(document)
        return document, language, 0 if language is None else _offset(document, params.position)

    return server


def _word_start(text: str, offset: int) -> int:
    """The start of the word that ends at a place. Editors differ on `?`: some count it as a part of the word."""
    while offset > 0 and (text[offset - 1].isalnum() or text[offset - 1] in "_-?$"):
        offset -= 1
    return offset


def _item(place: types.Range, text: str, kind: str) -> types.CompletionItem:
    edit = types.TextEdit(place, text)
    return types.CompletionItem(text, kind=_KINDS[kind], detail=kind, filter_text=text, text_edit=edit)


def serve() -> None:
    """Serves standard input until it ends."""
    worker = Worker()
    worker.warm()
    try:
        language_server(worker).start_io()
    finally:
        worker.close()
