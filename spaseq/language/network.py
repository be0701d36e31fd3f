"""Networks of queries: the graphs that some construct are events of the streams that others read.

A query reads another if it has a stream with the name of that one, or with its name as IRI: a query called `Alarms`, or
`http://example.org/alarms`, feeds `FROM STREAM Alarms <http://example.org/alarms>`. It must be a CONSTRUCT. Each of its
matches is an event of that stream, a graph, unless it is empty. This is the compositionality of [SPAseq]: what a
query gives is what a query takes.

*When.* The graph has the time of its match, so it belongs to the instant that the match ends at, with the given graphs
of that time. The graph of a match that waits for an absence has the time at which that is sure. With `B! FOR 10
SECONDS` behind a match, that is 10 s later. A match that waits for the end of its tumbling window has the last
nanosecond of that. So the answer is the same, whatever pushes or files the events come in. Cycles are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

from spaseq.core.engine import Settings
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.core.events.growing import clock_length
from spaseq.core.events.options import Duration
from spaseq.core.queries.networks import Member, check_queries, members_of, read_network
from spaseq.core.watch import check, limited_steps
from spaseq.gpm import Knowledge
from spaseq.gpm.functions.own import Failures
from spaseq.language.query import Query, compile_query
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.runtime.follow import FollowedMatches
from spaseq.language.runtime.knowledge import Known, knowledge_of
from spaseq.language.runtime.matches import with_graphs
from spaseq.language.runtime.network import Found, NetworkEvaluation, is_told_in_time
from spaseq.language.runtime.opened import Opened, Streams, check_memory, open_files, stream_options, stream_sources
from spaseq.language.runtime.read_ahead import ReadAhead, thread_count
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.runtime.session import GraphSession
from spaseq.language.runtime.unmatched import Input
from spaseq.language.solving.chunks import merge_batches
from spaseq.live.evaluation import Alive
from spaseq.live.states import Saving, State
from spaseq.rdf import Counters, Followed, StreamOptions, StreamWords, settle


class Network:
    """Queries by name, of which some read the graphs that others construct."""

    def __init__(
        self,
        queries: Mapping[str, str | Query],
        *,
        report: Iterable[str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        """`queries`: texts or compiled queries by name. `report`: the names of those whose matches are wanted; all if
        not given. `settings`: the budgets of each query that is a text.

        Raises errors of the queries, and `OptionError` for a cycle, an unknown name, no query, an ASK, and a query that
        others read and that constructs nothing. One that others read is an `UnsupportedFeature` if its matches wait
        for a window that slides or counts, or for the end of the streams.
        """
        check_queries(queries, "it is the name of the stream that its graphs are")
        compiled = {
            name: query.compiled if isinstance(query, Query) else compile_query(query, name, settings).compiled
            for name, query in queries.items()
        }
        self._outputs: dict[str, str] = {}
        reads: dict[str, list[str]] = {}
        for name, query in compiled.items():
            reads[name] = []
            for stream, iri in query.streams:
                for other in dict.fromkeys((iri, stream)):
                    if other in compiled:
                        self._add_output(other, iri)
                        reads[name].append(other)
                        break
        self._members: tuple[Member[CompiledQuery], ...] = members_of(compiled, reads, report)
        for member in self._members:
            _check_member(member)

    def _add_output(self, name: str, iri: str) -> None:
        if self._outputs.setdefault(name, iri) != iri:
            problem = f"the graphs of {name} are read as <{self._outputs[name]}> and as <{iri}>"
            raise OptionError(problem, "give the stream one IRI in all queries")

    @staticmethod
    def of_file(path: str | Path, *, settings: Settings | None = None) -> Network:
        """The network in a TOML file: a table `queries` of texts, or of files (`{ file = "alarms.rq" }`, found beside
        it), by name; and perhaps `report`, a list of names. No file outside of its folder is read.

        Raises `OptionError` for a file that is none, besides the errors of `Network`.
        """
        queries, report = read_network(Path(path), lambda text, source: compile_query(text, source, settings))
        return Network(queries, report=report)

    @property
    def queries(self) -> dict[str, Query]:
        """The queries by name, each behind those that it reads."""
        return {member.name: Query(member.query) for member in self._members}

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """Of each query the queries that it reads."""
        return {member.name: tuple(self._members[i].name for i in member.feeds) for member in self._members}

    @property
    def outputs(self) -> dict[str, str]:
        """The IRI of the stream that the graphs of a query are events of, for each that others read."""
        return dict(self._outputs)

    @property
    def streams(self) -> tuple[tuple[str, str], ...]:
        """(name, IRI) of the streams that are given, in the order of the queries. One whose name an earlier one has
        goes by its IRI."""
        made, names = set(self._outputs.values()), dict[str, str]()
        for member in self._members:
            for name, iri in member.query.streams:
                if iri not in made and iri not in names:
                    names[iri] = iri if name in names.values() else name
        return tuple((name, iri) for iri, name in names.items())

    def run(
        self,
        streams: Streams,
        kb: Known = None,
        *,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        **words: Unpack[StreamWords],
    ) -> NetworkMatches:
        """The matches with the names of their queries, found as they are asked for. Arguments: as of `Query.run`;
        `streams` are those that are given, and `kb` has the graphs that any of the queries names."""
        self.expect_given(streams if isinstance(streams, Mapping) else ())
        chosen = self._reading(options, words)
        sources = stream_sources(self, with_graphs(streams), memory=True)
        check_memory(sources, chosen)
        read = self._input_of(chosen, sources)
        knowledge = self._read_knowledge(kb, entailment)
        return NetworkMatches(self, knowledge, read, keep_events=keep_events, entailment=entailment)

    def follow(
        self,
        streams: Streams,
        kb: Known = None,
        *,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        clock: Duration | None = None,
        **words: Unpack[StreamWords],
    ) -> FollowedMatches[Found]:
        """The matches over streams that go on. Arguments: as of `Query.follow`."""
        knowledge = self._read_knowledge(kb, entailment)

        def open_session(settled: StreamOptions) -> NetworkSession:
            return self.open(kb=knowledge, options=settled, keep_events=keep_events, entailment=entailment)

        self.expect_given(streams if isinstance(streams, Mapping) else ())
        chosen, sources = self._reading(options, words), stream_sources(self, streams)
        followed = Followed(sources, chosen, clock=None if clock is None else clock_length(clock))
        return FollowedMatches(followed, open_session, Input(sources, chosen, followed.options))

    def open(
        self,
        state: bytes | None = None,
        *,
        kb: Known = None,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        **words: Unpack[StreamWords],
    ) -> NetworkSession:
        """An evaluation that graphs are pushed to; from a snapshot, it goes on at its place. Arguments: as of
        `Query.open`."""
        chosen = self._reading(options, words)
        evaluation = self._evaluation(kb, chosen, keep_events=keep_events, entailment=entailment)
        session = NetworkSession(evaluation, chosen)
        if state is not None:
            session.restore(state)
        return session

    def alive(
        self,
        source: Any,
        *,
        state: State = None,
        clock: Duration | None = None,
        save: Saving = None,
        every: Duration = "10s",
        kb: Known = None,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        **words: Unpack[StreamWords],
    ) -> Alive[Found]:
        """The matches over a source, asynchronously: pairs of a query's name and a match. As of `Query.alive`."""
        return Alive(
            lambda blob: self.open(
                blob, kb=kb, options=options, keep_events=keep_events, entailment=entailment, **words
            ),
            source, words=("stream", "time"), state=state, clock=clock, save=save, every=every,
        )  # fmt: skip

    def expect_given(self, streams: Iterable[str]) -> None:
        """`OptionError` if one of these names or IRIs is a stream that a query feeds."""
        named = {iri: name for name, iri in self._outputs.items()}
        named |= {name: named[iri] for member in self._members for name, iri in member.query.streams if iri in named}
        for stream in streams:
            if stream in named:
                problem = f"the events of stream {stream} are the graphs that {named[stream]} constructs"
                raise OptionError(
                    problem, f"leave it out; the network reads {', '.join(name for name, _ in self.streams)}"
                )

    def _reading(self, options: StreamOptions | None, words: Mapping[str, Any]) -> StreamOptions:
        chosen = stream_options(options, words)
        for member in self._members:
            chosen = member.query.reading(chosen)
        return chosen

    def _input_of(self, chosen: StreamOptions, sources: Any) -> Input:
        timed = next((member.query.timed for member in self._members if member.query.timed), "")
        read = Input(sources, chosen, settle(chosen, sources), timed)
        read.check()
        return read

    def _read_knowledge(self, kb: Known, entailment: str | None) -> Knowledge:
        """The knowledge, read once. `OptionError` if a query names a graph that is not there."""
        knowledge = knowledge_of(kb)
        for member in self._members:
            member.query.known(knowledge, entailment, whole=True)
        return knowledge

    def _evaluation(
        self, kb: Known, chosen: StreamOptions, *, keep_events: bool, entailment: str | None
    ) -> NetworkEvaluation:
        knowledge = knowledge_of(kb)
        members: list[tuple[Member[CompiledQuery], Recogniser]] = []
        for member in self._members:
            solver = member.query.solver(knowledge, entailment=entailment)
            program = member.query.program(chosen.unit)
            members.append((member, Recogniser(solver.query, program, solver, keep_events=keep_events)))
        return NetworkEvaluation(members, self._outputs, self.streams, apart=chosen.apart, unit=chosen.unit)

    def __repr__(self) -> str:
        return f"<spaseq.Network of {', '.join(member.name for member in self._members)}>"


def _check_member(member: Member[CompiledQuery]) -> None:
    checked = member.query.checked
    if checked.clauses.ask:
        raise OptionError(f"{member.name} is an ASK, which has one answer", "write SELECT, or CONSTRUCT")
    if not member.read:
        return
    if checked.clauses.template is None:
        problem = f"{member.name} constructs no graph, and other queries read it"
        raise OptionError(problem, "write CONSTRUCT { … } in place of SELECT")
    if not is_told_in_time(member.query):
        raise UnsupportedFeature(
            f"the matches of {member.name} wait for a window that slides or counts, or for the end of the streams, and "
            "other queries read them",
            hint="a window of a time that does not slide, or '!' with FOR, says when they are events",
        )


class NetworkMatches:
    """The matches of a network over streams: pairs of a query's name and a match, in order of the times at which they
    are known. Each use reads the streams anew. `counters` and `notes` are those of the latest use, as of `Matches`."""

    def __init__(
        self, network: Network, knowledge: Knowledge, read: Input, *, keep_events: bool, entailment: str | None
    ) -> None:
        self._network = network
        self._knowledge = knowledge
        self._read = read
        self._keep_events = keep_events
        self._entailment = entailment
        self._failures: Failures | None = None
        self._latest: NetworkEvaluation | None = None
        self.counters: Counters = Counters()

    def __iter__(self) -> Iterator[Found]:
        settings = next(iter(self._network.queries.values())).settings
        return limited_steps(self._find(), settings)

    def _find(self) -> Iterator[Found]:
        evaluation = self._network._evaluation(
            self._knowledge, self._read.settled, keep_events=self._keep_events, entailment=self._entailment
        )
        self._failures, self._latest = Failures(evaluation.functions), evaluation
        opened: Opened = open_files(self._read, evaluation.wanted)
        self.counters = evaluation.counters = opened.counters
        self.counters.about(evaluation)
        seen, threads = opened.read.seen, thread_count(evaluation.settings.threads)
        reading = ReadAhead(
            opened.parts, evaluation.solve_ahead, lambda: evaluation.solve_ahead, opened.counters, seen, threads
        )
        with reading:
            for chunk in merge_batches(reading.streams(), apart=opened.apart):
                check()
                seen.span(chunk.times)
                yield from evaluation.push_chunk(chunk)
            yield from evaluation.close()

    def why_none(self) -> list[str]:
        """As of `Matches.why_none`, for each query."""
        return ["no events were read"] if self._latest is None else self._latest.why_none(self._read)

    @property
    def notes(self) -> tuple[str, ...]:
        """As of `Matches.notes`."""
        closed = self._knowledge.told(slow=True)
        return (*closed, *self._read.notes, *(() if self._failures is None else self._failures.lines()))

    def __repr__(self) -> str:
        return f"<spaseq.NetworkMatches of {', '.join(self._network.queries)}>"


class NetworkSession(GraphSession[Found]):
    """A network that graphs are pushed to: as of `Session`, with pairs of a query's name and a match."""
