"""From the syntax tree to a checked query: names are resolved, GPMs compiled, unsupported features refused.

The sequence expression becomes a list of `Element`s. Each is a BOp expression in disjunctive normal form: a tuple of
conjunctions, each a tuple of GPM names. By [SPAseq] Definitions 8 and 9, `&` joins mapping sets and `|` unites them, so
the normal form has the same value. The operators between elements associate to the left, as Definitions 10 to 14
need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from spaseq.core.engine import AfterMatch
from spaseq.core.errors import BudgetExceeded, OptionError, QuerySemanticsError, Span, UnsupportedFeature
from spaseq.core.events.time import parse_duration
from spaseq.gpm import GraphPattern, Source, compile_pattern
from spaseq.gpm.functions.own import misfit_of
from spaseq.gpm.functions.registered import is_registered
from spaseq.gpm.legal import check_labels
from spaseq.gpm.scope import hidden_variables
from spaseq.language.semantics.clauses import Clauses, Scope, check_clauses, name_hint
from spaseq.language.semantics.expand import Conjunction, Element, Rounds, Variant, expand, is_solid
from spaseq.language.semantics.filters import conditions
from spaseq.language.semantics.lasting import Lasting, read_lasting, time_of
from spaseq.language.syntax import ast
from spaseq.language.syntax.parse import KNOWN_PREFIXES
from spaseq.language.syntax.scan import mask

__all__ = ["CheckedQuery", "Conjunction", "Element", "check"]

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that has been checked, with its GPMs and clauses compiled.

    `patterns`: the GPMs that SEQ uses, by name. `elements`: the sequence as written; `variants`: as sequences without
    `?` and `!`. `streams`: (name, IRI) in order of the FROM clauses. `partition`: the variables of PARTITION BY.
    `after`: what a match discards, by AFTER MATCH or FIRST; None without.
    `window`: nanoseconds, or a number of instants; None without WITHIN. `lasting`: the times of `!` with FOR.
    `schema`: a text that identifies the RDFS schema by which the GPMs were rewritten, "none" without entailment.
    `warnings`: messages for the user.
    """

    tree: ast.Query
    patterns: dict[str, GraphPattern]
    elements: tuple[Element, ...]
    variants: tuple[Variant, ...]
    streams: tuple[tuple[str, str], ...]
    clauses: Clauses
    partition: tuple[str, ...]
    window: int | None
    after: AfterMatch | None = None
    lasting: Lasting = Lasting()  # noqa: RUF009 - frozen
    schema: str = "none"
    warnings: tuple[str, ...] = field(compare=False, default=())

    @property
    def functions(self) -> tuple[str, ...]:
        """The IRIs of the functions that it calls, each once."""
        return tuple(dict.fromkeys(iri for _, calls in _calls(self.patterns, self.clauses) for iri, _ in calls))

    @property
    def select(self) -> tuple[str, ...]:
        """The variables of a result, in order."""
        return self.clauses.select


def check(
    tree: ast.Query, text: str, source: str = "<query>", *, variants: int = 256, repeated: int = 1_000
) -> CheckedQuery:
    """Checks a query; errors quote `text` and name `source`.

    Raises `QuerySemanticsError`, `UnsupportedFeature` and the errors of `compile_pattern`. Raises `BudgetExceeded` of
    `variants` if optional and negated elements make more sequences than that; and of `repeated_events` if the sequence
    takes more than `repeated` instants, with bounded repetition written out.
    """
    return _Checker(tree, text, source, variants, repeated).run()


class _Checker:
    def __init__(self, tree: ast.Query, text: str, source: str, most: int, repeated: int) -> None:
        self._most = most
        self._repeated = repeated
        self._tree = tree
        self._text = text
        self._source = source
        self._masked = mask(text, source)
        self._negated_only: frozenset[str] = frozenset()

    def run(self) -> CheckedQuery:
        streams = self._streams()
        definitions = self._definitions(streams)
        elements = tuple(self._elements(self._tree.sequence, definitions))
        self._check_length(elements)
        used = set(_names(elements))
        patterns = self._patterns(definitions, streams)
        sequence_patterns = {name: p for name, p in patterns.items() if name in used}
        self._check_scopes(elements, sequence_patterns)
        lasting = read_lasting(self._tree.sequence, self._fail, self._refuse)
        variants = self._variants(elements, lasting, sequence_patterns)
        clauses = self._clauses(elements, sequence_patterns)
        if lasting.patience is not None and clauses.by_window and self._tree.within is not None:
            hint = "leave out WITHIN, or FOR: a match is known when its time is over, perhaps behind its window"
            self._refuse("'!' with FOR at the end of SEQ with a clause that ranges over a window",
                         self._tree.sequence.span, hint)  # fmt: skip
        unused = [f"GPM {name} is defined and SEQ does not use it" for name in definitions if name not in used]
        return CheckedQuery(
            tree=self._tree,
            patterns=sequence_patterns,
            elements=elements,
            variants=variants,
            streams=tuple(streams.items()),
            clauses=clauses,
            partition=self._partition(sequence_patterns),
            window=self._window(),
            after=self._after(definitions, elements, variants),
            lasting=lasting,
            warnings=(*unused, *_without_effect(elements), *_calls_without_value(sequence_patterns, clauses)),
        )

    # -- errors

    def _fail(self, problem: str, span: Span | None, hint: str = "", expected: tuple[str, ...] = ()) -> NoReturn:
        raise QuerySemanticsError(
            problem, text=self._text, span=span, source=self._source, hint=hint, expected=expected
        )

    def _refuse(self, feature: str, span: Span | None, hint: str = "") -> NoReturn:
        raise UnsupportedFeature(
            f"{feature} is not supported by this version", text=self._text, span=span, source=self._source, hint=hint
        )

    # -- clauses

    def _streams(self) -> dict[str, str]:
        streams: dict[str, str] = {}
        if not self._tree.streams:
            self._fail("the query reads no stream", self._tree.form_span, "name one: FROM STREAM S1 <iri>")
        for stream in self._tree.streams:
            if stream.name in streams:
                self._fail(f"the stream name {stream.name} is given twice", stream.span)
            if stream.iri in streams.values():
                self._fail(f"the stream <{stream.iri}> is read twice", stream.span, "use one name for it in every GPM")
            streams[stream.name] = stream.iri
        return streams

    def _definitions(self, streams: dict[str, str]) -> dict[str, ast.Definition]:
        definitions: dict[str, ast.Definition] = {}
        for definition in self._tree.definitions:
            if definition.name in definitions:
                self._fail(f"GPM {definition.name} is defined twice", definition.span)
            for name in definition.streams:
                if name.text not in streams:
                    hint = name_hint(name.text, streams) or f"declare it: FROM STREAM {name.text} <iri>"
                    self._fail(f"GPM {definition.name} reads the unknown stream {name.text}", name.span, hint)
            definitions[definition.name] = definition
        return definitions

    def _window(self) -> int | None:
        within = self._tree.within
        if within is None:
            return None
        if within.by_events:
            return self._window_of_events(within)
        try:
            size = parse_duration(f"{within.amount} {within.unit.lower()}")
        except OptionError:
            self._fail("this window is longer than time itself", within.span, "windows go up to 292 years")
        if size <= 0:
            self._fail("the window holds no time", within.span, "WITHIN needs a duration above zero")
        return size

    def _window_of_events(self, within: ast.Within) -> int:
        if not within.amount.isdecimal() or len(within.amount) > 19 or not 0 < int(within.amount) < 1 << 63:
            self._fail("a number of events is a whole one, from 1 to 2^63 - 1", within.span, "WITHIN 10 EVENTS")
        if within.start is not None:
            hint = "each match has a window of its own, which begins with it"
            self._fail("STARTING AT stands with a window of events", within.span, hint)
        if self._tree.partition:
            self._refuse(
                "WITHIN … EVENTS with PARTITION BY",
                within.span,
                "take a window of time, or leave out PARTITION BY and give the GPMs the variable",
            )
        return int(within.amount)

    def _after(
        self, definitions: dict[str, ast.Definition], elements: tuple[Element, ...], variants: tuple[Variant, ...]
    ) -> AfterMatch | None:
        """The rule for what a match discards; refuses what has no meaning with it."""
        tree, clause = self._tree, self._tree.after
        gpm = None if clause is None else clause.gpm
        if gpm is not None:
            self._check_goal(gpm, definitions, elements)
        rule = AfterMatch.of(
            None if clause is None else clause.rule,
            "" if gpm is None else gpm.text,
            once=tree.once,
            keyed=bool(tree.partition),
        )
        if rule is None:
            return None
        named = f"{tree.form} FIRST" if tree.once else "AFTER MATCH"
        if tree.form == "ASK" and clause is not None:
            self._fail("AFTER MATCH in ASK", clause.span, "ASK is true as soon as there is a match: leave it out")
        if tree.once and clause is not None:
            hint = "FIRST reports one match and discards all others: leave one of them out"
            self._fail(f"{named} and AFTER MATCH do not go together", clause.span, hint)
        if any(variant.after for variant in variants):
            span = tree.form_span if clause is None else clause.span
            self._refuse(f"a negation at the end of SEQ with {named}", span, "its matches wait for their windows")
        return rule

    def _check_goal(self, gpm: ast.Name, definitions: dict[str, ast.Definition], elements: tuple[Element, ...]) -> None:
        """Checks that the GPM of TO FIRST or TO LAST takes instants of matches."""
        taking = set(_names(elements, negated=False))
        if gpm.text in taking:
            return
        if gpm.text in _names(elements):
            hint = "name a GPM without '!'"
            self._fail(f"AFTER MATCH names {gpm.text}, and a negated GPM takes no instant", gpm.span, hint)
        unused = f"AFTER MATCH names {gpm.text}, and SEQ does not"
        unknown = f"AFTER MATCH names the unknown GPM {gpm.text}"
        self._fail(unused if gpm.text in definitions else unknown, gpm.span, name_hint(gpm.text, sorted(taking)))

    # -- the sequence expression

    def _elements(self, sequence: ast.Element, definitions: dict[str, ast.Definition]) -> Iterator[Element]:
        links: list[tuple[ast.Operator | None, ast.Element]] = [(None, sequence)]
        if isinstance(sequence, ast.Chain):
            links = [(None, sequence.first), *sequence.rest]
        for operator, element in links:
            written, rounds, optional, negated = element, None, False, False
            lasting: int | None = None
            while isinstance(element, ast.Repeated | ast.Optional | ast.Negated):
                match element:
                    case ast.Repeated():
                        rounds = self._rounds(rounds, element)
                        optional = optional or element.low == 0
                    case ast.Optional():
                        # Of rounds that may each be left out, any number may be.
                        rounds, optional = rounds and replace(rounds, low=1), True
                    case ast.Negated():
                        negated, lasting = True, time_of(element, self._fail)
                element = element.child
            if negated and (rounds or optional):
                self._fail(
                    "'!' stands together with a repetition or '?'",
                    written.span,
                    "what must not occur cannot be repeated or left out: write '!' alone",
                )
            if isinstance(element, ast.Unordered):
                yield self._any_order(Element(operator, (), rounds, optional, negated), element, definitions)
                continue
            if not _has_sequence(element):
                alternatives = tuple(sorted(set(self._alternatives(element, definitions))))
                yield Element(operator, alternatives, rounds, optional, negated, lasting=lasting)
                continue
            if negated:
                hint = "what must not come is at one instant: a GPM, or several joined by '&' and '|'"
                self._fail("'!' stands behind a sequence", written.span, hint)
            inner = tuple(self._inner(element, definitions))
            if (rounds is not None or len(inner) > 1) and not all(map(is_solid, inner)):
                self._refuse(
                    "a sequence under a repetition or '|' that may be empty, or begin or end with '!'",
                    written.span,
                    "put '!' between two elements, and '?' behind the parentheses: (A ; N! ; B)+, (A ; B)+?",
                )
            yield Element(operator, (), rounds, optional, inner=inner)

    def _any_order(self, written: Element, element: ast.Unordered, definitions: dict[str, ast.Definition]) -> Element:
        """The element of an AND, `written` with the suffixes behind it; AND inside of AND adds its parts."""
        if written.negated:
            hint = "what must not come is at one instant: a GPM, or several joined by '&' and '|'"
            self._fail("'!' stands behind AND", element.span, hint)
        parts: list[Element] = []
        for part in element.parts:
            if isinstance(part, ast.Unordered):
                inside = self._any_order(Element(None, ()), part, definitions)
                parts += [e for (e,) in inside.inner]
                continue
            self._check_part(part)
            parts.append(Element(None, tuple(sorted(set(self._alternatives(part, definitions))))))
        return replace(written, inner=tuple((part,) for part in parts), unordered=True)

    def _check_part(self, part: ast.Element) -> None:
        """Refuses a part of an AND that takes several instants, or none."""
        match part:
            case ast.Repeated():
                sign, hint = "a repetition", "one instant of each part: put it behind AND, (A ; B)+ or AND(A, B)+"
            case ast.Optional():
                sign, hint = "'?'", "write the other parts as an alternative: (AND(A, B) | B)"
            case ast.Negated():
                sign, hint = "'!'", "what must not come stands in front of AND, or behind it: N! ; AND(A, B)"
            case _ if _has_sequence(part):
                sign, hint = "a sequence", "each part takes one instant: a GPM, or several joined by '&' and '|'"
            case _:
                return
        self._refuse(f"{sign} in a part of AND", part.span, hint)

    def _inner(self, element: ast.Element, definitions: dict[str, ast.Definition]) -> Iterator[tuple[Element, ...]]:
        """The alternatives of an element that holds sequences in parentheses."""
        if isinstance(element, ast.Chain | ast.Unordered):
            yield tuple(self._elements(element, definitions))
        elif isinstance(element, ast.Either):
            plain = [part for part in element.parts if not _has_sequence(part)]
            if plain:
                alternatives = {c for part in plain for c in self._alternatives(part, definitions)}
                yield (Element(None, tuple(sorted(alternatives))),)
            for part in element.parts:
                if _has_sequence(part):
                    yield from self._inner(part, definitions)
        else:
            self._alternatives(element, definitions)  # says what is amiss

    def _rounds(self, around: Rounds | None, element: ast.Repeated) -> Rounds:
        """The rounds of a repetition; `around`: those of one around it, which must be the same `+`."""
        found = Rounds(max(1, element.low), element.high, element.operator)
        if around is not None and (around != found or found != Rounds(operator=found.operator)):
            self._fail("a repetition of a repetition", element.span, "write one: A+ or A{2,4}")
        return found

    def _check_length(self, elements: tuple[Element, ...]) -> None:
        """Checks the number of instants of the longest sequence, with bounded repetition written out. In a repetition
        all alternatives count."""
        length = _length(elements)
        if length > max(self._repeated, len(elements)):
            hint = "A+ takes any number of rounds; write fewer, or raise repeated_events"
            raise BudgetExceeded("repeated_events", self._repeated, length, "instants in a row", hint)

    def _variants(
        self, elements: tuple[Element, ...], lasting: Lasting, patterns: dict[str, GraphPattern]
    ) -> tuple[Variant, ...]:
        variants = expand(elements, self._most)
        if not variants:
            self._fail("SEQ holds nothing that must occur", self._tree.sequence.span, "name a GPM without '!'")
        within = self._tree.within
        in_front = {c for variant in variants for c in variant.before}
        if lasting.silence is not None and any(any(conditions(patterns, c, inner=False)) for c in in_front):
            self._refuse(
                "'!' with FOR at the start of SEQ, of GPMs with a FILTER on what another one may leave unbound",
                self._tree.sequence.span,
                "leave out FOR, or bind the variable in every solution",
            )
        if within is not None and within.slides and lasting.silence is None and in_front:
            kind, other = ("EVENTS", "take one of time") if within.by_events else ("SLIDING", "leave out SLIDING")
            self._refuse(
                f"a negation at the start of SEQ with WITHIN … {kind}",
                self._tree.sequence.span,
                f"a sliding window opens at no one time: {other}, or put a GPM before the negation",
            )
        if within is not None and within.by_events and any(variant.after for variant in variants):
            self._refuse(
                "a negation at the end of SEQ with WITHIN … EVENTS",
                self._tree.sequence.span,
                "take a window of time, or put a GPM behind the negation",
            )
        return variants

    def _alternatives(self, element: ast.Element, definitions: dict[str, ast.Definition]) -> list[Conjunction]:
        """The disjunctive normal form of a BOp expression."""
        match element:
            case ast.Reference(name, span):
                if name not in definitions:
                    hint = name_hint(name, definitions) or f"define it: DEFINE GPM {name} ON stream {{ … }}"
                    self._fail(f"SEQ names the unknown GPM {name}", span, hint)
                return [(name,)]
            case ast.Either(parts):
                return [c for part in parts for c in self._alternatives(part, definitions)]
            case ast.Both(parts):
                product: list[Conjunction] = [()]
                for part in parts:
                    right = self._alternatives(part, definitions)
                    product = [tuple(sorted((*c, *d))) for c in product for d in right]
                return product
            case ast.Repeated(span=span):
                self._fail("'+' stands inside '&' or '|'", span, "they combine GPMs at one instant; write (A | B)+")
            case ast.Optional(span=span):
                self._fail("'?' stands inside '&' or '|'", span, "they combine GPMs at one instant; write (A | B)?")
            case ast.Negated(span=span):
                self._fail("'!' stands inside '&' or '|'", span, "they combine GPMs at one instant; write (A | B)!")
            case ast.Chain(span=span):
                self._fail(
                    "a sequence stands inside '&'", span, "'&' combines GPMs at one instant; '|' takes sequences"
                )
            case ast.Unordered(span=span):
                hint = "AND takes the parts of '&' at one instant: AND(A & B, C)"
                self._fail("AND stands inside '&'", span, hint)

    # -- GPMs and variables

    def _patterns(self, definitions: dict[str, ast.Definition], streams: dict[str, str]) -> dict[str, GraphPattern]:
        self._sources = {
            name: self._source_of(name, definition.group.span.start, definition.group.span.end)
            for name, definition in definitions.items()
        }
        places = ((source.name, source.start, source.end) for source in self._sources.values())
        check_labels(places, self._masked, self._text, self._source)
        return {
            name: compile_pattern(
                self._sources[name], tuple(dict.fromkeys(streams[s.text] for s in definition.streams))
            )
            for name, definition in definitions.items()
        }

    def _source_of(self, name: str, start: int, end: int) -> Source:
        """A part of the text, with the prefixes and names that its SPARQL needs."""
        prefixes = dict(KNOWN_PREFIXES)
        base = ""
        for prefix in self._tree.prologue:
            if prefix.label is None:
                base = prefix.iri
            else:
                prefixes[prefix.label] = prefix.iri
        return Source(
            query=self._text,
            masked=self._masked,
            start=start,
            end=end,
            name=name,
            prefixes=tuple(sorted(prefixes.items())),
            base=base,
            file=self._source,
        )

    def _check_scopes(self, elements: tuple[Element, ...], patterns: dict[str, GraphPattern]) -> None:
        """Checks that every variable in a FILTER is bound by its GPM, by one before it, or by one at the same
        instant."""
        everywhere = _binds(patterns.values())
        self._negated_only = everywhere - _binds(patterns[name] for name in _names(elements, negated=False))

        def check(elements: tuple[Element, ...], before: frozenset[str]) -> None:
            for element in elements:
                for conjunction in element.alternatives:
                    reachable = before | _binds(patterns[name] for name in conjunction)
                    for name in conjunction:
                        self._check_pattern(patterns[name], reachable, everywhere)
                own = _binds(patterns[name] for name in _names([element], negated=False))
                for inside in element.inner:
                    check(inside, before | own if element.unordered else before)
                before |= own

        check(elements, frozenset())

    def _check_pattern(self, pattern: GraphPattern, reachable: frozenset[str], everywhere: frozenset[str]) -> None:
        for name in sorted(pattern.needs - reachable):
            self._unknown_in_filter(pattern, name, reachable, everywhere)
        for where, names in hidden_variables(pattern):
            for name in sorted(names):
                if name in everywhere:
                    self._refuse(
                        f"{where} of GPM {pattern.name} that names ?{name} of another GPM",
                        self._sources[pattern.name].variable(name),
                        "compare with other GPMs in a FILTER at the top of the graph pattern, or rename the variable",
                    )
                elif where != "an EXISTS":
                    self._unknown_in_filter(pattern, name, pattern.binds, everywhere)

    def _unknown_in_filter(
        self, pattern: GraphPattern, name: str, known: frozenset[str], everywhere: frozenset[str]
    ) -> NoReturn:
        span = self._sources[pattern.name].variable(name)
        if name in everywhere:
            self._fail(
                f"a FILTER of GPM {pattern.name} names ?{name}, which is bound only after {pattern.name}, or in an "
                "alternative to it",
                span,
                "a FILTER can name variables of its own GPM, of GPMs before it, and of those joined to it by '&' or AND"
                + self._only_negated(name),
            )
        self._fail(
            f"GPM {pattern.name} names the unknown variable ?{name}: neither it nor a GPM before it binds ?{name}",
            span,
            name_hint(name, known, "?") or "bind it in a triple pattern",
        )

    def _only_negated(self, name: str) -> str:
        """The addition to a hint for a variable that only negated GPMs have; "" for others."""
        return "; a negated GPM binds nothing" if name in self._negated_only else ""

    def _clauses(self, elements: tuple[Element, ...], patterns: dict[str, GraphPattern]) -> Clauses:
        order = _names(elements, negated=False)
        bound = tuple(dict.fromkeys(v for name in order for v in sorted(patterns[name].binds)))
        iterated, nested = set[str](), set[str]()

        def find(elements: tuple[Element, ...], before: frozenset[str], depth: int) -> None:
            """`before`: bound in front of the outermost repetition around."""
            for element in elements:
                own = _binds(patterns[name] for name in _names([element], negated=False))
                around = depth + (element.rounds is not None)
                if around and not element.inner:
                    (iterated if around == 1 else nested).update(own - before)
                for inside in element.inner:
                    find(inside, before, around)
                before |= frozenset() if depth else own

        find(elements, frozenset(), 0)
        source = self._source_of("the query", 0, len(self._text))
        rounds = frozenset(iterated - nested)
        return check_clauses(self._tree, source, Scope(bound, self._negated_only, rounds, frozenset(nested)))

    def _partition(self, patterns: dict[str, GraphPattern]) -> tuple[str, ...]:
        for variable in self._tree.partition:
            missing = sorted(name for name, p in patterns.items() if variable.text not in p.binds)
            if missing == sorted(patterns):
                self._fail(
                    f"PARTITION BY names the unknown variable ?{variable.text}: no GPM in SEQ binds it",
                    variable.span,
                    name_hint(variable.text, _binds(patterns.values()), "?"),
                )
            if missing:
                self._fail(
                    f"PARTITION BY ?{variable.text}, and GPM {missing[0]} does not bind it",
                    variable.span,
                    "every GPM in SEQ must bind what partitions the streams",
                )
        return tuple(dict.fromkeys(v.text for v in self._tree.partition))


def _has_sequence(element: ast.Element) -> bool:
    """True if it is a sequence, or an alternative of it is one."""
    if isinstance(element, ast.Either):
        return any(map(_has_sequence, element.parts))
    return isinstance(element, ast.Chain | ast.Unordered)


def _names(elements: Iterable[Element], *, negated: bool = True) -> list[str]:
    """The GPMs that elements name, in order, perhaps without those that must not match."""
    parts = (part for element in elements for part in element.parts() if negated or not part.negated)
    return [name for part in parts for conjunction in part.alternatives for name in conjunction]


def _length(elements: Iterable[Element]) -> int:
    return sum(
        (e.rounds.high or e.rounds.low if e.rounds else 1) * (sum(map(_length, e.inner)) if e.inner else 1)
        for e in elements
    )


def _without_effect(elements: tuple[Element, ...]) -> Iterator[str]:
    """Warnings about negations that can forbid nothing: those after `;` or `:`, before an element that follows at
    once."""
    for sequence in (inner for element in elements for inner in element.inner):
        yield from _without_effect(sequence)
    for i, element in enumerate(elements[1:-1], 1):
        following = elements[i + 1]
        between = element.negated and element.operator is not ast.Operator.STRICT
        inside = any(not e.negated for e in elements[:i]) and any(not e.negated for e in elements[i + 1 :])
        if between and inside and following.operator is ast.Operator.STRICT:
            names = " | ".join(" & ".join(c) for c in element.alternatives)
            sign = element.operator.value if element.operator else ""
            yield f"{names}! forbids nothing between '{sign}' and ',': no instant can lie there"


def _calls(patterns: Mapping[str, GraphPattern], clauses: Clauses) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    """For each GPM and for the result clauses, in words: the functions that IRIs name, as of `GraphPattern.calls`."""
    for name, pattern in patterns.items():
        yield f"GPM {name}", pattern.calls
    if clauses.plan is not None:
        yield "a clause of the result", clauses.plan.calls


def _calls_without_value(patterns: Mapping[str, GraphPattern], clauses: Clauses) -> Iterator[str]:
    """Warnings about calls of functions that are not defined, or take another number of arguments. In SPARQL such a
    call is an error of the expression, not of the query."""
    for place, calls in _calls(patterns, clauses):
        for iri, given in calls:
            if not is_registered(iri):
                hint = f'spaseq.register_function("{iri}", function) makes it one'
                hint = (
                    "casts are xsd:integer, decimal, float, double, boolean, string and dateTime"
                    if iri.startswith(_XSD)
                    else hint
                )
                said = f"{place} calls <{iri}>, which is no function here: it never has a value ({hint})"
            elif misfit := misfit_of(iri, given):
                said = f"{place} calls <{iri}>, which {misfit}: the call never has a value"
            else:
                continue
            yield said


def _binds(patterns: Iterable[GraphPattern]) -> frozenset[str]:
    return frozenset().union(*(p.binds for p in patterns))
