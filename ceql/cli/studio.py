"""CEQL in the studio (`spaseq.tools.studio`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ceql.cli.arguments import outcome
from ceql.cli.rows import results_of
from ceql.query import compile_query
from ceql.results.matches import Match, MatchTable
from spaseq.core.automata.diagram import automaton_diagram, classes_of
from spaseq.core.drawing import Picture, Timeline, event_text, timeline_of
from spaseq.core.engine import Settings
from spaseq.core.engine.light import lit_by
from spaseq.core.errors import OptionError, SpaseqError
from spaseq.tools.command import remarks
from spaseq.tools.studio.language import Found, Inputs, one_or_all, python_run, reading_words


class _Taken:
    """The first matches, as `FoundMatches` asks for them."""

    counters: Any

    def __init__(self, matches: Any) -> None:
        self.shown = matches.shown
        self.columns = matches.columns
        self.repeats = matches.repeats
        self.by_group = matches.by_group
        self.empty = matches.empty
        self.taken: list[MatchTable] = []

    def tables(self) -> Iterator[MatchTable]:
        return iter(self.taken)

    def count(self, limit: int | None = None) -> int:
        return sum(map(len, self.taken))


class _Ceql:
    """`spaseq.tools.studio.language.Language`."""

    def compiled(self, text: str, source: str, settings: Settings) -> Any:
        return compile_query(text, source=source, settings=settings)

    def matches(self, query: Any, inputs: Inputs) -> Any:
        if inputs.knowledge:
            raise OptionError("CEQL has no background knowledge", "GRAPH is of SPAseq")
        return query.run(**_arguments(inputs))

    def found(self, query: Any, matches: Any, limit: int) -> Found:
        gathered, left, more = _Taken(matches), limit, False
        ended: SpaseqError | None = None
        try:
            for table in matches.tables():
                more = len(table) > left
                gathered.taken.append(table[:left] if more else table)
                left -= len(gathered.taken[-1])
                if more:
                    break
        except SpaseqError as error:
            ended = error
        gathered.counters = matches.counters
        results = results_of(gathered, None, "s")
        head, *rows = results.cells()
        kinds = [] if matches.columns else ["number", "number", "positions", "time", "time"]
        columns = [(str(name), kind) for name, kind in zip(head, kinds + ["values"] * len(head), strict=False)]
        taken: list[Match] = [match for table in gathered.taken for match in table]
        texts = [[str(cell) for cell in row] for row in rows]
        return Found(taken, columns, texts, range(len(rows)), more, ended)

    def timeline(self, query: Any, matches: Sequence[Any], limit: int) -> Timeline:
        return timeline_of(matches, title=query.source, limit=limit)

    def event(self, query: Any, event: Any) -> str:
        return event_text(event)

    def lit(self, query: Any, matches: Any, found: Found) -> tuple[Picture, Sequence[Sequence[str]]]:
        automaton, ways_of = query.ways(matches)
        ways = ways_of(found.matches)
        stopped = found.more or found.ended
        progress = None if stopped else matches.progress()
        return Picture(automaton_diagram(automaton, lit_by(ways, len(ways), progress))), list(map(classes_of, ways))

    def remarks(self, query: Any, matches: Any, written: int) -> tuple[list[str], list[str]]:
        return remarks(matches, outcome(query, written))

    def python(self, file: str, inputs: Inputs) -> str:
        arguments = _arguments(inputs)
        events = [repr(arguments.pop("events"))] if inputs.events else []
        return python_run("ceql", file, [*events, *(f"{name}={value!r}" for name, value in arguments.items() if value)])

    def command(self, file: str, inputs: Inputs) -> list[str]:
        words = ["ceql", "run", file]
        for path in inputs.events:
            words += ["--events", path]
        for name, paths in inputs.streams.items():
            words += ["--stream", f"{name}={','.join(paths)}"]
        return [*words, *reading_words(inputs), *(["--valuations"] if inputs.valuations else [])]


def _arguments(inputs: Inputs) -> dict[str, Any]:
    """Those of `Query.run`."""
    streams = {name: one_or_all(paths) for name, paths in inputs.streams.items()}
    if inputs.events and streams:
        raise OptionError("there are both events and streams of events", "name each file as a stream, or none")
    if not inputs.events and not streams:
        raise OptionError("no events to run over", "add events as text, or name files when the studio is started")
    read: dict[str, Any] = {**inputs.reading, "valuations": inputs.valuations}
    return {"streams": streams, **read} if streams else {"events": one_or_all(inputs.events), **read}


STUDIO: Final = _Ceql()
