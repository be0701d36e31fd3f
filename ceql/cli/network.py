"""`ceql run NETWORK.toml`: several queries, of which some read the matches of others (`ceql.network`)."""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ceql.cli.arguments import growing, late_rows
from ceql.cli.formats import MATCHES
from ceql.cli.output import as_json
from spaseq.core.errors import OptionError
from spaseq.core.events.time import iso_duration
from spaseq.tools.command import accounted, bounded, chosen_format, opened, report, warn
from spaseq.tools.command.frame import compiled_by
from spaseq.tools.command.options import settings_of
from spaseq.tools.command.writers import Results

if TYPE_CHECKING:
    from ceql.network import Network, NetworkMatches

_TIMES: Final = ("match_start", "match_end")
_REFUSED: Final = ("valuations", "explain", "timed_out", "memory", "stream", "schema")
_FORMATS: Final = {name: form for name, form in MATCHES.items() if name != "parquet"}


def load_network(options: argparse.Namespace) -> Network:
    """The network that the options name; warnings of its queries are printed on standard error."""
    from ceql.network import Network

    network = compiled_by(options, lambda settings: Network.of_file(options.query, settings=settings))
    warn(line for query in network.queries.values() for line in query.warnings)
    return network


def run_network(options: argparse.Namespace) -> int:
    """Run the network that the options name, and write its matches; the exit code."""
    for word in _REFUSED:
        if getattr(options, word, None):
            raise OptionError(f"--{word.replace('_', '-')} is for one query, and this is a network", "leave it out")
    if options.format == "parquet":
        raise OptionError("--format parquet is for one query: those of a network have rows of their own", "use jsonl")
    default = "jsonl" if options.follow else "table"
    form = _FORMATS[chosen_format(_FORMATS, options.format, options.output, default, live=options.follow)]
    network, read = load_network(options), growing(options)
    with late_rows(options):
        matches = network.run(**{word: value for word, value in read.items() if word not in ("streams", "schema")})
        results = _Rows(matches, options.limit, live=options.follow)
        with (
            bounded(settings_of(options)),
            accounted(lambda: matches.counters.events, lambda: results.written, "matches"),
            opened(options.output, form) as out,
        ):
            results.out = out
            form.load()(results, out)
    report(matches)
    return 0


class _Rows(Results):
    """The first `limit` matches: the name of the query, the times of the match, and its row."""

    def __init__(self, matches: NetworkMatches, limit: int | None, *, live: bool) -> None:
        self.live = live
        self.out: Any = None
        self._matches = matches
        self._limit = limit

    def objects(self) -> Iterator[dict[str, Any]]:
        """`query`, and the columns of the row."""
        for name, row in self._rows():
            yield {"query": name, **row}

    def cells(self) -> Iterator[Sequence[Any]]:
        """`query`, the times, and the other columns as one JSON object."""
        yield ("query", *_TIMES, "row")
        for name, row in self._rows():
            rest = {column: value for column, value in row.items() if column not in _TIMES}
            yield (name, *(row.get(time) for time in _TIMES), json.dumps(rest, ensure_ascii=False))

    def _rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self.live:
            self.out.flush()
        for name, match in islice(self._matches, self._limit):
            yield name, {column: _plain(value) for column, value in match.row.items()}
            self.written += 1
            if self.live:
                self.out.flush()

    def closing(self, written: int) -> str:
        """The number of matches."""
        return f"{written:,} match{'' if written == 1 else 'es'}\n"


def _plain(value: Any) -> Any:
    """A value for JSON, with durations as other rows have them."""
    if not isinstance(value, datetime.timedelta):
        return as_json(value)
    nanoseconds = value // datetime.timedelta(microseconds=1) * 1000 + getattr(value, "nanoseconds", 0)
    return iso_duration(nanoseconds)
