"""What a stream of RDF files has given so far, as an offset, and what comes next, as parts for tasks.

A `Feed` is one named stream: files that appear in a folder, in the order of their names. Its offset, a `Place`, is
where reading goes on: a file, a byte where an event begins, the number of the line there. It also says what the batch
that ends there reads, so the same two offsets give the same events whenever they are read, and what is known of the
files behind, so that nothing is lost silently.

The rules that writers of files keep: a new file's name sorts behind those there before; without `growing` a file is
complete when it appears (write it elsewhere and move it there), with it a file is complete when the next one appears. A
file that was read to its end may be removed. Each of these is an EventError that names the file and what was read of
it, also where it happened between two runs:

* a file that appears in front of what was read, also if others there were removed;
* one that is removed, or became shorter, before all of it was read, or whose planned part is no longer there;
* one that was replaced by another of its name, or was added to after it had been read to its end: told by the size, and
  in the file where reading goes on by its first bytes.

Of the files behind, an offset holds six bytes for each that is still there, of at most 10,000 the last ones; of what is
in front of those only how many there are.

Files of lines are cut where events begin (`spaseq.spark.ingest.boundaries`): for tasks, and for `max_bytes` a batch.
Others (TriG, Turtle, compressed ones, events of N triples) are read whole.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass, fields, replace
from glob import has_magic
from hashlib import blake2b
from typing import Any, Final

from spaseq.core.errors import EventError, InternalError, OptionError
from spaseq.core.files.places import file_size, is_there, matching, open_file
from spaseq.rdf import StreamOptions, StreamSource, file_options, format_of, has_lines
from spaseq.spark.ingest.boundaries import first_boundary, last_boundary, newlines
from spaseq.spark.session.storage import Access

Listing = dict[str, int]
"""Files with their sizes in bytes."""

_SMALLEST: Final = 1 << 20
"""Bytes below which a part is not cut for another task."""
_KNOWN: Final = 10_000
_HEAD: Final = 4096
_NAME: Final = 4


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream to be read: `number` is its place among the streams of the query.

    `growing`: files may grow. `whole`: files are not cut. `max_bytes`, `max_files`: the most for one batch (0: no
    limit; at least one event or one file that cannot be cut). `access`: to files elsewhere, where there are some.
    """

    number: int
    source: StreamSource
    options: StreamOptions
    growing: bool = False
    whole: bool = False
    max_bytes: int = 0
    max_files: int = 0
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading goes on: behind `files` files of which `name` is the last one begun, at `byte` of it, which is the
    begin of line `line`. `closed`: nothing more comes, and that has been said.

    `size`: of that file when it was looked at; `head`: a digest of its first bytes. `pieces`: what is read between the
    place before and this one, files and up to which byte. `known`: digests of the files behind that were there, in the
    order of their names, in base64; `older` files more are named up to `floor`.
    """

    name: str = ""
    files: int = 0
    byte: int = 0
    line: int = 1
    closed: bool = False
    size: int = 0
    head: str = ""
    pieces: tuple[tuple[str, int], ...] = ()
    known: str = ""
    older: int = 0
    floor: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As Spark keeps it: JSON."""
        return asdict(self)

    @staticmethod
    def of(value: dict[str, Any] | None) -> Place:
        """The inverse of `to_dict`. OptionError for what another version wrote, and for None: it has no such stream."""
        if value is None or value.keys() != {field.name for field in fields(Place)}:
            raise OptionError("the checkpoint is of another version of spaseq, or damaged", "a new folder begins anew")
        return Place(**(value | {"pieces": tuple((name, byte) for name, byte in value["pieces"])}))


@dataclass(frozen=True, slots=True)
class FeedPart:
    """Whole events for one task: the bytes [`start`, `end`) of a file (`end` None: all of it, decompressed), `line` the
    number of the first line. `order` places the parts of a stream. `last`: the stream ends here (then no file)."""

    feed: int
    order: tuple[int, int]
    path: str
    start: int
    end: int | None
    line: int
    last: bool = False


def listing(feed: Feed) -> Listing:
    """The files that are there now."""
    found: Listing = {}
    for pattern in feed.source.files:
        try:
            named = matching(pattern)
        except OSError as error:
            raise EventError(f"cannot read: {error.strerror or error}", source=pattern) from error
        for name, size in named.items():
            if size is not None:
                found[name] = size
            elif not has_magic(pattern):
                hint = f"name its files: {pattern.rstrip('/')}/*.nq"
                raise EventError("a folder, not a file", source=pattern, hint=hint)
    return found


def advance(
    feed: Feed, start: Place, *, limited: bool = True, closing: bool = False, among: Listing | None = None
) -> Place:
    """The place up to which the next batch may read. The same as `start` where there is nothing new. EventError where
    files are not as they were (see the module).

    `limited` False: as far as there is something, whatever the limits. `closing`: the files will not grow, so the last
    event is complete; and where all was read the place is `closed`. `among`: files that came after this listing was
    taken, or what was added to others, do not count.
    """
    if start.closed:
        return start
    among = listing(feed) if among is None else among
    _check(feed, start, among)
    pieces: dict[str, int] = {}
    place = _advanced(feed, start, among, pieces, limited=limited, closing=closing)
    if (place.name, place.byte) != (start.name, start.byte):
        return replace(_with_files(place, among), pieces=tuple(pieces.items()))
    return replace(start, closed=True, pieces=()) if closing else start


def _advanced(
    feed: Feed, start: Place, among: Listing, pieces: dict[str, int], *, limited: bool, closing: bool
) -> Place:
    """The place, without what is to be known of the files. What is read up to there goes to `pieces`."""
    names = [name for name in sorted(among) if name >= start.name]
    place, budget, count = start, feed.max_bytes if limited else 0, 0
    for index, name in enumerate(names):
        complete = closing or not feed.growing or index + 1 < len(names)
        if name != place.name:
            if limited and feed.max_files and count == feed.max_files:
                return place
            if place.name and _cuttable(feed, place.name) and place.byte < among.get(place.name, 0):
                return place
            place = Place(name, place.files + 1)
            pieces[name] = 0
        before = place
        place = _further(feed, place, among[name], complete, budget)
        if place.byte != before.byte:
            pieces[name] = place.byte
        count += place != before
        if budget:
            budget -= place.byte - before.byte
            if budget <= 0:
                return place
    return place


# -- what must not have happened


def _with_files(place: Place, among: Listing) -> Place:
    """The place with what is to be known of its file and those behind."""
    behind = sorted(name for name in among if name < place.name)
    cut = max(0, len(behind) - _KNOWN)
    known = b64encode(b"".join(_digest(name, among[name]) for name in behind[cut:])).decode("ascii")
    floor = behind[cut - 1] if cut else ""
    return replace(place, size=among[place.name], head=_head(place), known=known, older=cut, floor=floor)


def _digest(name: str, size: int) -> bytes:
    """Four bytes of the name and two of the size."""
    return blake2b(name.encode(), digest_size=_NAME).digest() + blake2b(str(size).encode(), digest_size=2).digest()


def _head(place: Place) -> str:
    """Of the first bytes that were read of a place's file. EventError where it cannot be read."""
    try:
        with open_file(place.name) as file:
            return blake2b(file.read(min(place.byte, _HEAD)), digest_size=8).hexdigest()
    except OSError as error:
        raise EventError(f"cannot read: {error.strerror or error}", source=place.name) from error


def _check(feed: Feed, start: Place, among: Listing) -> None:
    """EventError where the files that are there are not those behind `start`, or fewer."""
    if not start.name:
        return
    _check_begun(feed, start, among)
    known = b64decode(start.known)
    places = range(0, len(known), _NAME + 2)
    sizes = {known[at : at + _NAME]: known[at + _NAME : at + _NAME + 2] for at in places}
    older = [name for name in among if name <= start.floor]
    if len(older) > start.older:
        raise _in_front(feed, start, max(older))
    for name in sorted(name for name in among if start.floor < name < start.name):
        digest = _digest(name, among[name])
        if digest[:_NAME] not in sizes:
            raise _in_front(feed, start, name)
        if sizes[digest[:_NAME]] != digest[_NAME:]:
            raise EventError(
                f"the file was changed after it had been read to its end; now it has {among[name]:,} bytes",
                source=name,
                hint="a file is complete when the next one appears: write what is new to another one behind it",
            )


def _check_begun(feed: Feed, start: Place, among: Listing) -> None:
    """The same of the file where reading goes on."""
    done = f"of the file {start.byte:,} of {start.size:,} bytes, {start.line - 1:,} lines, had been read"
    whole = start.byte >= start.size
    if start.name not in among:
        if not whole:
            raise EventError(f"the file is gone: {done}", source=start.name, hint=_PUT_BACK)
        return
    size = among[start.name]
    if not _cuttable(feed, start.name):
        done = f"the file of {start.size:,} bytes had been read to its end"
        if size != start.size:
            raise EventError(f"{done}; now it has {size:,}", source=start.name, hint=_PUT_BACK)
    if size < start.byte:
        raise EventError(f"{done}; now it has only {size:,}", source=start.name, hint=_PUT_BACK)
    if start.byte and is_there(start.name) and _head(start) != start.head:
        raise EventError(f"{done}; now its first bytes are others", source=start.name, hint=_PUT_BACK)


_PUT_BACK: Final = (
    "a file of a stream only grows, at its end, and stays until all of it has been read: put it back, or begin anew "
    "with another checkpoint"
)


def _in_front(feed: Feed, start: Place, name: str) -> EventError:
    return EventError(
        f"{os.path.basename(name)} appeared in front of those already read, up to {os.path.basename(start.name)} "
        f"({start.byte:,} bytes, {start.line - 1:,} lines of it): nothing was read of it",
        source=feed.source.iri,
        hint="a stream's files are read in the order of their names: name a new one behind the others",
    )


# -- files


def _cuttable(feed: Feed, name: str) -> bool:
    kind = file_options(name, feed.source, feed.options).event_by
    lines = has_lines(name, format_of(name, feed.options.format))
    return lines and not feed.whole and kind is not None and kind.kind in ("graph", "subject")


def _further(feed: Feed, place: Place, size: int, complete: bool, budget: int) -> Place:
    """As far into the file of `place`, which has `size` bytes, as may be read."""
    if not _cuttable(feed, place.name):
        if feed.growing and not complete:
            raise OptionError(
                f"{place.name}: a file that grows must be N-Triples or N-Quads, uncompressed, with an event a graph or "
                "a subject",
                "put files in place when they are complete, without growing",
            )
        return replace(place, byte=size)
    _check_planned(feed, place.name, place.byte, size)
    with open_file(place.name) as file:
        end = size if complete else last_boundary(file, place.byte, size)
        if budget and end - place.byte > budget:
            end = first_boundary(file, place.byte + budget, end)
        line = place.line + newlines(file, place.byte, end)
    return replace(place, byte=end, line=line)


def parts_between(feed: Feed, start: Place, end: Place, tasks: int, smallest: int = _SMALLEST) -> list[FeedPart]:
    """Parts of about equal length, for `tasks` tasks, that hold what lies between a place and the next one.

    EventError where it is no longer there.
    """
    if end.closed:
        return [] if start.closed else [FeedPart(feed.number, (end.files + 1, 0), end.name, 0, 0, 1, last=True)]
    if (start.name, start.byte) == (end.name, end.byte):
        return []
    spans = [(name, start.byte if name == start.name else 0, high) for name, high in end.pieces]
    if len(spans) - (spans[0][0] == start.name) != end.files - start.files:
        raise InternalError(f"offsets that do not follow each other: {start}, {end}")
    size = max(smallest, -(-sum(high - low for _, low, high in spans) // max(1, tasks)))
    parts: list[FeedPart] = []
    for number, (name, low, high) in enumerate(spans, end.files + 1 - len(spans)):
        _check_planned(feed, name, low, high)
        if not _cuttable(feed, name):
            parts.append(FeedPart(feed.number, (number, 0), name, 0, None, 1))
            continue
        line = start.line if name == start.name else 1
        with open_file(name) as file:
            while low < high:
                cut = high if high - low <= size * 1.5 else first_boundary(file, low + size, high)
                parts.append(FeedPart(feed.number, (number, low), name, low, cut, line))
                line += newlines(file, low, cut)
                low = cut
    return parts


def _check_planned(feed: Feed, name: str, low: int, high: int) -> None:
    """EventError where the bytes [`low`, `high`) of a file are not there."""
    try:
        size = file_size(name)
    except OSError as error:
        problem = f"the file cannot be read ({error.strerror or error})"
    else:
        if size == high if not _cuttable(feed, name) else size >= high:
            return
        problem = f"the file has {size:,} bytes"
    raise EventError(
        f"{problem}, and a batch is planned to read its bytes {low:,} to {high:,}", source=name, hint=_PUT_BACK
    )
