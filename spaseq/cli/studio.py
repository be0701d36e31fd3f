"""SPAseq in the studio (`spaseq.tools.studio`)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from spaseq.cli.inputs import graphs_of, grouped_files, knowledge_files
from spaseq.cli.output import FoundResults, write_nquads
from spaseq.core.automata.diagram import automaton_diagram, classes_of
from spaseq.core.drawing import Picture, Timeline, event_text
from spaseq.core.engine import Settings
from spaseq.core.engine.light import lit_by
from spaseq.core.errors import OptionError, SpaseqError
from spaseq.gpm import freeze
from spaseq.gpm.serialise import json_term, short_text
from spaseq.language.query import Query, compile_query
from spaseq.language.results.timelines import drawn_matches, prefixes_of
from spaseq.tools.command import remarks
from spaseq.tools.studio.language import Found, Inputs, one_or_all, python_run, reading_words


class _Spaseq:
    """`spaseq.tools.studio.language.Language`."""

    def compiled(self, text: str, source: str, settings: Settings) -> Query:
        return compile_query(text, source, settings)

    def matches(self, query: Query, inputs: Inputs) -> Any:
        if inputs.events:
            first = query.streams[0][0] if query.streams else "S1"
            raise OptionError("SPAseq reads streams by their names", f"name the file as stream {first}")
        known = knowledge_files(
            graphs_of(query), [f"{iri}={','.join(paths)}" for iri, paths in inputs.knowledge.items()]
        )
        groups = [f"{iri}={','.join(of)}" for iri, of in inputs.groups.items()]
        streams = {name: list(paths) for name, paths in inputs.streams.items()}
        return query.run(streams, grouped_files(known, groups), **dict[str, Any](inputs.reading))

    def found(self, query: Query, matches: Any, limit: int) -> Found:
        clauses = query.checked.clauses
        taken: list[Any] = []
        ended: SpaseqError | None = None
        try:
            for match in islice(matches, 1 if clauses.ask else limit + 1):
                taken.append(match)  # one by one: an error may come behind it
        except SpaseqError as error:
            ended = error
        more, taken = len(taken) > limit, taken[:limit]
        results = FoundResults(taken, query, None, False)
        if clauses.ask:
            rows = [["true"]] if taken else [["false"]] if ended is None else []
            return Found(taken, [("answer", "boolean")], rows, [None] * len(rows), ended=ended)
        if clauses.template is not None:
            out = io.StringIO()
            write_nquads(results, out)
            lines = [[line] for line in out.getvalue().splitlines()]
            return Found(taken, [("N-Quads", "graph")], lines, [None] * len(lines), more, ended)
        kinds: dict[str, set[str]] = {name: set() for name in query.variables}
        waiting: dict[Any, dict[int, int]] = {}  # by bindings, the first match of each time
        for number, match in enumerate(taken):
            waiting.setdefault(freeze(match.bindings), {}).setdefault(match.time, number)
        numbers = {bindings: iter(by_time.values()) for bindings, by_time in waiting.items()}
        prefixes = prefixes_of(query.checked)
        rows = []
        of: list[int | None] = []
        for time, bindings in results.solutions():
            for name in query.variables:
                kinds[name] |= {_kind(bindings[name])} if name in bindings else set()
            rows.append([time, *(short_text(bindings[v], prefixes) if v in bindings else "" for v in query.variables)])
            of.append(next(numbers.get(freeze(bindings), iter(())), None))
        columns = [(results.time_name, "time"), *(("?" + n, " or ".join(sorted(kinds[n]))) for n in query.variables)]
        return Found(taken, columns, rows, of, more, ended)

    def timeline(self, query: Query, matches: Sequence[Any], limit: int) -> Timeline:
        return drawn_matches(matches, query.checked, limit, query.source)

    def event(self, query: Query, event: Any) -> str:
        return event_text(event, partial(short_text, prefixes=prefixes_of(query.checked)))

    def lit(self, query: Query, matches: Any, found: Found) -> tuple[Picture, Sequence[Sequence[str]]]:
        ways = [match.way for match in found.matches]
        stopped = found.more or found.ended or (query.checked.clauses.ask and found.matches)
        progress = None if stopped else matches.progress()
        return Picture(automaton_diagram(query.automaton, lit_by(ways, len(ways), progress))), list(
            map(classes_of, ways)
        )

    def remarks(self, query: Query, matches: Any, written: int) -> tuple[list[str], list[str]]:
        return remarks(matches, written)

    def python(self, file: str, inputs: Inputs) -> str:
        streams = {name: one_or_all(paths) for name, paths in inputs.streams.items()}
        arguments = [repr(streams)]
        if inputs.knowledge:
            known = {iri: repr(one_or_all(paths)) for iri, paths in inputs.knowledge.items()}
            for iri, properties in inputs.groups.items():
                known[iri] = f"spaseq.Grouped({known.get(iri)}, {list(properties)!r})"
            arguments.append("kb={" + ", ".join(f"{iri!r}: {text}" for iri, text in known.items()) + "}")
        return python_run("spaseq", file, [*arguments, *(f"{n}={v!r}" for n, v in inputs.reading.items())])

    def command(self, file: str, inputs: Inputs) -> list[str]:
        words = ["spaseq", "run", file]
        for option, given in (("--stream", inputs.streams), ("--kb", inputs.knowledge), ("--groups", inputs.groups)):
            for name, values in given.items():
                words += [option, f"{name}={','.join(values)}"]
        return [*words, *reading_words(inputs)]


def _kind(term: Any) -> str:
    """Of values of a column."""
    form = json_term(term)
    if form["type"] != "literal":
        return {"uri": "IRI", "bnode": "blank node"}[form["type"]]
    if "xml:lang" in form:
        return f"text@{form['xml:lang']}"
    return form.get("datatype", "text").rpartition("#")[2].rpartition("/")[2]


STUDIO: Final = _Spaseq()
