"""Prints a syntax tree as a SPAseq query; parsing the text gives an equal tree."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.language.syntax import ast


def print_query(query: ast.Query) -> str:
    """The query as text. Embedded SPARQL is printed as it was written."""
    return "\n".join(_lines(query)) + "\n"


def print_sequence(element: ast.Element) -> str:
    """A sequence expression, without SEQ and its parentheses."""
    match element:
        case ast.Chain(first, rest):
            links = (f"{operator.value} {_inner(part)}" for operator, part in rest)
            return " ".join([_inner(first), *links])
        case ast.Either(parts):
            return " | ".join(_inner(part, (ast.Chain, ast.Either)) for part in parts)
        case ast.Both(parts):
            return " & ".join(_inner(part, (ast.Chain, ast.Either, ast.Both)) for part in parts)
        case ast.Repeated(child):
            return _inner(child, (ast.Chain, ast.Either, ast.Both)) + _rounds(element)
        case ast.Optional(child):
            return _inner(child, (ast.Chain, ast.Either, ast.Both)) + "?"
        case ast.Negated(child, lasting):
            time = "" if lasting is None else f" FOR {lasting.amount} {lasting.unit}"
            return _inner(child, (ast.Chain, ast.Either, ast.Both)) + "!" + time
        case ast.Unordered(parts):
            return f"AND({', '.join(map(_inner, parts))})"
        case ast.Reference(name):
            return name


def _rounds(element: ast.Repeated) -> str:
    low, high = element.low, element.high
    sign = "" if element.operator is None else element.operator.value
    if (low, high) == (1, None):
        return sign + "+"
    return f"{sign}{{{low}}}" if low == high else f"{sign}{{{low},{'' if high is None else high}}}"


def _inner(element: ast.Element, bracketed: tuple[type[ast.Element], ...] = (ast.Chain,)) -> str:
    text = print_sequence(element)
    return f"({text})" if isinstance(element, bracketed) else text


def _lines(query: ast.Query) -> Iterator[str]:
    for prefix in query.prologue:
        yield f"BASE <{prefix.iri}>" if prefix.label is None else f"PREFIX {prefix.label}: <{prefix.iri}>"
    yield _form(query)
    if query.within is not None:
        yield print_within(query.within)
    if query.partition:
        yield "PARTITION BY (" + ", ".join("?" + v.text for v in query.partition) + ")"
    if query.after is not None:
        gpm = query.after.gpm
        yield f"AFTER MATCH {query.after.rule.value}{'' if gpm is None else ' ' + gpm.text}"
    for stream in query.streams:
        yield f"FROM STREAM {stream.name} <{stream.iri}>"
    yield "WHERE {"
    yield f"  SEQ ({print_sequence(query.sequence)})"
    for definition in query.definitions:
        names = ", ".join(name.text for name in definition.streams)
        yield f"  DEFINE GPM {definition.name} ON {names} {definition.group.text}"
    yield "}"
    for modifier in query.modifiers:
        yield f"{modifier.kind} {modifier.text}"


def _form(query: ast.Query) -> str:
    if query.form == "ASK":
        return "ASK"
    items = [item.text if isinstance(item, ast.Embedded) else "?" + item.text for item in query.select]
    words = [query.form, "FIRST" if query.once else "", query.quantifier or "", *(items or ["*"])]
    return " ".join(word for word in words if word)


def print_within(within: ast.Within) -> str:
    """The WITHIN clause."""
    text = f"WITHIN {within.amount} {within.unit}"
    if within.sliding:
        text += " SLIDING"
    return text + (f" STARTING AT '{within.start}'" if within.start is not None else "")
