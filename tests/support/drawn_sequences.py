"""Random SPAseq queries with AFTER MATCH or FIRST, with sequences in parentheses, with AND, with absences for a time,
and with values that runs do not keep."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace

import spaseq
from spaseq.core.errors import SpaseqError
from spaseq.language.runtime.compiled import CompiledQuery
from tests.support import oracle_spaseq_text, strategies
from tests.support.strategies import SpaseqCase

_RULES = ("PAST LAST EVENT", "PAST LAST EVENT", "TO NEXT EVENT", "TO FIRST", "TO LAST", "")


def spaseq_after_case(rng: random.Random) -> SpaseqCase:
    """A query with AFTER MATCH, or `SELECT FIRST`."""
    case = strategies.spaseq_case(rng)
    while strategies.ends_with_negation(case.sequence):
        case = strategies.spaseq_case(rng)
    return with_after(rng, case)


def with_after(rng: random.Random, case: SpaseqCase) -> SpaseqCase:
    """The query with a rule for what a match discards, of a GPM that is not negated if it names one."""
    rule = rng.choice(_RULES)
    if not rule:
        return replace(case, select=f"FIRST {case.select}")
    taking = re.findall(r"[A-Z](?!!)", without_negated(case.sequence))
    name = f" {rng.choice(taking)}" if rule in ("TO FIRST", "TO LAST") else ""
    return replace(case, clauses=f"{case.clauses} AFTER MATCH SKIP {rule}{name}".strip())


def without_negated(sequence: str) -> str:
    """The text of a sequence without what stands in parentheses with a `!` behind them, however deep."""
    while (end := sequence.find(")!")) >= 0:
        depth, start = 1, end
        while depth:
            start -= 1
            depth += {")": 1, "(": -1}.get(sequence[start], 0)
        sequence = sequence[:start] + sequence[end + 2 :]
    return sequence


def groups_case(rng: random.Random) -> SpaseqCase:
    """A query with sequences in parentheses, under `+`, `{l,m}`, `?` and `|`, one in the other at times."""
    while True:
        base = strategies.spaseq_case(rng)
        names = [name for name, _ in base.gpms]
        if len(names) < 2 or strategies.opens_with_negation(base.sequence):
            continue
        case = replace(base, sequence=_chain(rng, names, rng.randint(2, 4), 0))
        if "EVENTS" in case.clauses and strategies.ends_with_negation(case.sequence):
            continue
        if rng.random() < 0.2:
            case = with_after(rng, case)
        if _is_taken(case):
            return case


def unordered_case(rng: random.Random) -> SpaseqCase:
    """A query with AND: alone, between other elements, under suffixes, and in alternatives."""
    while True:
        base = strategies.spaseq_case(rng)
        names = [name for name, _ in base.gpms]
        if len(names) < 2:
            continue
        elements = [_beside(rng, names) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
        elements.insert(rng.randint(0, len(elements)), _around_parts(rng, names))
        sequence = elements[0] + "".join(f" {rng.choice(',;:;')} {element}" for element in elements[1:])
        case = replace(base, sequence=sequence)
        if rng.random() < 0.5:
            case = replace(case, gpms=_with_condition(rng, case.gpms))
        if rng.random() < 0.2 and not strategies.ends_with_negation(sequence):
            case = with_after(rng, case)
        if _is_taken(case):
            return case


def _with_condition(rng: random.Random, gpms: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The GPMs, one of them with a FILTER that names variables of two others, or of itself and of any other one."""
    place = rng.randrange(len(gpms))
    name, body = gpms[place]
    own, every = (sorted(set(re.findall(r"\?[uvwxyz]", text))) for text in (body, " ".join(b for _, b in gpms)))
    if not own or len(every) < 2:
        return gpms
    left = rng.choice(own if rng.random() < 0.8 else every)
    right = rng.choice([v for v in every if v != left])
    condition = f"{left} {rng.choice(('<', '<=', '!=', '=', '>'))} {right}"
    if rng.random() < 0.2:
        condition = f"!BOUND({right}) || {condition}"
    elif rng.random() < 0.2:
        condition += f" && {left} + {rng.choice(every)} < 7"
    return (*gpms[:place], (name, f"{body[:-1].rstrip()} FILTER ({condition}) }}"), *gpms[place + 1 :])


def _beside(rng: random.Random, names: list[str]) -> str:
    return rng.choice(names) + rng.choice(("", "", "", "", "+", "?", "!", "!"))


def _around_parts(rng: random.Random, names: list[str]) -> str:
    """An AND, with something around it at times."""
    parts = rng.sample(names, min(len(names), rng.choice((2, 2, 2, 3, 3, 4))))
    if rng.random() < 0.1:
        parts.append(rng.choice(parts))
    if rng.random() < 0.3:
        place, pair = rng.randrange(len(parts)), rng.sample(names, 2)
        parts[place] = f"{pair[0]} {rng.choice('&|')} {pair[1]}"
    both = f"AND({', '.join(parts)})"
    if len(parts) > 2 and rng.random() < 0.2:
        both = f"AND({parts[0]}, AND({', '.join(parts[1:])}))"
    kind = rng.random()
    if kind < 0.6:
        return both + rng.choice(("", "", "", "", "?", "+", ":+", "{2}"))
    other = rng.choice(names)
    if kind < 0.75:
        return rng.choice((f"({both} | {other})", f"({other} | {both})"))
    inside = rng.choice((f"({other} {rng.choice(',;:')} {both})", f"({both} {rng.choice(',;:')} {other})"))
    return inside + rng.choice(("", "", "?", "+", "{1,2}"))


def lookups_case(rng: random.Random) -> SpaseqCase:
    """A sequence of single steps, absences between them at times, whose values results look up in their instants."""
    while True:
        base = rng.choice((strategies.spaseq_case, strategies.spaseq_case, strategies.long_spaseq_case))(rng)
        names = [name for name, _ in base.gpms]
        sequence = rng.choice(names)
        for _ in range(rng.choice((1, 2, 2, 3))):
            if rng.random() < 0.2:
                sequence += f" {rng.choice(',;:')} {rng.choice(names)}!"
            step = f"({' & '.join(rng.sample(names, 2))})" if len(names) > 1 and rng.random() < 0.1 else ""
            sequence += f" {rng.choice(',;:::')} {step or rng.choice(names)}"
        case = replace(base, sequence=sequence, clauses=base.clauses.replace("PARTITION BY (?s)", "").strip())
        if rng.random() < 0.6:
            case = replace(case, select="*")
        if rng.random() < 0.15:
            case = with_after(rng, case)
        if _is_taken(case) and CompiledQuery(case.text).lookups is not None:
            return case


_TIMES = ("1 SECOND", "2 SECONDS", "3 SECONDS", "500 MILLISECONDS", "1.5 SECONDS", "9 SECONDS")


def lasting_case(rng: random.Random) -> SpaseqCase:
    """A query with `!` FOR in front of its sequence, behind it, or between two elements."""
    while True:
        base = rng.choice((strategies.spaseq_case, strategies.spaseq_case, unordered_case))(rng)
        if strategies.opens_with_negation(base.sequence) or strategies.ends_with_negation(base.sequence):
            continue
        names, sequence, place = [name for name, _ in base.gpms], base.sequence, rng.random()
        if rng.random() < 0.6:
            later = rng.choice(names) + rng.choice(("", "", "", "+", ";+", "?"))
            other = rng.choice((later, f"AND({later[0]}, {rng.choice(names)})", f"({later[0]} | {rng.choice(names)})"))
            sign = rng.choice(";;;:")
            sequence = f"{sequence} {sign} {_silence(rng, names)} {rng.choice((sign, sign, ':', ';'))} {other}"
            if rng.random() < 0.4:
                sequence = f"{sequence} {rng.choice(',;:')} {rng.choice(names)}"
            place = rng.choice((0.5, 0.5, place))
        if place < 0.5:
            sequence = f"{_silence(rng, names)} {rng.choice(',;:')} {sequence}"
        if place > 0.5:
            sequence += f" {rng.choice(',;:')} {_silence(rng, names)}"
        case = replace(base, sequence=sequence)
        if _is_taken(case):
            return case


def _silence(rng: random.Random, names: list[str]) -> str:
    """One absence for a time, or two of one time."""
    time, several = rng.choice(_TIMES), rng.sample(names, min(len(names), rng.choice((1, 1, 1, 2))))
    if len(several) > 1 and rng.random() < 0.5:
        sign = rng.choice("&|")
        return f"({f' {sign} '.join(several)})! FOR {time}"
    return " ; ".join(f"{name}! FOR {time}" for name in several)


def _is_taken(case: SpaseqCase) -> bool:
    """True if the engine takes it: a FILTER names nothing that comes later, and `!` stands between two elements."""
    try:
        oracle_spaseq_text.read(case.text)
        spaseq.compile(case.text)
    except (KeyError, ValueError, SpaseqError):  # a part taken out may have left no text of a query
        return False
    return True


def _chain(rng: random.Random, names: list[str], length: int, depth: int) -> str:
    """Elements in a row; at least one of them holds a sequence, unless there are enough around."""
    elements = [_element(rng, names, depth) for _ in range(length)]
    if depth == 0 and not any("(" in element for element in elements):
        elements[rng.randrange(length)] = _sequence(rng, names, depth)
    return elements[0] + "".join(f" {rng.choice(',;:;')} {element}" for element in elements[1:])


def _element(rng: random.Random, names: list[str], depth: int) -> str:
    kind = rng.random()
    if kind < (0.35, 0.15, 0)[depth]:
        return _sequence(rng, names, depth)
    if kind < 0.5:
        left, right = rng.sample(names, 2)
        return f"({left} {rng.choice('&|')} {right}){rng.choice(('', '', '+', '?'))}"
    return rng.choice(names) + rng.choice(("", "", "", "", "", "+", ";+", ":{1,2}", "?", "!"))


def _sequence(rng: random.Random, names: list[str], depth: int) -> str:
    inside = f"({_chain(rng, names, rng.choice((2, 2, 3)), depth + 1)})"
    if rng.random() < 0.3:
        other = rng.choice(names)
        if rng.random() < 0.3:
            other = f"({_chain(rng, names, 2, depth + 1)})"
        inside = f"({inside} | {other})" if rng.random() < 0.5 else f"({other} | {inside})"
    return inside + rng.choice(("", "+", "+", ";+", ":+", ",+", "{2}", ";{1,2}", ":{0,2}", "?", "+?"))


def smaller_sequences(case: SpaseqCase) -> Iterator[SpaseqCase]:
    """The same with a part less, as both the engine and the oracle take it."""
    yield from filter(_is_taken, strategies.smaller_spaseq(case))
    for found in re.finditer(r"(?<!AND)\([^()]*\)", case.sequence):
        for part in re.split(r" [,;:|&] ", found[0][1:-1]):
            fewer = replace(case, sequence=case.sequence[: found.start()] + part + case.sequence[found.end() :])
            if _is_taken(fewer):
                yield fewer
    for found in re.finditer(r"[A-Z], (?!AND)|, [A-Z](?=[,)])", case.sequence):
        fewer = replace(case, sequence=case.sequence[: found.start()] + case.sequence[found.end() :])
        if _is_taken(fewer):
            yield fewer
    for found in re.finditer(r" [,;:|&] [A-Z](?![A-Z+{?!;:,])|[A-Z] [,;:|&] ", case.sequence):
        fewer = replace(case, sequence=case.sequence[: found.start()] + case.sequence[found.end() :])
        if _is_taken(fewer):
            yield fewer
