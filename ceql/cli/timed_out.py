"""`ceql run --timed-out FILE`: the partial matches that time out, written beside the matches of the same pass."""

from __future__ import annotations

import argparse
import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ceql.cli.formats import MATCHES
from ceql.cli.rows import FoundRows
from spaseq.core.errors import OptionError
from spaseq.tools.command import chosen_format, opened

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
    if options.follow:
        hint = "query.timed_out().open() gives its rows as events are pushed"
        raise OptionError("--timed-out with --follow: its rows are written at the end of the events", hint)
    if options.timed_out == "-" or options.timed_out == options.output:
        raise OptionError("--timed-out is written to a file of its own", "--timed-out FILE.csv")


@contextlib.contextmanager
def timed_out_beside(options: argparse.Namespace, query: Any, matches: Any) -> Iterator[None]:
    """Write the rows of the events that `matches` reads inside, if the options ask for that, at the end."""
    if options.timed_out is None:
        yield
        return
    form = MATCHES[chosen_format(MATCHES, None, options.timed_out, "table")]
    timed_out, unit = query.timed_out(), options.time_unit or "s"
    with tempfile.TemporaryFile() as file, opened(options.timed_out, form) as out:
        spool = _Spool(lambda: timed_out.telling(matches.form_of_times()), timed_out.columns, file)
        matches.watched_by(spool)
        yield
        spool.counters = matches.counters
        form.load()(_FoundTimedOut(spool, None, unit), out)


class _FoundTimedOut(FoundRows):
    def closing(self, written: int) -> str:
        """The number of rows."""
        return f"{written:,} partial match{'' if written == 1 else 'es'} timed out\n"


class _Spool:
    """The rows of one pass, in a temporary file until they are written, since the writer of the matches asks for the
    events. It has the members of `ceql.cli.output.Tables`."""

    shown = None
    counters: EventCounters

    def __init__(self, begin: Callable[[], Telling], columns: tuple[str, ...], file: Any) -> None:
        """`begin` is called once reading has begun, as the form of times is known from then on."""
        self.columns = columns
        self._begin = begin
        self._file = file
        self._rows = 0

    @functools.cached_property
    def _telling(self) -> Telling:
        return self._begin()

    def __call__(self, events: EventBatch | None) -> None:
        """Take the events that were read, None at their end."""
        import pyarrow as pa

        table = self._telling.close() if events is None else self._telling.advance(events)
        if len(table):
            self._rows += len(table)
            with pa.ipc.new_stream(self._file, table.schema) as writer:
                writer.write_table(table)

    def empty(self) -> pa.Table:
        """The table of no rows."""
        return self._telling.empty

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
