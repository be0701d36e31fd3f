"""Empty graphs of TriG, `:g { }`, which the parser does not report: each gets a statement that stands for none.

RDF 1.1 has named graphs without triples, and to [SPAseq] such a graph with a time is an event. Only the text has them.
It is searched just enough to find a `{` that only blanks and comments divide from its `}`, outside of IRIs, strings,
comments and escapes; the parser resolves the name.
"""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "urn:x-spaseq:empty-graph"
"""Subject, predicate and object of the statement that is put into an empty graph."""

_STATEMENT: Final = f"<{MARK}><{MARK}><{MARK}>".encode()
_TOKEN: Final = re.compile(
    rb"""\#.*                                           # a comment
    | \"\"\" | '''                                      # a long string begins
    | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'
    | <[^<>"{}|^`\s]*>
    | \\.                                               # an escape in a name
    | [^\s\#"'<\\{}]+ | \S""",
    re.VERBOSE,
)
_LONG_END: Final = {quote: re.compile(rb"(?:[^\\]|\\.)*?" + quote, re.DOTALL) for quote in (b'"""', b"'''")}


_OF_INTEREST: Final = re.compile(rb"""\{(?:\s|\#.*)*(?:\}|\Z)|\"\"\"|'''""")


class EmptyGraphs:
    """Reads the lines of a TriG document in order. `waiting`: marks that were put in and did not come back.

    PERF: text that cannot hold an empty graph, nor begin one or a long string, is searched at once and not cut into
    tokens. 30,000 graphs of three triples take 4.3 s with and without; 6.2 s if each line is tokenised.
    """

    def __init__(self) -> None:
        self.waiting: int = 0
        self._looks = False
        self._quote = b""  # of the long string that a line begins in
        self._opened = False  # a graph has begun, and holds nothing so far
        self._places: list[int] = []

    def begin(self, lines: bytes) -> None:
        """The lines to come next, all that there are."""
        self._looks = self._opened or bool(self._quote) or _OF_INTEREST.search(lines) is not None

    def marked(self, line: bytes) -> bytes:
        """The line with a statement in each graph that ends in it empty."""
        self._places = []
        at = 0 if self._looks else len(line)
        while at < len(line):
            at = self._token(line, at)
        if not self._places:
            return line
        self.waiting += len(self._places)
        parts = [line[start:end] for start, end in zip([0, *self._places], [*self._places, None], strict=True)]
        return _STATEMENT.join(parts)

    def column(self, line: bytes, column: int) -> int:
        """A column (from 1) of the marked text of the last line, in its own text."""
        for place in self._places:
            if len(line[:place].decode(errors="replace")) < column - 1:
                column = max(column - len(_STATEMENT), len(line[:place].decode(errors="replace")) + 1)
        return column

    def _token(self, line: bytes, at: int) -> int:
        """The end of the token that begins at `at`."""
        if self._quote:
            end = _LONG_END[self._quote].match(line, at)
            self._quote = b"" if end else self._quote
            return end.end() if end else len(line)
        found = _TOKEN.search(line, at)
        if found is None:
            return len(line)
        token = found[0]
        if token == b"}" and self._opened:
            self._places.append(found.start())
        if not token.startswith(b"#"):
            self._opened = token == b"{"
        if token in _LONG_END:
            self._quote = token
        return found.end()
