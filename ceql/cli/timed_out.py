"""`ceql run --timed-out FILE`: the partial matches that time out, written beside the matches of the same pass.

They are written at the end, since a writer asks for the rows, and that of the matches asks for the events. With
`--follow` there is no end: the rows that some events complete are written at once, by a writer for themselves.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ceql.cli.formats import MATCHES
from ceql.cli.rows import FoundRows
from spaseq.core.errors import OptionError
from spaseq.tools.command import Format, chosen_format, late_file, opened

if TYPE_CHECKING:
    import pyarrow as pa

    from ceql.runtime.timed_out import Telling
    from spaseq.core.events import EventBatch, EventCounters

HELP: Final = (
    "write the partial matches that time out to this file: the step each waited for, since when, and what it took; "
    "in the format of its suffix"
)


def check_options(options: argparse.Namespace) -> None:
    """`OptionError` if --timed-out goes with another option not at all."""
    if options.timed_out is None:
        return
    if options.limit is not None:
        raise OptionError("--timed-out with --limit: then not all events are read", "leave one of them out")
    if options.timed_out in ("-", options.output, late_file(options)):
        raise OptionError("--timed-out is written to a file of its own", "--timed-out FILE.csv")


@contextlib.contextmanager
def timed_out_beside(options: argparse.Namespace, query: Any, matches: Any) -> Iterator[None]:
    """Write the rows of the events that `matches` reads inside, if the options ask for that: at the end, or with
    --follow as they come."""
    if options.timed_out is None:
        yield
        return
    live = options.follow
    form = MATCHES[chosen_format(MATCHES, None, options.timed_out, "jsonl" if live else "table", live=live)]
    timed_out, unit = query.timed_out(), options.time_unit or "s"
    with tempfile.TemporaryFile() as file, opened(options.timed_out, form) as out:

        def begin() -> Telling:
            telling: Telling = timed_out.telling(matches.form_of_times())
            return telling

        if live:
            matches.watched_by(_Passing(begin, timed_out.columns, form, out))
            yield
            return
        spool = _Spool(begin, timed_out.columns, file)
        matches.watched_by(spool)
        yield
        spool.counters = matches.counters
        form.load()(_FoundTimedOut(spool, None, unit), out)


class _FoundTimedOut(FoundRows):
    def closing(self, written: int) -> str:
        """The number of rows."""
        return f"{written:,} partial match{'' if written == 1 else 'es'} timed out\n"


class _Watcher:
    """The evaluation of all steps over the events of a run. It has some members of `ceql.cli.output.Tables`."""

    shown = None
    repeats = False
    by_group = False
    counters: EventCounters

    def __init__(self, begin: Callable[[], Telling], columns: tuple[str, ...]) -> None:
        """`begin` is called once reading has begun, as the form of times is known from then on."""
        self.columns = columns
        self._begin = begin

    @functools.cached_property
    def _telling(self) -> Telling:
        return self._begin()

    def __call__(self, events: EventBatch | int | None) -> None:
        """Take the events that were read; a time (ns) before which none will come; None at their end."""
        telling = self._telling
        if isinstance(events, int):
            table = telling.wait_until(events)
        else:
            table = telling.close() if events is None else telling.advance(events)
        if len(table):
            self.take(table)

    def take(self, table: pa.Table) -> None:
        """Take rows that have timed out."""

    def empty(self) -> pa.Table:
        """The table of no rows."""
        return self._telling.empty


class _Passing(_Watcher):
    """The rows, in the file as soon as they have timed out."""

    def __init__(self, begin: Callable[[], Telling], columns: tuple[str, ...], form: Format, out: Any) -> None:
        super().__init__(begin, columns)
        self._table: pa.Table | None = None
        self._write = form.load()
        self._out = out
        self._results = _Headed(self, None, "s")
        self._write(self._results, out)  # the head, if the format has one
        out.flush()

    def take(self, table: pa.Table) -> None:
        """Write rows."""
        self._table = table
        self._write(self._results, self._out)
        self._out.flush()

    def tables(self) -> Iterator[Any]:
        """The rows that are written next."""
        if self._table is not None:
            yield _Piece(self._table)

    def count(self, limit: int | None = None) -> int:
        """The number of rows that are written next."""
        return 0 if self._table is None else len(self._table)


class _Headed(FoundRows):
    """Rows that come in several pieces, of which the first has the names of columns in front."""

    _is_begun = False

    def cells(self) -> Iterator[Sequence[Any]]:
        """The rows of a piece."""
        rows = super().cells()
        if self._is_begun:
            next(rows)
        self._is_begun = True
        yield from rows


class _Spool(_Watcher):
    """The rows of one pass, in a temporary file until they are written."""

    def __init__(self, begin: Callable[[], Telling], columns: tuple[str, ...], file: Any) -> None:
        super().__init__(begin, columns)
        self._file = file
        self._rows = 0

    def take(self, table: pa.Table) -> None:
        """Keep rows."""
        import pyarrow as pa

        self._rows += len(table)
        with pa.ipc.new_stream(self._file, table.schema) as writer:
            writer.write_table(table)

    def tables(self) -> Iterator[Any]:
        """The rows, in the pieces in which they came."""
        import pyarrow as pa

        self._file.seek(0)
        left = self._rows
        while left:
            with pa.ipc.open_stream(self._file) as reader:
                table = reader.read_all()
            left -= len(table)
            yield _Piece(table)

    def count(self, limit: int | None = None) -> int:
        """The number of rows."""
        return self._rows if limit is None else min(limit, self._rows)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows, with the members of a `MatchTable` that writers use."""

    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    def rows(self, *, natural: bool = False) -> pa.Table:
        """The rows; their kinds are those of the columns."""
        return self.table

    def to_arrow(self, iso: bool) -> pa.Table:
        """The rows."""
        return self.table
