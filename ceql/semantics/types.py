"""Checks the attributes and operations of a query against a schema, before the first event.

An attribute that no event of any stream has is an error. One that only other event types have is NULL
(`docs/semantics.md`), and so is everything computed from it. Without a schema, mistakes are found when events are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ceql.operators.casts import RESULTS
from ceql.operators.functions import FUNCTIONS, Function, kind_words, plural
from ceql.operators.times import KINDS as SPANS
from ceql.operators.values import ELEMENTS, KIND_WORDS, LISTS, mismatch
from ceql.semantics.check import conditions
from ceql.semantics.grouping import EXTREMES_HINT, EXTREMES_OF
from ceql.semantics.schemas import Schema
from ceql.semantics.scopes import defined_names, taking
from ceql.semantics.selection import bare_names
from ceql.syntax import ast
from ceql.syntax.ast import GROUP_START, MATCH_TIMES, SILENCE
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import is_aggregate
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import EventError, QuerySemanticsError, Span
from spaseq.core.events import parse_time
from spaseq.core.kinds import KINDS
from spaseq.core.slips import did_you_mean
from spaseq.core.trees import children, fold, walk


def check_types(query: ast.Query, schema: Schema, text: str = "", source: str = "<query>") -> None:
    """Raises `QuerySemanticsError` for the first attribute, operation or clause that does not fit the schema. The error
    quotes `text` and names `source`."""
    _Types(query, schema, text, source).check()


class _Types:
    def __init__(self, query: ast.Query, schema: Schema, text: str, source: str) -> None:
        self.query = query
        self.schema = schema
        self.text = text
        self.source = source
        self.types = types_of_variables(query.where)

    def error(self, problem: str, span: Span, hint: str = "") -> QuerySemanticsError:
        return QuerySemanticsError(problem, text=self.text, span=span, source=self.source, hint=hint)

    def check(self) -> None:
        for condition in conditions(self.query.where):
            self.condition(condition, None)
        for expression in self.query.expressions:
            if isinstance(expression, ast.Condition):
                self.condition(expression, None)
            self.kind(expression, None)
        for item in self.query.selection.items or ():
            for name in item.attributes:
                self.known(name.text, name.span)
        for name in (name for bracket in self.query.partition for name in bracket):
            self.known(name.text, name.span)
            kind = self.schema.kind(name.text, None)
            if kind in ELEMENTS:
                raise self.error(f"PARTITION BY {name.text}, which is {KIND_WORDS[kind]}", name.span)
        if isinstance(self.query.within, ast.WithinAttribute):
            name = self.query.within.attribute
            self.known(name.text, name.span)
            kind = self.schema.kind(name.text, None)
            if kind not in (None, "number", "time"):
                raise self.error(
                    f"WITHIN is measured in {name.text}, which is {KIND_WORDS[kind]}",
                    name.span,
                    "a window is over numbers or times, in order",
                )

    def known(self, name: str, span: Span) -> None:
        names = self.schema.names
        if not self.schema.closed or name in names:
            return
        listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "") or "none"
        hint = did_you_mean(name, names) or f"the attributes of {self.schema.source} are {listed}"
        raise self.error(f"no event has an attribute {name}", span, hint)

    def condition(self, node: ast.Condition, variable: str | None) -> None:
        match node:
            case ast.And() | ast.Or() | ast.Not():
                for child in children(node):
                    self.condition(child, variable)
            case ast.Holds(name, child):
                self.condition(child, name.text)
            case ast.Compare(symbol, left, right):
                self.compared(symbol, left, right, node, variable)
            case ast.Like(value, _):
                kind = self.kind(value, variable)
                if kind not in (None, "text"):
                    raise self.operand(kind, "text", value, node)
            case ast.In(value, items):
                for item in items:
                    self.compared("=", value, item, node, variable)
            case ast.IsNull(value):
                self.kind(value, variable)
            case ast.InRange(value):
                for symbol, bound in node.bounds:
                    self.compared(symbol, value, bound, node, variable)

    def compared(
        self, symbol: str, left: ast.Expression, right: ast.Expression, node: ast.Condition, variable: str | None
    ) -> None:
        one, two = self.kind(left, variable), self.kind(right, variable)
        if one is None or two is None:
            return
        if {one, two} == {"time", "text"}:
            for side in (left, right):
                if isinstance(side, ast.Text):
                    self.time(side)
        elif one != two or one in ELEMENTS or (one == "truth" and COMPARISONS[symbol].is_order):
            raise self.mismatch(one, two, left, right, node)

    def time(self, node: ast.Text) -> None:
        try:
            parse_time(node.value)
        except EventError as error:
            raise self.error(error.problem, node.span, error.hint) from None

    def mismatch(
        self, one: str, two: str, left: ast.Expression, right: ast.Expression, node: ast.Expression
    ) -> QuerySemanticsError:
        said = dict.fromkeys(
            f"{print_expression(side)} is {KIND_WORDS[kind]}"
            for side, kind in ((left, one), (right, two))
            if not isinstance(side, ast.Number | ast.Text | ast.Truth)
        )
        problem = f"{print_expression(node)}: {KIND_WORDS[one]} cannot be combined with {KIND_WORDS[two]}"
        hint = f"in {self.schema.source}, {' and '.join(said)}" if said else ""
        if {one, two} == {"time", "number"} and any(isinstance(side, ast.Arithmetic) for side in (left, right)):
            hint += "; a time is written as a text: '2026-01-05', '2026-01-05T10:00:00Z'"
        elif {one, two} & {"time", "duration"}:
            hint = f"{hint}; {mismatch(one, two, '').hint}"
        return self.error(problem, node.span, hint)

    def operand(self, kind: str, wanted: str, value: ast.Expression, node: ast.Expression) -> QuerySemanticsError:
        """The error of an operation `node` that wants another kind of value."""
        problem = f"{print_expression(node)}: {KIND_WORDS[kind]} cannot be combined with {KIND_WORDS[wanted]}"
        hint = f"in {self.schema.source}, {print_expression(value)} is {KIND_WORDS[kind]}"
        if kind in ("time", "text"):
            hint += f"; {mismatch(kind, wanted, '').hint}"
        return self.error(problem, node.span, hint)

    def kind(self, node: ast.Expression, variable: str | None) -> str | None:
        """The kind of an expression's value; None if it is NULL or not known."""
        match node:
            case ast.Number():
                return "number"
            case ast.Text():
                return "text"
            case ast.Truth():
                return "truth"
            case ast.Attribute(name, None) if variable is None and name in (*MATCH_TIMES, GROUP_START):
                return None  # a time, or a number if the times of events are
            case ast.Attribute("SILENCE", None) if variable is None and SILENCE not in bare_names(self.query):
                return "number"
            case ast.Attribute(name, own):
                self.known(name, node.span)
                of = own or variable
                return self.schema.kind(name, None if of is None else self.types.get(of))
            case ast.Earlier(attribute):
                return self.kind(attribute, variable)
            case ast.Duration():
                return "duration"
            case ast.Negate(child):
                if self.kind(child, variable) == "duration":
                    return "duration"
                self.number(child, node, variable)
                return "number"
            case ast.Arithmetic(symbol, left, right):
                return self.arithmetic(symbol, left, right, node, variable)
            case ast.Call():
                return self.call(node, variable)
            case ast.Case():
                return self.case(node, variable)
        return None

    def case(self, node: ast.Case, variable: str | None) -> str | None:
        for condition in node.conditions:
            self.condition(condition, variable)
        return self.common([*node.results, *([] if node.otherwise is None else [node.otherwise])], node, variable)

    def common(self, results: Sequence[ast.Expression], node: ast.Expression, variable: str | None) -> str | None:
        """The one kind of several values, of which NULL has any; None if one is not known."""
        results = [result for result in results if not isinstance(result, ast.Null)]
        kinds = [self.kind(result, variable) for result in results]
        known = [(kind, result) for kind, result in zip(kinds, results, strict=True) if kind is not None]
        for kind, result in known[1:]:
            if kind != known[0][0]:
                raise self.mismatch(known[0][0], kind, known[0][1], result, node)
        return None if None in kinds or not known else known[0][0]

    def arithmetic(
        self, symbol: str, left: ast.Expression, right: ast.Expression, node: ast.Expression, variable: str | None
    ) -> str | None:
        one, two = self.kind(left, variable), self.kind(right, variable)
        if not {one, two} & {"time", "duration"}:
            self.number(left, node, variable)
            self.number(right, node, variable)
            return "number"
        if one is None or two is None:
            return None
        found = SPANS.get((one, symbol, two))
        if found is None:
            raise self.mismatch(one, two, left, right, node)
        return found

    def number(self, node: ast.Expression, around: ast.Expression, variable: str | None) -> None:
        kind = self.kind(node, variable)
        if kind not in (None, "number"):
            raise self.operand(kind, "number", node, around)

    def call(self, node: ast.Call, variable: str | None) -> str | None:
        kinds = [self.kind(a, variable) for a in node.arguments if not isinstance(a, ast.Variable)]
        function = FUNCTIONS[node.function]
        if function.repeats or function.name == "NULLIF":
            self.common(node.arguments, node, variable)
        for place, (argument, kind) in enumerate(zip(node.arguments, kinds, strict=False)):
            wanted = function.kind_at(place)
            if kind is None or (function.accepts(place, kind) and wanted != "ordered"):
                continue
            if wanted != "ordered":
                same = len({*function.takes}) == 1
                raise self.error(
                    f"{function.name} of {print_expression(argument)}, which is {KIND_WORDS[kind]}",
                    argument.span,
                    f"{function.name} is of {plural(wanted)}"
                    if same
                    else f"argument {place + 1} of {function.name} is {kind_words(wanted)}",
                )
            if kind in (*ELEMENTS, "truth"):
                raise self.error(f"{function.name} of {KIND_WORDS[kind]}", argument.span, "these have no order")
            if self.query.grouping is not None and is_aggregate(node) and kind not in EXTREMES_OF:
                said = f"{function.name} of {print_expression(argument)} over all matches, which is {KIND_WORDS[kind]}"
                raise self.error(said, argument.span, EXTREMES_HINT)
        self.elements(function, node, kinds)
        if function.gives == "collected":
            return LISTS.get(kinds[0] or "")
        if function.gives == "cast":
            (_, name) = node.arguments
            return RESULTS[KINDS[name.value.upper()]] if isinstance(name, ast.Text) else None
        if function.gives != "argument":
            return function.gives
        given = (k for k, a in zip(kinds, node.arguments, strict=False) if not isinstance(a, ast.Null))
        return next(given, None)

    def elements(self, function: Function, node: ast.Call, kinds: Sequence[str | None]) -> None:
        """Checks a comparison of a value with the elements of a list."""
        if function.name == "CONTAINS":
            (found, value), (of_list, of_value) = node.arguments, kinds
        elif function.name == "MEMBER" or function.quantifier:
            (value, found), (of_value, of_list) = node.arguments, kinds
        else:
            return
        element = ELEMENTS.get(of_list or "")
        if element is None or of_value is None or (of_value, element) == ("time", "text"):
            return
        if of_value != element:
            raise self.mismatch(of_value, str(of_list), value, found, node)


def types_of_variables(formula: ast.Formula) -> dict[str, frozenset[str] | None]:
    """The event types that each variable may take; None for any type. A type `s>R` is listed as `R` too."""
    found: dict[str, frozenset[str] | None] = {}
    for variable, types in _types(formula):
        before = found.get(variable, frozenset())
        found[variable] = None if types is None or before is None else before | types
    return found


def _types(formula: ast.Formula) -> Iterator[tuple[str, frozenset[str] | None]]:
    """`types_of_variables` in pairs; a variable may have several."""
    for node in walk(formula):
        match node:
            case ast.EventType(every=True):
                yield from ((name, None) for name in defined_names(node))
            case ast.EventType():
                yield from ((name, defined_names(node)) for name in defined_names(node))
            case ast.As(child, variable):
                yield variable.text, fold(child, _together, taking)


def _together(node: ast.Formula, below: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    """The types of all events that a formula takes, from those of its parts; None for any type."""
    match node:
        case ast.EventType(every=False):
            return defined_names(node)
        case ast.EventType() | ast.Without():
            return None
    known = [types for types in below if types is not None]
    return frozenset[str]().union(*known) if len(known) == len(below) else None
