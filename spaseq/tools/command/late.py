"""`--late FILE`: the events that come too late, written as they are dropped, each with how late it was."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from spaseq.core.errors import OptionError
from spaseq.tools.command.formats import CSV, JSONL, TSV, Format, chosen_format
from spaseq.tools.command.outputs import opened
from spaseq.tools.command.writers import Results

if TYPE_CHECKING:
    from spaseq.core.events import LateEvent

_FORMATS: Final = {"jsonl": JSONL, "csv": CSV, "tsv": TSV}


def late_file(options: argparse.Namespace) -> str | None:
    """The file that --late names; None if it says drop or error, or a word that is neither."""
    given = getattr(options, "late", None)
    return given if given is not None and ("." in given or "/" in given) else None


@contextlib.contextmanager
def late_beside(options: argparse.Namespace, attributes: Callable[[Any], Mapping[str, Any]]) -> Iterator[None]:
    """Write the late events of a run inside, if --late names a file. `attributes` gives those of an event, as JSON.

    Raises `OptionError` for a file of another format than JSON Lines, CSV and TSV.
    """
    path = late_file(options)
    if path is None:
        yield
        return
    if path == getattr(options, "output", None):
        raise OptionError("--late is written to a file of its own", "--late FILE.jsonl")
    form = _FORMATS[chosen_format(_FORMATS, None, path, "jsonl")]
    with opened(path, form) as out:
        options.on_late = LateRows(form, out, attributes)
        yield


class LateRows(Results):
    """Late events as rows, each in the file once it is known. `event` is an object, in CSV and TSV a text of JSON."""

    def __init__(self, form: Format, out: Any, attributes: Callable[[Any], Mapping[str, Any]]) -> None:
        self._write = form.load()
        self._out = out
        self._attributes = attributes
        self._late: LateEvent | None = None
        self._is_begun = False

    def __call__(self, late: LateEvent) -> None:
        """Write an event."""
        self._late = late
        self._write(self, self._out)
        self._out.flush()

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """The event that is at hand."""
        from spaseq.core.events.time import CALENDAR, format_time, iso_duration

        late = self._late
        if late is not None:
            seconds = late.time / 10**9 if late.time % 10**9 else late.time // 10**9
            yield {
                "late_by": iso_duration(late.behind),
                "time": format_time(late.time) if abs(late.time) >= CALENDAR else seconds,
                "stream": late.stream or None,
                "source": late.source,
                "record": late.record,
                "event": self._attributes(late.event),
            }

    def cells(self) -> Iterator[Sequence[Any]]:
        """The same, behind the names of columns if it is the first."""
        for row in self.objects():
            if not self._is_begun:
                self._is_begun = True
                yield list(row)
            yield [*list(row.values())[:-1], json.dumps(row["event"], ensure_ascii=False)]
