"""SPAseq text to syntax tree. The lark tree never leaves this module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from spaseq.core.after import AFTER_SLIPS, AfterText
from spaseq.core.errors import QueryError, QuerySemanticsError, QuerySyntaxError, Span
from spaseq.core.slips import did_you_mean
from spaseq.core.text import ESCAPE, WholeWords, check_characters, check_escapes, file_hint, foreign_hint, unescape
from spaseq.language.syntax import ast
from spaseq.language.syntax.scan import Skeleton, mask, skeleton
from spaseq.rdf.iri import local_name, resolve_iri

KNOWN_PREFIXES: Final = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Prefixes that need not be declared."""

_READABLE: Final = {
    "_GROUPS": "GROUP",
    "$END": "the end of the query",
    "COMMA": "','",
    "SEQUENCE_OPERATOR": "';' or ':'",
    "ROUND_OPERATOR": "';+' or ':+'",
    "PLUS": "'+'",
    "QMARK": "'?'",
    "BANG": "'!'",
    "AMPERSAND": "'&'",
    "AND": "'AND('",
    "VBAR": "'|'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "GROUP": "a group graph pattern { … }",
    "EXPRESSION": "an expression ( … )",
    "IRIREF": "an <iri>",
    "PNAME_LN": "a prefixed name",
    "PNAME_NS": "a prefix label such as ex:",
    "NAME": "a name",
    "VAR": "a ?variable",
    "NUMBER": "a number",
    "STAR": "'*'",
    "UNIT": "SECONDS, MINUTES, HOURS or EVENTS",
    "DATETIME": "a dateTime",
    "STRING": "a quoted literal",
    "SET_QUANTIFIER": "DISTINCT",
}


_MOST_DIGITS: Final = 18


def parse(text: str, source: str = "<query>") -> ast.Query:
    """The syntax tree of a query.

    Raises `QuerySyntaxError` if the text is not SPAseq, and `QuerySemanticsError` for a clause that occurs twice or a
    prefix that is not declared. `source` is the name that errors show.
    """
    check_characters(text, source)
    check_escapes(text, source)
    cut = skeleton(text, source)
    try:
        tree = _parser().parse(cut.text)
    except UnexpectedInput as error:
        raise _syntax_error(error, text, cut.text, source) from None
    try:
        return _Builder(text, cut, source).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, QueryError | RecursionError):
            raise error.orig_exc from None
        raise


@cache
def _parser() -> Lark:
    grammar = (files("spaseq.language.syntax") / "grammar.lark").read_text(encoding="utf-8")
    words = WholeWords("NAME")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False, postlex=words)


def _readable(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_READABLE.get(name, name.lstrip("_")) for name in names}))


def _syntax_error(error: UnexpectedInput, text: str, cut: str, source: str) -> QuerySyntaxError:
    if isinstance(error, UnexpectedToken):
        at_end = error.token.type == "$END"
        start = len(cut.rstrip()) if at_end else error.token.start_pos or 0
        expected, found = error.accepts or error.expected, str(error.token)
    elif isinstance(error, UnexpectedCharacters):
        start, at_end = error.pos_in_stream or 0, False
        expected, found = error.allowed, _word(cut, start)
    else:
        start, at_end, expected, found = len(cut.rstrip()), True, set(), ""
    if at_end and "RBRACE" in (expected or ()):
        return _open_brace(cut, text, source)
    end = start + max(1, len(found) if not at_end else 1)
    return QuerySyntaxError(
        "the query ends too early" if at_end else f"found {text[start:end].split(maxsplit=1)[0]!r}",
        text=text,
        span=Span.at(text, min(start, max(0, len(text) - 1)) if at_end else start, end),
        source=source,
        expected=_readable(expected or ()),
        hint=file_hint(text) or foreign_hint(text) or _hint(cut[start:end], cut[:start], cut[start:]),
    )


def _open_brace(cut: str, text: str, source: str) -> QuerySyntaxError:
    """The error for the last brace that is not closed."""
    unclosed: list[int] = []
    for match in re.finditer(r"[{}]", mask(cut, source)):
        if match[0] == "{":
            unclosed.append(match.start())
        elif unclosed:
            unclosed.pop()
    start = unclosed[-1] if unclosed else 0
    return QuerySyntaxError(
        "this brace is never closed",
        text=text,
        span=Span.at(text, start, start + 1),
        source=source,
        expected=("'}' before the query ends",),
        hint="either its own '}' is missing, or that of a graph pattern behind it",
    )


def _word(text: str, start: int) -> str:
    match = re.compile(r"[\w?$:-]+|.", re.DOTALL).match(text, start)
    return match[0] if match else ""


_SLIPS: Final = tuple(
    (re.compile(slip, re.IGNORECASE), hint)
    for slip, hint in (
        (r"\*", "A+ is one or more, A+? zero or more"),
        (
            r"->?|=>|then\b|followed\b|next\b",
            "A ; B is then, the first that fits; A : B every later one; A , B directly after",
        ),
        (r"and\b", "at one time is A & B; in any order AND(A, B); in order A ; B"),
        (r"or\b", "one of them is A | B"),
        (r"for\b", "the time of an absence stands behind '!': B! FOR 10 SECONDS"),
    )
)
"""Inside of SEQ, signs and words of other languages."""


def _hint(found: str, before: str, behind: str) -> str:
    """The hint for a known mistake; "" for others."""
    before = re.sub(r"\{[\d\s,]*\}", "", before)  # the bounds of repetitions, so that other braces are seen
    if re.search(r"\bDEFINE\s+GPM\s+[\w-]+\s*$", before, re.IGNORECASE) and found.startswith("{"):
        return "say which stream the GPM reads: DEFINE GPM name ON stream { … }"
    if re.search(r"\bFROM\s*$", before, re.IGNORECASE):
        return "streams are named with FROM STREAM name <iri>"
    if re.search(r"\bWITHIN\s+[\d.]+\s*$", before, re.IGNORECASE):
        return "a window is WITHIN n SECONDS, MINUTES, HOURS or EVENTS"
    if found.upper() in ("PARTITION", "WITHIN", "FROM", "AFTER") and re.search(r"\bSEQ\s*\(", before, re.IGNORECASE):
        return f"{found.upper()} stands between SELECT and WHERE"
    for earlier, later, hint in AFTER_SLIPS:
        if re.search(rf"(?:{earlier})\s*$", before, re.IGNORECASE) and re.match(later, behind, re.IGNORECASE):
            return hint
    if re.search(r"\bSEQ\s*\([^{}]*$", before, re.IGNORECASE):
        if re.search(r"\bNOT\s*$", before, re.IGNORECASE):
            return "what must not come is written A!"
        if found in (";", ":") and re.search(r"\bAND\s*\([^()]*$", before, re.IGNORECASE):
            return "the parts of AND stand between commas, and have no order: AND(A, B)"
        for slip, hint in _SLIPS:
            if slip.match(found):
                return hint
    if found == "[" and re.search(r"\bSTREAM\b[^{}]*$", before, re.IGNORECASE):
        return "the window is that of the query: WITHIN n SECONDS between SELECT and WHERE"
    if re.search(r"\bWHERE\s*$", before, re.IGNORECASE) and re.match(r"[\w(]", found):
        return "SEQ (A ; B) with a DEFINE GPM for each; a query over typed tuples is one of CEQL: ceql run"
    if re.search(r"^\s*SELECT\s*$", before, re.IGNORECASE) and re.match(r"\w", found):
        return "variables begin with ?; a query over typed tuples is one of CEQL: ceql run"
    if re.search(r"\bWHERE\s*\{\s*$", before, re.IGNORECASE):
        return "graph patterns have names and an order: WHERE { SEQ (A ; B) DEFINE GPM A ON S { … } … }"
    return ""


@dataclass(frozen=True, slots=True)
class _Form:
    kind: str
    quantifier: str | None
    chosen: tuple[ast.Variable | ast.Embedded, ...]
    once: bool
    span: Span


@dataclass(frozen=True, slots=True)
class _Once:
    pass


@dataclass(frozen=True, slots=True)
class _Sliding:
    pass


@dataclass(frozen=True, slots=True)
class _Starting:
    text: str


@dataclass(frozen=True, slots=True)
class _Partition:
    variables: tuple[ast.Variable, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class _Steps:
    """A chain under construction, from left to right."""

    first: ast.Element
    rest: tuple[tuple[ast.Operator, ast.Element], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class _Body:
    sequence: ast.Element
    definitions: tuple[ast.Definition, ...]


def _span(meta: Any) -> Span:
    return Span(meta.start_pos, meta.end_pos, meta.line, meta.column)


def _token_span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0, token.line or 1, token.column or 1)


def _single(kind: type[Any], nodes: Iterable[Any], error: Callable[[str, Span], QueryError], what: str) -> Any:
    """The only node of `kind` among `nodes`, or None; raises `error` for a second one."""
    found = [node for node in nodes if isinstance(node, kind)]
    if len(found) > 1:
        raise error(f"{what} stands twice", found[1].span)
    return found[0] if found else None


@v_args(meta=True)
class _Builder(Transformer[Token, ast.Query]):
    """Builds the syntax tree bottom up, with a method for each rule of the grammar, named like the rule."""

    def __init__(self, text: str, cut: Skeleton, source: str) -> None:
        super().__init__()
        self._text = text
        self._cut = cut
        self._source = source
        self._prefixes: dict[str, str] = dict(KNOWN_PREFIXES)
        self._base = ""

    def _syntax(self, problem: str, span: Span) -> QuerySyntaxError:
        return QuerySyntaxError(problem, text=self._text, span=span, source=self._source)

    def _embed(self, token: Token) -> ast.Embedded:
        span = _token_span(token)
        return ast.Embedded(self._text[span.start : span.end], span)

    def _resolve(self, token: Token) -> str:
        """The IRI of an IRIREF or a prefixed name."""
        if token.type == "IRIREF":
            return resolve_iri(self._base, ESCAPE.sub(unescape, token[1:-1]))
        label, _, local = str(token).partition(":")
        if label not in self._prefixes:
            raise unknown_prefix(label, self._prefixes, self._text, _token_span(token), self._source)
        return self._prefixes[label] + local_name(local)

    # -- prologue and clauses

    def prefix(self, meta: Any, children: list[Token]) -> ast.Prefix:
        label, iri = str(children[0])[:-1], self._resolve(children[1])
        self._prefixes[label] = iri
        return ast.Prefix(label, iri, _span(meta))

    def base(self, meta: Any, children: list[Token]) -> ast.Prefix:
        self._base = self._resolve(children[0])
        return ast.Prefix(None, self._base, _span(meta))

    def version(self, meta: Any, children: list[Token]) -> None:
        """The version of SPARQL that a query announces changes nothing."""

    def prologue(self, meta: Any, children: list[ast.Prefix | None]) -> tuple[ast.Prefix, ...]:
        return tuple(child for child in children if child is not None)

    def variable(self, meta: Any, children: list[Token]) -> ast.Variable:
        return ast.Variable(str(children[0])[1:], _token_span(children[0]))

    def expression(self, meta: Any, children: list[Token]) -> ast.Embedded:
        return self._embed(children[0])

    def select(self, meta: Any, children: list[Any]) -> _Form:
        quantifier = next((str(c).upper() for c in children if _is(c, "SET_QUANTIFIER")), None)
        chosen = tuple(c for c in children if isinstance(c, (ast.Variable, ast.Embedded)))
        return _Form("SELECT", quantifier, chosen, _Once() in children, _span(meta))

    def once(self, meta: Any, children: list[Token]) -> _Once:
        return _Once()

    def construct(self, meta: Any, children: list[Any]) -> _Form:
        return _Form("CONSTRUCT", None, (self._embed(children[-1]),), _Once() in children, _span(meta))

    def ask(self, meta: Any, children: list[Token]) -> _Form:
        return _Form("ASK", None, (), False, _span(meta))

    def sliding(self, meta: Any, children: list[Token]) -> _Sliding:
        return _Sliding()

    def instant(self, meta: Any, children: list[Token]) -> str:
        text = str(children[0])
        return text[1 : text.rindex(text[0])] if text[0] in "'\"" else text

    def starting(self, meta: Any, children: list[str]) -> _Starting:
        return _Starting(children[0])

    def within(self, meta: Any, children: list[Any]) -> ast.Within:
        starting = next((c.text for c in children if isinstance(c, _Starting)), None)
        sliding = any(isinstance(c, _Sliding) for c in children)
        return ast.Within(str(children[0]), _unit(children[1]), sliding, starting, _span(meta))

    def partition(self, meta: Any, children: list[Any]) -> _Partition:
        return _Partition(tuple(c for c in children if isinstance(c, ast.Variable)), _span(meta))

    def after_match(self, meta: Any, children: list[ast.AfterMatch]) -> ast.AfterMatch:
        return replace(children[0], span=_span(meta))

    def past_last(self, meta: Any, children: list[Token]) -> ast.AfterMatch:
        return ast.AfterMatch(AfterText.PAST_LAST)

    def to_next(self, meta: Any, children: list[Token]) -> ast.AfterMatch:
        return ast.AfterMatch(AfterText.TO_NEXT)

    def to_first(self, meta: Any, children: list[Token]) -> ast.AfterMatch:
        return ast.AfterMatch(AfterText.TO_FIRST, ast.Name(str(children[0]), _token_span(children[0])))

    def to_last(self, meta: Any, children: list[Token]) -> ast.AfterMatch:
        return ast.AfterMatch(AfterText.TO_LAST, ast.Name(str(children[0]), _token_span(children[0])))

    def no_skip(self, meta: Any, children: list[Token]) -> ast.AfterMatch:
        return ast.AfterMatch(AfterText.NO_SKIP)

    def iri(self, meta: Any, children: list[Token]) -> str:
        return self._resolve(children[0])

    def stream(self, meta: Any, children: list[Any]) -> ast.Stream:
        return ast.Stream(str(children[0]), children[1], _span(meta))

    # -- the sequence expression

    def reference(self, meta: Any, children: list[Token]) -> ast.Reference:
        return ast.Reference(str(children[0]), _token_span(children[0]))

    def group(self, meta: Any, children: list[ast.Element]) -> ast.Element:
        inner = children[0]
        if isinstance(inner, (ast.Chain, ast.Both, ast.Either)):
            return replace(inner, span=_span(meta))
        return inner

    def bounds(self, meta: Any, children: list[Token]) -> tuple[int, int | None]:
        numbers = [self._rounds(token) for token in children if token.type == "NUMBER"]
        low = 0 if children[0].type == "COMMA" else numbers[0]
        high = None if children[-1].type == "COMMA" else numbers[-1]
        if high is not None and high < max(low, 1):
            span = _span(meta)
            raise self._syntax(f"{self._text[span.start : span.end]} allows no number of rounds", span)
        return low, high

    def _rounds(self, token: Token) -> int:
        if not token.isdecimal():
            raise self._syntax(f"the number of rounds is a whole number, not {token}", _token_span(token))
        if len(token) > _MOST_DIGITS:
            raise self._syntax(f"{token} is too large for a number of rounds", _token_span(token))
        return int(token)

    def repeated(self, meta: Any, children: list[Any]) -> ast.Element:
        operator = next((ast.Operator(str(c)) for c in children if _is(c, "ROUND_OPERATOR")), None)
        low, high = children[-1] if isinstance(children[-1], tuple) else (1, None)
        return ast.Repeated(children[0], low, high, operator, _span(meta))

    def optional(self, meta: Any, children: list[ast.Element]) -> ast.Element:
        return ast.Optional(children[0], _span(meta))

    def lasting(self, meta: Any, children: list[Token]) -> ast.Lasting:
        return ast.Lasting(str(children[0]), _unit(children[1]), _span(meta))

    def negated(self, meta: Any, children: list[Any]) -> ast.Element:
        return ast.Negated(children[0], children[1] if len(children) > 1 else None, _span(meta))

    def both(self, meta: Any, children: list[ast.Element]) -> ast.Element:
        return ast.Both(tuple(children), _span(meta))

    def either(self, meta: Any, children: list[ast.Element]) -> ast.Element:
        return ast.Either(tuple(children), _span(meta))

    def any_order(self, meta: Any, children: list[Any]) -> ast.Element:
        parts = [child for child in children if not isinstance(child, Token)]
        if len(parts) < 2:
            raise QuerySyntaxError(
                "AND has one part",
                text=self._text,
                span=_span(meta),
                source=self._source,
                hint="AND(A, B) takes an instant of each, in any order; write more parts, or A alone",
            )
        return ast.Unordered(tuple(parts), _span(meta))

    def step(self, meta: Any, children: list[Any]) -> _Steps:
        left, operator, right = children
        link = (ast.Operator(str(operator)), right)
        if isinstance(left, _Steps):
            return _Steps(left.first, (*left.rest, link), _span(meta))
        return _Steps(left, (link,), _span(meta))

    def chain(self, meta: Any, children: list[Any]) -> ast.Element:
        top = children[0]
        return ast.Chain(top.first, top.rest, top.span) if isinstance(top, _Steps) else top

    def seq(self, meta: Any, children: list[Any]) -> ast.Element:
        return children[0]

    # -- definitions and the whole

    def definition(self, meta: Any, children: list[Token]) -> ast.Definition:
        names = [c for c in children if c.type == "NAME"]
        streams = tuple(ast.Name(str(n), _token_span(n)) for n in names[1:])
        return ast.Definition(str(names[0]), streams, self._embed(children[-1]), _token_span(names[0]))

    def body(self, meta: Any, children: list[Any]) -> _Body:
        return _Body(children[0], tuple(children[1:]))

    def where(self, meta: Any, children: list[_Body]) -> _Body:
        return children[0]

    def _modifier(self, kind: str, meta: Any) -> ast.Modifier:
        span = _span(meta)
        text = self._text[span.start : span.end]
        return ast.Modifier(kind, text.split(maxsplit=len(kind.split()))[-1], span)

    def modifier(self, meta: Any, children: list[ast.Modifier]) -> ast.Modifier:
        return children[0]

    def group_by(self, meta: Any, children: list[Token]) -> ast.Modifier:
        return self._modifier("GROUP BY", meta)

    def having(self, meta: Any, children: list[Token]) -> ast.Modifier:
        return self._modifier("HAVING", meta)

    def order_by(self, meta: Any, children: list[Token]) -> ast.Modifier:
        return self._modifier("ORDER BY", meta)

    def limit(self, meta: Any, children: list[Token]) -> ast.Modifier:
        return ast.Modifier("LIMIT", str(children[0]), _span(meta))

    def offset(self, meta: Any, children: list[Token]) -> ast.Modifier:
        return ast.Modifier("OFFSET", str(children[0]), _span(meta))

    def values(self, meta: Any, children: list[Token]) -> ast.Modifier:
        return self._modifier("VALUES", meta)

    def start(self, meta: Any, children: list[Any]) -> ast.Query:
        prologue, form = children[0], children[1]
        body = next(c for c in children if isinstance(c, _Body))
        partition = _single(_Partition, children, self._syntax, "PARTITION BY")
        return ast.Query(
            prologue=prologue,
            form=form.kind,
            quantifier=form.quantifier,
            select=form.chosen,
            within=_single(ast.Within, children, self._syntax, "WITHIN"),
            partition=partition.variables if partition else (),
            streams=tuple(c for c in children if isinstance(c, ast.Stream)),
            sequence=body.sequence,
            definitions=body.definitions,
            modifiers=tuple(c for c in children if isinstance(c, ast.Modifier)),
            span=Span(0, len(self._text), 1, 1),
            form_span=form.span,
            once=form.once,
            after=_single(ast.AfterMatch, children, self._syntax, "AFTER MATCH"),
        )


def _unit(token: Token) -> str:
    """A unit of time, or EVENTS, in plural."""
    unit = token.upper()
    return unit if unit.endswith("S") else unit + "S"


def _is(child: object, kind: str) -> bool:
    return isinstance(child, Token) and child.type == kind


def unknown_prefix(label: str, known: Iterable[str], text: str, span: Span, source: str) -> QuerySemanticsError:
    """The error for a prefixed name whose label is not declared."""
    hint = did_you_mean(label, known, "{}:") or f"declare it: PREFIX {label}: <…>"
    return QuerySemanticsError(f"the prefix {label}: is not declared", text=text, span=span, source=source, hint=hint)
