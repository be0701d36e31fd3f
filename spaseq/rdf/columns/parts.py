"""Parts of a file, each read into rows with terms of its own, so that several can be read at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spaseq.core.errors import EventError
from spaseq.rdf.columns.scanner import Lines, Scanner
from spaseq.rdf.files import Format
from spaseq.rdf.model import Counters


def parts_of(blocks: Iterable[Lines | None], size: int) -> Iterator[list[Lines]]:
    """The blocks of a file in parts of about `size` bytes."""
    part: list[Lines] = []
    failure = None
    try:
        for block in blocks:
            if block is not None:
                part.append(block)
            if sum(each.size for each in part) >= size:
                yield part
                part = []
    except EventError as error:  # the file cannot be read on: the rows read so far come before the error
        failure = error
    if part:
        yield part
    if failure is not None:
        raise failure


class Part:
    """Some blocks of a file as rows, by a scanner of their own that `make` gives.

    `finish` gets the number of their first line. Until then lines are counted from 0, and lines that only the parser
    can read, with all behind them, are left.
    """

    __slots__ = ("_left", "_lines", "_rest", "scanner")

    def __init__(self, make: Callable[[], Scanner], form: Format, blocks: list[Lines]) -> None:
        self.scanner = make()
        self._lines = 0
        self._rest: tuple[int, int] | None = None
        self._left: list[Lines] = []
        for number, block in enumerate(blocks):
            self._rest = self.scanner.scan(block, form, self._lines)
            if self._rest is not None:
                self._left = blocks[number:]
                break
            self._lines = self.scanner.line

    def finish(self, form: Format, source: str, line: int, counters: Counters) -> int:
        """Read the lines left; the part begins with line number `line` of `source`. Returns the number of the line
        behind it. Raises EventError as `parse_statements` does, behind the rows that come before."""
        scanner = self.scanner
        counters.triples += scanner.counters.triples
        scanner.counters = counters
        scanner.lines[: scanner.count] += line
        line += self._lines
        if self._rest is not None:
            begin, at = self._rest
            rest = begin, line + at - self._lines
            line = scanner.read_rest(rest, self._left[0], form, source, line)
            for block in self._left[1:]:
                line = scanner.read_block(block, form, source, line)
        return line
