"""Uses every public name of both languages, for type checkers: `mypy --strict` must find nothing to say."""

from __future__ import annotations

from collections.abc import Sequence

from rdflib import URIRef

import ceql
import spaseq
from spaseq.core import protocols
from spaseq.live import Delivery, FileSink, LogSource, Sink, match_id


def first(query: protocols.Query, state: bytes | None = None) -> Sequence[protocols.Match]:
    """Code for either language."""
    with query.open(state) as session:
        found = [*session.push([]), *session.advance(0), *session.close()]
    print(query.text, query.source, query.settings, query.pattern, query.automaton, query.warnings, query.growth)
    print(query.explain(), query.explain("svg"), query.picture().dot, session.counters.events, session.counters.late)
    return found


def shown(match: protocols.Match) -> tuple[int, int, tuple[int, ...], int]:
    """What a match of either language has."""
    print(match.times, match.bindings, list(match.events))
    return match.start, match.end, match.positions, match.time


def tuples(text: str) -> int:
    """CEQL."""
    ceql.register_function("TENTH", lambda value: value / 10, returns="number", vectorized=False)
    query: ceql.Query = ceql.compile(text, source="a query", settings=ceql.Settings(live_runs=10))
    matches: ceql.Matches = query.run([{"type": "A"}], schema=None)
    one: ceql.Match = next(iter(matches))
    session: ceql.Session = query.open()
    former: ceql.Stream = session
    more: list[ceql.Match] = former.push({"type": "A"}) + session.advance(1) + session.close()
    schema: ceql.Schema | None = None
    print(shown(one), schema, len(more), matches.to_pandas(), matches.counters.warnings())
    print(matches.to_arrow())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] (pyarrow has no types)
    network = ceql.Network({"first": query}, report=["first"])
    print([(name, shown(one)) for name, one in [*network.run([{"type": "A"}]), *network.open().push([])]])
    kept = matches.collect()
    print(len(kept), shown(kept[0]), kept[:2].head(1), matches.head(3)[0].row, ceql.match([{"type": "A"}], query))
    print(first(query), query.alerts(at_least=2, timeframe="1m").count([{"type": "A"}]), ceql.__version__)
    compared: ceql.Comparison = ceql.compare(text, query, valuations=True, streams=1)
    print(compared.relation, compared.reason, compared.witness, compared.differ, compared.only_old, compared.both)
    return matches.count()


def network() -> int:
    """A network of SPAseq queries."""
    query = spaseq.compile("SELECT ?x FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x ?y ?z } }")
    compared: spaseq.Comparison = spaseq.compare(query, query, streams=1)
    print(compared.relation, compared.only_new)
    several = spaseq.Network({"first": query}, report=["first"])
    graphs = {"S": [("2026-01-01T00:00:00Z", "<urn:a> <urn:b> <urn:c> .")]}
    found = [*several.run(graphs), *several.open(time="urn:time").close()]
    return sum(match.time for name, match in found if name in several.outputs)


async def alive() -> int:
    """Live evaluation."""
    query, network = ceql.compile("SELECT * WHERE A"), ceql.Network({"first": "SELECT * WHERE A"})
    graphs = spaseq.compile("ASK FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x ?y ?z } }")
    places = [match.end async for match in query.alive(LogSource("log.jsonl"), state="state", save="state", every="1s")]
    async with graphs.alive([], clock="2s") as waiting:
        places += [shown(match)[0] async for match in waiting]
    sink: Sink = FileSink("alerts.jsonl")
    async for name, match in network.alive([Delivery({"type": "A"}, 1)]):
        await sink.send({"name": name}, id=match_id(network, (name, match)))
    return len(places)


def built() -> ceql.PatternQuery:
    """CEQL as values of Python."""
    f, ok, other = ceql.event("fail"), ceql.event("login", stream="S"), ceql.event().alias("other")
    price: ceql.Value = f.price + 1 - f["price of it"] * f.prev().price / f[0].price
    level: ceql.Value = ceql.when(f.price > 3).then("high").otherwise(None)
    near: ceql.Condition = (price > 3) & ~ceql.fn.lower(f.name).like("a.*") | (f.price == ok.prices.any())
    parts: list[ceql.Pattern] = [f.times(3, None), ceql.no(other), ceql.any_of(ok, ceql.pattern("A ; B"))]
    pattern = ceql.seq(ceql.steps(*parts), ceql.adjacent(f.where(near), ceql.all_of(ok, other)))
    event: ceql.Event = f
    variable: ceql.Variable = ceql.pattern("A AS a").variable("a")
    query = pattern.over("user", ["shop", "id"]).within("1m").keep("max").within(events=3)
    print(ceql.parse("SELECT * WHERE A").tree, event.count(), variable.price, query.run([]).count())
    print(ceql.compile(pattern).text, query.select(f, ok[["price"]]), f == ok, f.price == 3)
    return query.select(
        f.price.alias("p"),
        level=level,
        user=ceql.key("user"),
        one=ceql.lit(1),
        took=ceql.match_end - ceql.match_start,
        n=ceql.match_count,
        since=ceql.group_start,
    )


def graphs(text: str) -> int:
    """SPAseq."""
    spaseq.register_function("urn:fn#twice", lambda term: term + term, replace=True)
    query: spaseq.Query = spaseq.compile(text, source="a query", settings=spaseq.Settings())
    options = spaseq.StreamOptions()
    source = spaseq.StreamSource("urn:s", ("power.nq",))
    kb = {"urn:k": spaseq.Grouped("roads.ttl", ["urn:p"])} if source.files else spaseq.Knowledge()
    matches: spaseq.Matches = query.run({"S1": source}, kb, options=options)
    one: spaseq.Match = next(iter(matches))
    session: spaseq.Session = query.open()
    event = spaseq.GraphEvent("urn:s", 0, ())
    found: list[spaseq.Match] = session.push(event) + session.push([event])
    print(shown(one), first(query), found, session.snapshot(), matches.counters.events, spaseq.__version__)
    graph = query.construct(one, as_="rdflib")
    found += session.push(graph, time="2026-06-15T08:00:00Z", stream="S1")
    more = query.run({"S1": [(one.time, graph), (one.time, query.construct(one, as_="pyoxigraph"))]})
    print(len(graph), query.construct(one)[0], found, more.count())
    text = spaseq.DirectionalString("x", "en", "ltr")
    term = spaseq.TripleTerm(URIRef("urn:s"), URIRef("urn:p"), text)
    print(term.subject, term.predicate, term.object, term.parts, text.tag, text.direction)
    return matches.count()


def failing() -> str:
    """The errors are one tree, under both names."""
    try:
        tuples("SELECT")
    except (ceql.QuerySyntaxError, spaseq.QuerySemanticsError, ceql.QueryError, spaseq.UnsupportedFeature) as error:
        return str(error)
    except (ceql.BudgetExceeded, ceql.EventError, ceql.OptionError, ceql.InternalError) as error:
        return str(error)
    except (ceql.LimitReached, ceql.SpaseqError) as error:
        return str(error)
    return ""
