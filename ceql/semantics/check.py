"""Checks names, streams, functions and regular expressions of a query, before anything is compiled.

The rules:

* variables in SELECT, FILTER and AFTER MATCH take events somewhere in the formula, and not only under a NOT;
* the variable in AFTER MATCH is shown by SELECT;
* the stream of `s>R` is one of FROM;
* regular expressions are valid;
* functions exist and have the right arguments;
* what SELECT computes of all matches goes with GROUP BY (`ceql.semantics.grouping`);
* a bare name in what SELECT computes is an attribute of PARTITION BY, or a time of the match;
* two columns of SELECT have two names;
* a condition names a variable.

A variable may be used again: in CEQL it holds a set of positions ([CORE] §2.2), so formulas that [CEL] §5.1 calls
unsafe have a meaning here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ceql.operators.functions import FUNCTIONS
from ceql.operators.values import kind_of, whole_string
from ceql.semantics.grouping import check_grouping
from ceql.semantics.selection import bare_names, column_name, match_names, read_variables
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, attributes_of, is_aggregate, parts, reads_earlier, variables_of
from spaseq.core.errors import EventError, QuerySemanticsError, Span
from spaseq.core.events import text_array
from spaseq.core.slips import did_you_mean
from spaseq.core.trees import children, walk

_NEIGHBOURS: Final = "name both events: A AS x; A AS y FILTER y.price < x.price; x and y next to each other are x : y"
_EARLIER: Final = "PREV(b.price) is the price of the event that b took before, PREV(b.price, 2) of the one before that"
_DIFFERENCE: Final = "times are subtracted: y.time - x.time, (y.time - x.time) / 1 SECOND as a number"
_NUMBERED: Final = "rows are numbered in a table: to_pandas(), DuckDB"
_FUNCTION_HINTS: Final = {
    "PREVIOUS": _EARLIER, "LAG": _EARLIER, "PRIOR": _EARLIER, "LEAD": _NEIGHBOURS, "NEXT": _NEIGHBOURS,
    "IFNULL": "write COALESCE(x.price, 0)", "NVL": "write COALESCE(x.price, 0)", "ISNULL": "write x.price IS NULL",
    "DATE_DIFF": _DIFFERENCE, "DATEDIFF": _DIFFERENCE, "TIMESTAMPDIFF": _DIFFERENCE, "MEAN": "write AVG(x.price)",
    "DATE": "write DATE_TRUNC('day', x.time)", "STRFTIME": "write CAST(x.time AS TEXT)",
    "STRING_AGG": "write COLLECT(x.name)", "ARRAY_AGG": "write COLLECT(x.name)", "LIST": "write COLLECT(x.name)",
    "LEN": "write LENGTH(x.name)", "SUBSTR": "write SUBSTRING(x.name, 1, 3)", "POW": "write POWER(x.price, 2)",
    "CEILING": "write CEIL(x.price)", "LOG": "write LN(x.price)", "ROW_NUMBER": _NUMBERED, "RANK": _NUMBERED,
    "MATCH_NUMBER": _NUMBERED, "FIRST_VALUE": "write FIRST(x.price)", "LAST_VALUE": "write LAST(x.price)",
    "NOT": "a condition is no value; CASE WHEN x.price > 3 THEN 1 ELSE 0 END is one",
    "STDDEV_SAMP": "write STDDEV(x.price)", "STDEV": "write STDDEV(x.price)",
}  # fmt: skip


def check(query: ast.Query, text: str = "", source: str = "<query>") -> None:
    """Raises `QuerySemanticsError` for the first mistake. The error quotes `text` and names `source`."""
    _Checker(text, source).query(query)


def defined_variables(node: ast.Formula) -> Iterator[tuple[str, Span]]:
    """The variables that take events in a formula, each with the places in the text that name it; none of those under a
    NOT."""
    match node:
        case ast.EventType(name, stream):
            yield name, node.span
            if stream is not None:
                yield f"{stream.text}>{name}", node.span
        case ast.As(child, variable):
            yield from defined_variables(child)
            yield variable.text, variable.span
        case ast.Without():
            return
        case _:
            for child in children(node):
                yield from defined_variables(child)


def shown_variables(query: ast.Query) -> tuple[str, ...]:
    """The variables that matches show: those of SELECT, or of its columns, ORDER BY and AFTER MATCH; with `*`, those of
    AS, and the event types that are under none."""
    if query.selection.columns:
        after = () if query.after is None or query.after.variable is None else (query.after.variable.text,)
        return tuple(dict.fromkeys((*read_variables(query), *after)))
    items = query.selection.items
    if items is not None:
        return tuple(dict.fromkeys(item.variable for item in items))
    return tuple(dict.fromkeys(_list_unnamed(query.where, False)))


def _list_unnamed(node: ast.Formula, named: bool) -> Iterator[str]:
    match node:
        case ast.EventType():
            if not named:
                yield next(name for name, _ in defined_variables(node))
        case ast.As(child, variable):
            yield from _list_unnamed(child, True)
            yield variable.text
        case ast.Without():
            return
        case _:
            for child in children(node):
                yield from _list_unnamed(child, named)


def formulas(node: ast.Formula) -> Iterator[ast.Formula]:
    """A formula and all formulas in it, those under a NOT included, from left to right."""
    return walk(node)


def event_types(node: ast.Formula) -> Iterator[ast.EventType]:
    """The event types in a formula."""
    return (part for part in formulas(node) if isinstance(part, ast.EventType))


def conditions(node: ast.Formula) -> Iterator[ast.Condition]:
    """The conditions of a formula's filters."""
    return (part.condition for part in formulas(node) if isinstance(part, ast.Filter))


class _Checker:
    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.variables: list[str] = []
        self.negated: frozenset[str] = frozenset()

    def error(self, problem: str, span: Span, hint: str = "") -> QuerySemanticsError:
        return QuerySemanticsError(problem, text=self.text, span=span, source=self.source, hint=hint)

    def query(self, query: ast.Query) -> None:
        self.variables = list(dict.fromkeys(name for name, _ in defined_variables(query.where)))
        self.negated = frozenset(name for part in _negations(query.where) for name, _ in defined_variables(part))
        self.streams(query)
        self.formula(query.where)
        for item in query.selection.items or ():
            self.known(item.variable, item.span, "SELECT")
        self.columns(query)
        if query.after is not None and query.after.variable is not None:
            self.expect_shown(query, query.after.variable, "AFTER MATCH")

    def columns(self, query: ast.Query) -> None:
        """The columns that SELECT computes, and the keys of ORDER BY."""
        names: set[str] = set()
        for column in query.selection.columns:
            self.parts_of(column.expression, "SELECT", query, column)
            if column.name is None and _is_constant(column.expression):
                hint = "LIMIT 5 reports at most 5 matches for each event that completes some; 5 AS n is a column"
                raise self.error("this is the same for every match", column.span, hint)
            self.expression(column.expression, "SELECT")
            name = column_name(column)
            if name in names:
                raise self.error(f"two columns are named {name}", column.span, f"write … AS {name}_2")
            names.add(name)
        check_grouping(query, self.error)
        if query.order is not None:
            self.order(query, query.order)

    def parts_of(self, top: ast.Expression, clause: str, query: ast.Query, column: ast.Column | None = None) -> None:
        """The parts of an expression that is computed of matches, in a clause; `column`: the one that it is of."""
        for part in parts(top):
            match part:
                case ast.Attribute(name, None) if name not in (*bare_names(query), *match_names(query)):
                    raise self.bare(name, part.span, query, column)
                case ast.Holds():
                    hint = "write a condition on one attribute: x.price > 3 is about the last event of x"
                    raise self.error(f"{clause} takes no condition in brackets", part.span, hint)
                case ast.Call(function) if part is not top:
                    self.not_listed(function, part.span)

    def order(self, query: ast.Query, order: ast.Order) -> None:
        """The keys of ORDER BY are values of one match, of variables that matches show."""
        for key in order.keys:
            self.parts_of(key.expression, "ORDER BY", query)
            if any(isinstance(part, ast.EveryMatch) for part in parts(key.expression)):
                hint = "COUNT(x) is the number of events of a variable in one match"
                raise self.error("ORDER BY compares matches, and COUNT(*) counts all", key.span, hint)
            if isinstance(key.expression, ast.Call) and key.expression.function == "COLLECT":
                hint = "write an aggregate of one value: SUM(x.price), MAX(x.price), LAST(x.price)"
                raise self.error("ORDER BY of a list", key.span, hint)
            if _is_constant(key.expression):
                hint = "name a column by its AS, or write its expression again"
                raise self.error("this is the same for every match", key.span, hint)
            self.expression(key.expression, "ORDER BY")
            for name in variables_of(key.expression):
                self.expect_shown(query, ast.Name(name, span=key.span), "ORDER BY")

    def bare(self, name: str, span: Span, query: ast.Query, column: ast.Column | None) -> QuerySemanticsError:
        """The error of a bare name in SELECT or ORDER BY that stands for nothing."""
        if name in self.variables:
            hint = f"{name} stands for events: write {name}.price, COUNT({name}) or COLLECT({name}.price)"
            if column is not None and column.name is not None and isinstance(column.expression, ast.Attribute):
                hint += f"; variables get their names in the formula: {name} AS {column.name.text}"
            return self.error(f"{name} of which attribute?", span, hint)
        keys = sorted(bare_names(query))
        hint = did_you_mean(name, (*keys, *self.variables, *match_names(query)))
        said = f"PARTITION BY names {', '.join(keys)}" if keys else "the query has no PARTITION BY"
        hint = hint or f"write x.{name}; a bare name is an attribute of PARTITION BY, and {said}"
        return self.error(f"whose {name}?", span, hint)

    def not_listed(self, function: str, span: Span) -> None:
        """Raise an error for COLLECT inside of anything else."""
        if function == "COLLECT":
            hint = "SELECT COLLECT(x.price) AS prices is a column of its own"
            raise self.error("nothing is computed of the list that COLLECT gives", span, hint)

    def expect_shown(self, query: ast.Query, variable: ast.Name, clause: str) -> None:
        """The variable that a clause names is one that matches show."""
        name = variable.text
        self.known(name, variable.span, clause)
        shown = shown_variables(query)
        if name in shown:
            return
        if query.selection.items is None:
            problem = f"{name} is an event type with a name of its own here, so {clause} cannot name it"
            raise self.error(problem, variable.span, f"name the variable: {' or '.join(shown)}")
        problem = f"{clause} names {name}, and SELECT leaves it out"
        raise self.error(problem, variable.span, f"write SELECT {', '.join((*shown, name))}")

    def streams(self, query: ast.Query) -> None:
        names = [s.text for s in query.streams]
        for index, stream in enumerate(query.streams):
            if stream.text in names[:index]:
                raise self.error(f"stream {stream.text} twice in FROM", stream.span)
        if not names:
            return
        for atom in event_types(query.where):
            if atom.stream is not None and atom.stream.text not in names:
                hint = did_you_mean(atom.stream.text, names) or f"FROM names {', '.join(names)}"
                raise self.error(f"unknown stream {atom.stream.text}", atom.stream.span, hint)

    def known(self, name: str, span: Span, clause: str) -> None:
        if name in self.variables:
            return
        if name in self.negated:
            raise self.error(
                f"{name} is only under a NOT, so no match has an event of it for {clause}",
                span,
                "conditions on what must not come stand in the NOT itself: NOT (B AS n FILTER n[price > 3])"
                if clause == "FILTER"
                else "select what is matched",
            )
        if clause == "SELECT" and name.upper() in ast.Strategy.__members__:
            raise self.error(f"SELECT {name.upper()} of what?", span, f"write SELECT {name.upper()} *")
        hint = did_you_mean(name, self.variables)
        if not hint:
            attribute = f"; an attribute is one of a variable: {self.variables[0]}.{name}" if clause == "SELECT" else ""
            hint = f"the variables of the formula are {', '.join(self.variables)}{attribute}"
        raise self.error(f"unknown variable {name} in {clause}", span, hint)

    def formula(self, node: ast.Formula) -> None:
        if isinstance(node, ast.Filter):
            self.condition(node.condition)
        if isinstance(node, ast.Without):
            outside = self.variables
            self.variables = outside + [name for name, _ in defined_variables(node.child) if name not in outside]
            self.formula(node.child)
            self.variables = outside
            return
        for child in children(node):
            self.formula(child)

    def condition(self, node: ast.Condition) -> None:
        match node:
            case ast.And() | ast.Or() | ast.Not():
                for child in children(node):
                    self.condition(child)
            case ast.Holds(variable, condition):
                self.known(variable.text, variable.span, "FILTER")
                self.expression(condition)
            case _:
                self.expression(node)
                if not any(True for _ in variables_of(node)):
                    raise self.error(
                        "this condition is about no variable", node.span, "write x.price > 3, or x[price > 3]"
                    )

    def expression(self, node: ast.Expression, clause: str = "FILTER") -> None:
        """Checks names, functions and regular expressions in an expression and its parts."""
        for attribute in attributes_of(node):
            if attribute.variable is not None:
                self.known(attribute.variable, attribute.span, clause)
        for part in parts(node):
            match part:
                case ast.Like(_, pattern):
                    self.pattern(pattern, part.span)
                case ast.Call("PREV", arguments):
                    raise self.earlier(part, arguments)
                case ast.Call(function, _) if function not in FUNCTIONS:
                    hint = _FUNCTION_HINTS.get(function) or did_you_mean(
                        function, filter(str.isidentifier, FUNCTIONS), least=0.75
                    )
                    names = ", ".join(name for name, row in sorted(FUNCTIONS.items()) if row.add and " " not in name)
                    hint = hint or f"aggregates are {names}; the reference lists the functions of values"
                    raise self.error(f"unknown function {function}", part.span, hint)
                case ast.Call():
                    self.call(part, clause)
                    if clause == "FILTER":
                        self.not_listed(part.function, part.span)
                case ast.Variable(name):
                    self.known(name, part.span, clause)

    def call(self, call: ast.Call, clause: str) -> None:
        """Checks a call's arguments: those of an aggregate are about one variable, and lists are attributes."""
        name, function = call.function, FUNCTIONS[call.function]
        example = f"for example {function.example}"
        if not function.fits(len(call.arguments)):
            values = f"{function.count} value{'' if function.count == 'one' else 's'}"
            raise self.error(f"{name} takes {values}, and there are {len(call.arguments)}", call.span, example)
        self.constants(call, example)
        for argument in call.arguments:
            if isinstance(argument, ast.EveryMatch):
                self.all_matches(call, clause)
                continue
            if name == "CORR" and not isinstance(argument, ast.Attribute):
                raise self.error(f"{name} is of {function.count} attributes that are lists", argument.span, example)
            if is_aggregate(call) and any(True for _ in aggregates_of(argument)):
                raise self.error("an aggregate inside an aggregate", argument.span, example)
            if is_aggregate(call) and reads_earlier(argument):
                raise self.error("PREV inside an aggregate", argument.span, example)
            if isinstance(argument, ast.Variable):
                if function.takes != ("event",):
                    raise self.error(
                        f"{function.quantifier or name} of which attribute of {argument.name}?",
                        argument.span,
                        f"write {function.quantifier or name}({argument.name}.price)",
                    )
            elif is_aggregate(call):
                self.aggregated(name, argument, example, clause)

    def all_matches(self, call: ast.Call, clause: str) -> None:
        """Checks a call of `*`, which is all matches of a group."""
        if call.function != "COUNT":
            raise self.error(f"{call.function}(*)", call.span, "COUNT(*) counts the matches of GROUP BY")
        if clause == "FILTER":
            hint = "SELECT COUNT(*) … GROUP BY EVENT counts the matches that end at an event"
            raise self.error("COUNT(*) is no part of a condition", call.span, hint)

    def constants(self, call: ast.Call, example: str) -> None:
        """Checks the arguments of a call that must be constants."""
        function = FUNCTIONS[call.function]
        for place, argument in enumerate(call.arguments):
            if isinstance(argument, ast.CONSTANTS) and not function.accepts(place, kind := kind_of(argument.value)):
                raise self.error(function.wrong(place, kind).problem, argument.span, example)
        for place in function.constants:
            if place < len(call.arguments) and not isinstance(call.arguments[place], ast.CONSTANTS):
                problem = f"argument {place + 1} of {function.name} is a constant"
                raise self.error(problem, call.arguments[place].span, example)
        if function.check is not None:
            try:
                function.check(*[a.value if isinstance(a, ast.CONSTANTS) else None for a in call.arguments])
            except EventError as error:
                raise self.error(error.problem, call.span, error.hint or example) from None

    def earlier(self, call: ast.Call, arguments: tuple[ast.Expression, ...]) -> QuerySemanticsError:
        """The error of a PREV that is not of an attribute, or looks back by no number of events."""
        match arguments:
            case (ast.Variable(name), *_):
                return self.error(f"PREV of which attribute of {name}?", call.span, f"write PREV({name}.price)")
            case (ast.Attribute(), back):
                problem = f"PREV looks back by 1 to {ast.MOST_BACK} events"
                return self.error(problem, back.span, "b[0].price is the price of the first event of b")
            case (ast.Attribute(), _, *_):
                return self.error("PREV takes an attribute, and how far it looks back", call.span, _EARLIER)
            case (ast.Earlier() as inner, *_):
                return self.error("PREV inside PREV", inner.span, _EARLIER)
        hint = "compute with it outside: 2 * PREV(b.price)"
        return self.error("PREV is of one attribute", arguments[0].span, hint)

    def aggregated(self, name: str, argument: ast.Expression, example: str, clause: str) -> None:
        over = set(variables_of(argument))
        if not over and (clause != "FILTER" or not any(True for _ in attributes_of(argument))):
            raise self.error(f"{name} of what is the same for every event", argument.span, example)
        if len(over) > 1:
            names = " and ".join(sorted(over))
            raise self.error(f"{name} over {names} at once", argument.span, "an aggregate is about one variable")

    def pattern(self, pattern: str, span: Span) -> None:
        try:
            for form in (pattern, whole_string(pattern)):
                pc.match_substring_regex(text_array([""]), form)
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression:").strip()
            raise self.error(
                f"this is not a regular expression: {reason}",
                span,
                "LIKE takes a regular expression (RE2) for the whole text; '.*' stands for anything",
            ) from None


def _is_constant(node: ast.Expression) -> bool:
    """True if an expression reads nothing of a match, or of a group."""
    all_matches = (part for part in parts(node) if isinstance(part, ast.EveryMatch))
    return not any(True for _ in itertools.chain(variables_of(node), attributes_of(node), all_matches))


def _negations(node: ast.Formula) -> Iterator[ast.Formula]:
    """The formulas that stand directly under a NOT."""
    return (part.child for part in formulas(node) if isinstance(part, ast.Without))
