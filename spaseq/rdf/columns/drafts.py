"""Rows become graph events, in the order of the source, for one stream.

The kernel `cut` applies the rules, `spaseq.rdf.columns.wrong_events` words the errors. Drafts leave in the order of
their beginnings, with their times; `spaseq.rdf.columns.ordering` puts them in order of time. The rules, if a file
leaves a choice:

* **graph**: an event graph ends where a statement of another event graph begins; statements of the default graph in
  between do not end it. A graph without triples is an event too. A name that comes again after that is
  another event, counted as `reopened`. Statements of the default graph are not in any event; those that do not give a
  graph's time are counted as `ignored`.
* **subject**: a run of statements with one subject (and one graph), with those of the blank nodes that belong to it
  (`find_run`). It also ends where a predicate of an IRI comes again, even with the same value. A flat record has one
  value for each attribute, so the next record of that subject has begun. Only `rdf:type` may be repeated, with other
  types. A blank node may have several values: it is described once. Events about several IRIs need graphs.
* **size:N**: N statements make an event, as in the original engine. Fewer at the end are malformed.
* **time**: in the event's graph, values of the predicate on the graph's own name come first, then those on any subject.
  If there are none, the default graph's statements about the name count, before or after. Several are an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from rdflib import RDF

from spaseq.core.errors import EventError
from spaseq.core.events.time import UNITS
from spaseq.core.integers import apart, ranges
from spaseq.core.jit import attempt, attempt_rows
from spaseq.rdf.columns.dictionary import Dictionary, key_given
from spaseq.rdf.columns.kernels import assembly as a
from spaseq.rdf.columns.kernels import layout, literals
from spaseq.rdf.columns.kernels import scanning as k
from spaseq.rdf.columns.model import TermTable
from spaseq.rdf.columns.names import RecentNames
from spaseq.rdf.columns.scanner import Scanner, grow
from spaseq.rdf.columns.wrong_events import (
    Draft,
    cut_off,
    no_named_graph,
    no_time,
    read_time,
    time_inside,
    two_times,
)
from spaseq.rdf.model import Counters
from spaseq.rdf.options import ARRIVAL, GENERATED_AT, StreamOptions
from spaseq.rdf.terms import Term

_BY: Final = {"graph": a.BY_GRAPH, "subject": a.BY_SUBJECT, "size": a.BY_SIZE, "file": a.BY_FILE}
_DRAFT_DTYPES: Final = a.Drafts(
    name=np.int32,  # type: ignore[arg-type]
    first=np.int64,  # type: ignore[arg-type]
    size=np.int64,  # type: ignore[arg-type]
    record=np.int64,  # type: ignore[arg-type]
    number=np.int64,  # type: ignore[arg-type]
    time=np.int64,  # type: ignore[arg-type]
    known=np.uint8,  # type: ignore[arg-type]
    repeated=np.uint8,  # type: ignore[arg-type]
    asking=np.int32,  # type: ignore[arg-type]
    file=np.int32,  # type: ignore[arg-type]
    subject=np.int64,  # type: ignore[arg-type]
)


def no_drafts() -> a.Drafts:
    """The columns of events in the making, all empty."""
    return a.Drafts(*(np.empty(0, dtype=dtype) for dtype in _DRAFT_DTYPES))


class Drafting:
    """The events of one stream in the making.

    Drafts 0 to `front` have a time, in the order of the source; those behind wait for one. The last draft may be open.
    Several may be open if they are runs of blank nodes, which wait for a statement that points at them. `files` are the
    names of the files read so far. A method that returns an error has done all that comes before it.
    """

    __slots__ = ("_at", "_counters", "_file_rows", "_names", "_options", "_said", "_scanner", "_told",
                 "_told_for", "drafts", "files")  # fmt: skip

    def __init__(self, scanner: Scanner, counters: Counters) -> None:
        self.drafts: a.Drafts = no_drafts()
        self.files: list[str] = []
        self._at = np.zeros(a.AT_SIZE, dtype=np.int64)
        self._said = np.empty((0, 3), dtype=np.int64)
        self._scanner = scanner
        self._counters = counters
        self._options = StreamOptions()
        self._names: RecentNames | None = None
        self._file_rows = 0
        self._told: a.Rules | None = None  # for the file, and for a dictionary, until it is restarted
        self._told_for: dict[int, Term] | None = None

    @property
    def front(self) -> int:
        """The number of drafts that are ready."""
        return int(self._at[a.FRONT])

    @property
    def rows(self) -> int:
        """The number of rows in the drafts."""
        return int(self._at[a.USED])

    def begin_file(self, source: str, options: StreamOptions) -> None:
        """The rows to come are of the file `source`; `options` are settled for it (`file_options`)."""
        self.files.append(source)
        self._options = options
        assert options.event_by is not None
        self._names = RecentNames(options.lookahead) if options.event_by.kind == "graph" else None
        self._file_rows = 0
        self._told = None
        self._at[a.NUMBER] = 0
        if options.event_by.kind == "subject":  # types are needed to cut events
            self._dictionary.keep(key_given(str(RDF.type)))

    def join(self, part: Scanner) -> None:
        """The rows to come are those of `part`, which is used up. The fewer rows are renumbered by the others'
        terms."""
        scanner, count = self._scanner, self._scanner.count
        if count > part.count:
            terms = self._dictionary.take(part.dictionary.table, len(part.dictionary), np.arange(len(part.dictionary)))
            part.rows = np.append(terms, np.int32(layout.NIL))[part.rows[: part.count]]
        else:
            self._renumber(count, int(self._at[a.DRAFTS]), part.dictionary.take)
            scanner.dictionary = part.dictionary
        scanner.rows = np.concatenate((scanner.rows[:count], part.rows[: part.count]))
        scanner.lines = np.concatenate((scanner.lines[:count], part.lines[: part.count]))
        scanner.count = count + part.count

    def feed(self) -> EventError | None:
        """Cut the rows that the scanner has added."""
        scanner, at = self._scanner, self._at
        begin, end = int(at[a.NEXT_ROW]), scanner.count
        self._file_rows += end - begin
        before = int(at[a.DRAFTS])
        told = self._rules()
        values, status = np.empty(end, dtype=np.int64), np.zeros(end, dtype=np.uint8)
        self._read_times(begin, end, told, values, status)
        self._make_room(end - begin)
        said, runs = self._by_term(told)
        at[a.IGNORED] = 0
        code = attempt_rows(a.cut, 16 * (end - begin), scanner.rows, scanner.lines, end, told, self.drafts, values,
                            status, said, runs, at)  # fmt: skip
        self._counters.ignored += int(at[a.IGNORED])
        self._mark_names(before)
        scanner.count = self.rows if code == a.DONE else scanner.count
        at[a.NEXT_ROW] = self.rows if code == a.DONE else at[a.NEXT_ROW]
        return None if code == a.DONE else self._error(code)

    @property
    def is_open(self) -> bool:
        """True if an event has begun that a pause may end: not one of a number of statements."""
        by = self._options.event_by
        return bool(self._at[a.CLOSED] < self._at[a.DRAFTS]) and by is not None and by.kind != "size"

    def end_events(self) -> EventError | None:
        """Nothing has come for a while, and all rows have been fed: so the last event has ended."""
        code = self._close()
        return None if code == a.DONE else self._error(code)

    def _close(self) -> int:
        """Ends the events that have begun. The kernel's code."""
        at, code, told = self._at, a.DONE, self._rules()
        said, _ = self._by_term(told)
        while code == a.DONE and at[a.CLOSED] < at[a.DRAFTS]:
            code = attempt(a.close, told, self.drafts, said, at)
        return code

    def end_file(self) -> EventError | None:
        """The file ends, all its rows have been fed: so does the last event."""
        at, options = self._at, self._options
        by = options.event_by
        assert by is not None
        code = a.DONE
        if at[a.CLOSED] < at[a.DRAFTS]:
            if by.kind == "size":
                error = self._drop_rest(by.size)
                if error is not None:
                    return error
            else:
                code = self._close()
        elif by.kind == "graph" and self._file_rows and not at[a.NUMBER]:
            return no_named_graph(self.files[-1])
        if code != a.DONE:
            return self._error(code)
        if options.time != ARRIVAL:
            if at[a.FRONT] < at[a.CLOSED]:
                return self._error(a.WAITS_TOO_LONG)
            self._counters.ignored += int(at[a.SAID_LIVE])
        at[[a.SAID, a.SAID_FIRST, a.SAID_LIVE]] = 0
        return None

    def keep(self, kept: np.ndarray, restart: bool) -> None:
        """Forget the drafts that are ready, apart from those `kept` (int64, ascending), and their rows. With `restart`,
        the dictionary forgets the terms that nothing is left of."""
        at = self._at
        left = np.concatenate((kept, np.arange(at[a.FRONT], at[a.DRAFTS], dtype=np.int64)))
        counts = self.drafts.size[left]
        first = np.cumsum(counts) - counts
        rows = ranges(self.drafts.first[left], counts)
        scanner = self._scanner
        scanner.rows[: len(rows)] = scanner.rows[rows]
        scanner.lines[: len(rows)] = scanner.lines[rows]
        for column in self.drafts:
            column[: len(left)] = column[left]
        self.drafts.first[: len(left)] = first
        gone = int(at[a.FRONT]) - len(kept)
        at[[a.DRAFTS, a.CLOSED, a.FRONT]] -= gone
        at[[a.USED, a.NEXT_ROW]] = scanner.count = len(rows)
        self._pack_said()
        if restart:
            self._renumber(len(rows), len(left), lambda _, __, used: self._dictionary.carry(used))

    def terms(self) -> TermTable:
        """The terms as they are numbered now, blank nodes with the labels of the file."""
        return self._dictionary.as_terms()

    @property
    def _dictionary(self) -> Dictionary:
        return self._scanner.dictionary

    # Inside ----------------------------------------------------------------------------------------------------------

    def _rules(self) -> a.Rules:
        options = self._options
        by = options.event_by
        assert by is not None and options.time is not None
        if self._told is not None and self._told_for is self._dictionary.made:
            return self._told
        time = GENERATED_AT if options.time == ARRIVAL else options.time
        terms = self._dictionary.intern([key_given(str(time)), key_given(str(RDF.type))])
        self._told_for = self._dictionary.made
        self._told = a.Rules(
            by=_BY[by.kind],
            size=by.size,
            time=int(terms[0]),
            arrival=options.time == ARRIVAL,
            interval=options.step,
            type=int(terms[1]),
            lookahead=options.lookahead,
            file=len(self.files) - 1,
        )
        return self._told

    def _read_times(self, begin: int, end: int, told: a.Rules, values: np.ndarray, status: np.ndarray) -> None:
        """Reads the times that the rows `begin:end` state."""
        if told.arrival:
            return
        table = self._dictionary.table
        rows = self._scanner.rows
        scale = UNITS[self._options.unit]
        text = table.text.view(np.uint8)
        if not attempt_rows(
            literals.read_times, 16 * (end - begin), rows, begin, end, told.time, scale, text, table, values, status
        ):
            return
        terms = self.terms()
        for row in np.flatnonzero(status == layout.NOT_READ).tolist():
            try:
                values[row] = read_time(terms.term(int(rows[row, 2])), self._options, "", 0)
                status[row] = layout.TIME
            except EventError:
                status[row] = layout.BAD_TIME

    def _make_room(self, rows: int) -> None:
        at = self._at
        need = int(at[a.DRAFTS]) + rows
        if need > len(self.drafts.name):
            size = max(need, 2 * len(self.drafts.name))
            self.drafts = a.Drafts(*(grow(column, size) for column in self.drafts))
        if int(at[a.SAID]) + rows > len(self._said):
            self._said = grow(self._said, max(int(at[a.SAID]) + rows, 2 * len(self._said)))

    def _by_term(self, told: a.Rules) -> tuple[a.Said, a.Runs]:
        """The notes by term that `cut` keeps."""
        terms = len(self._dictionary)
        said = a.Said(self._said, *(np.full(terms, layout.NIL, dtype=np.int32) for _ in range(3)))
        subjects = terms if told.by == a.BY_SUBJECT else 0
        seen, types, home = (np.full(subjects, layout.NIL, dtype=np.int32) for _ in range(3))
        runs = a.Runs(seen, types, home, self._dictionary.table.kind)
        kept = int(self._at[a.DRAFTS]) + int(self._at[a.SAID])
        attempt_rows(a.restore, 16 * kept, self._scanner.rows, told, self.drafts, said, runs, self._at)
        return said, runs

    def _mark_names(self, begin: int) -> None:
        """Notes which of the drafts from `begin` on have the name of one that ended."""
        end = int(self._at[a.DRAFTS])
        if self._names is not None and end > begin:
            table = self._dictionary.table
            text = table.text.view(np.uint8)
            names = self.drafts.name[begin:end]
            self.drafts.repeated[begin:end] = self._names.mark(names, text, table.start, table.length, table.hashes)

    def _drop_rest(self, size: int) -> EventError | None:
        """The open draft is too small to be an event."""
        at = self._at
        draft = int(at[a.CLOSED])
        count, record = int(self.drafts.size[draft]), int(self.drafts.record[draft])
        if self._options.malformed != "drop":
            return cut_off(count, size, self.files[-1], record)
        self._counters.malformed += 1
        at[a.DRAFTS] = draft
        at[[a.USED, a.NEXT_ROW]] = self._scanner.count = int(self.drafts.first[draft])
        return None

    def _pack_said(self) -> None:
        at = self._at
        said = self._said[int(at[a.SAID_FIRST]) : int(at[a.SAID])]
        said = said[said[:, 0] != layout.NIL]
        self._said[: len(said)] = said
        at[a.SAID_FIRST] = 0
        at[a.SAID] = len(said)

    def _renumber(self, rows: int, drafts: int, take: Callable[[k.Table, int, np.ndarray], np.ndarray]) -> None:
        """New terms for all that is left, by `take` as of `Dictionary`."""
        left, names = self._scanner.rows[:rows], self.drafts.name[:drafts]
        said = self._said[: int(self._at[a.SAID]), 0]
        used = apart(np.concatenate((left.ravel(), names, said)).astype(np.int64))
        old = self._dictionary
        terms = take(old.table, len(old), used[used >= 0])
        terms = np.append(terms, np.int32(layout.NIL))  # what NIL finds
        left[:] = terms[left]
        names[:] = terms[names]
        said[:] = terms[said]

    def _error(self, code: int) -> EventError:
        """The error that the rules have here."""
        options, source = self._options, self.files[-1]
        row = int(self._at[a.ERROR])
        rows, lines = self._scanner.rows, self._scanner.lines
        term = self.terms().term
        try:
            if code == a.TWO_TIMES:
                time_inside(self._draft(row), options, source)
            elif code == a.BAD_SAID:
                read_time(term(int(rows[row, 2])), options, source, int(lines[row]))
            elif code == a.SAID_TWICE:
                before = int(self._said[np.flatnonzero(self._said[: int(self._at[a.SAID]), 0] == rows[row, 0])[-1], 2])
                return two_times(term(int(rows[row, 0])), before, source, int(lines[row]))
            else:
                return no_time(self._draft(self.front), options, source)
        except EventError as error:
            return error
        raise AssertionError(f"no error at row or draft {row} for code {code}")

    def _draft(self, index: int) -> Draft:
        drafts = self.drafts
        first, name = int(drafts.first[index]), int(drafts.name[index])
        term = self.terms().term
        rows = self._scanner.rows[first : first + int(drafts.size[index]), :3].tolist()
        return Draft(
            None if name == layout.NIL else term(name),
            int(drafts.record[index]),
            [(term(s), term(p), term(o)) for s, p, o in rows if o != layout.NIL],
            int(drafts.number[index]),
            bool(drafts.repeated[index]),
        )
