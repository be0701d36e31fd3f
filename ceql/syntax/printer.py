"""Syntax tree to text. Parsing the text gives an equal tree, with as few parentheses as that takes."""

from __future__ import annotations

import re
from typing import Final

from ceql.operators.arithmetic import ARITHMETIC
from ceql.operators.functions import FUNCTIONS
from ceql.syntax import ast
from spaseq.core.errors import InternalError
from spaseq.core.events import EVENT_TIME
from spaseq.core.pattern import Preference, Skip

_PLAIN: Final = re.compile(r"[^\W\d]\w*")
_RESERVED: Final = re.compile(
    "after|all|and|any|as|asc|between|by|case|consume|desc|else|end|events?|every|false|filter|first|for|from|group"
    "|ilike|in|is|key|last|like|limit|match|max|next|no|none|not|null|or|partition|past|range|row|select|skip"
    "|strict|then|to|true|until|when|where|window|within",
    re.IGNORECASE,
)


def print_query(query: ast.Query) -> str:
    """The text of a query, a clause a line."""
    lines = ["SELECT " + _selection(query.selection)]
    if query.streams:
        lines.append("FROM " + ", ".join(_name(s.text) for s in query.streams))
    lines.append("WHERE " + print_formula(query.where))
    if query.partition:
        lines.append("PARTITION BY " + ", ".join(_bracket(names) for names in query.partition))
    if query.within is not None:
        lines.append("WITHIN " + print_within(query.within))
    if query.consume is not None:
        lines.append("CONSUME BY " + query.consume.policy.value)
    if query.order is not None:
        keys = (print_expression(key.expression) + " DESC" * key.descending for key in query.order.keys)
        lines.append("ORDER BY " + ", ".join(keys))
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit.count}")
    if query.after is not None:
        named = query.after.variable
        variable = "" if named is None else f" {_variable(named.text)}"
        lines.append(f"AFTER MATCH {query.after.rule.value}{variable}")
    if query.grouping is not None:
        lines.append("GROUP BY " + print_grouping(query.grouping))
    return "\n".join(lines)


def _selection(selection: ast.Selection) -> str:
    strategy = "" if selection.strategy is None else selection.strategy.value + " "
    if selection.columns:
        return strategy + ", ".join(map(_column, selection.columns))
    if selection.items is None:
        return strategy + "*"
    items = ", ".join(_variable(i.variable) + (_bracket(i.attributes) if i.attributes else "") for i in selection.items)
    return strategy + (items or "NONE")


def _column(column: ast.Column) -> str:
    text = print_expression(column.expression)
    return text if column.name is None else f"{text} AS {_name(column.name.text)}"


def _bracket(names: tuple[ast.Name, ...]) -> str:
    return "[" + ", ".join(_name(n.text) for n in names) + "]"


def print_within(within: ast.Within) -> str:
    """The text behind WITHIN."""
    match within:
        case ast.WithinEvents(count):
            return f"{count} EVENTS"
        case ast.WithinTime(nanoseconds):
            return _duration(nanoseconds)
        case ast.WithinAttribute(size, attribute):
            return f"{_number(size)} [{_name(attribute.text)}]"
    raise InternalError(f"no text for {type(within).__name__}")


def print_grouping(grouping: ast.Grouping) -> str:
    """The text behind GROUP BY."""
    words = {"EVENT": grouping.event, "KEY": grouping.key, "WINDOW": grouping.window}
    found = [word for word, there in words.items() if there]
    return ", ".join([*found, *([] if grouping.length is None else [_duration(grouping.length)])])


def _duration(nanoseconds: int) -> str:
    for unit, size in (("DAYS", 86_400 * 10**9), ("HOURS", 3_600 * 10**9), ("MINUTES", 60 * 10**9), ("SECONDS", 10**9)):
        if nanoseconds and nanoseconds % size == 0:
            return f"{nanoseconds // size} {unit}"
    if nanoseconds % 10**6 == 0:
        return f"{nanoseconds // 10**6} MILLISECONDS"
    return f"{nanoseconds} NANOSECONDS"


def _name(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and not _RESERVED.fullmatch(text) else f"`{text}`"


def _function(name: str) -> str:
    """A name before `(` is that of a function, a reserved word too."""
    return name if _PLAIN.fullmatch(name) else f"`{name}`"


def _variable(text: str) -> str:
    """`v`, or `s>R`."""
    return ">".join(_name(part) for part in text.split(">"))


def _number(value: int | float) -> str:
    return repr(value)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# Formulas: FILTER 0, OR 1, sequence 2, NOT 3, postfix 4, atom 5


def print_formula(node: ast.Formula) -> str:
    """The text of a formula."""
    return _formula(node, 0)


def _formula(node: ast.Formula, level: int) -> str:
    text, own = _formula_text(node)
    return text if own >= level else f"({text})"


def _formula_text(node: ast.Formula) -> tuple[str, int]:
    match node:
        case ast.EventType(_, stream, True):
            return "ANY" if stream is None else f"{_name(stream.text)}>ANY", 5
        case ast.EventType(name, None):
            return _name(name), 5
        case ast.EventType(name, ast.Name(stream)):
            return f"{_name(stream)}>{_name(name)}", 5
        case ast.Conjunction(children):
            return "AND(" + ", ".join(print_formula(c) for c in children) + ")", 5
        case ast.As(child, variable):
            return f"{_formula(child, 4)} AS {_name(variable.text)}", 4
        case ast.Repeat(child, low, high, skip, preference, until):
            sign, choice = _rounds(low, high, skip), _CHOICES[preference]
            sign = "{0,1}" if sign == "?" and until is not None else sign  # UNTIL stands behind a loop
            # A "?" behind a loop is its choice.
            inside = 5 if sign == "?" and isinstance(child, ast.Repeat) else 4
            ending = "" if until is None else f" UNTIL {_formula(until.child, 5)}"
            return f"{_formula(child, inside)}{sign}{choice}{ending}", 4
        case ast.Without(child, duration, every):
            lasting = "" if duration is None else f" FOR {'EVERY ' if every else ''}{_duration(duration)}"
            return f"NOT {_formula(child, 4 if lasting else 3)}{lasting}", 3
        case ast.Sequence(left, right, skip):
            return f"{_formula(left, 2)} {_JOINS[skip]} {_formula(right, 3)}", 2
        case ast.Either(left, right):
            return f"{_formula(left, 1)} OR {_formula(right, 2)}", 1
        case ast.Filter(child, condition):
            return f"{_formula(child, 0)} FILTER {print_expression(condition)}", 0
    raise InternalError(f"no text for {type(node).__name__}")


_JOINS: Final = {Skip.ANY: ";", Skip.NEXT: "->", Skip.NONE: ":"}
_CHOICES: Final = {Preference.GREEDY: "", Preference.RELUCTANT: "?", Preference.EACH: " ALL"}


def _rounds(low: int, high: int | None, skip: Skip) -> str:
    """The sign of a repetition: `?`, `+`, `:*`, `->{2,3}`."""
    join = "" if skip is Skip.ANY else _JOINS[skip]
    if high is None and low <= 1:
        return join + "*+"[low]
    if (low, high, join) == (0, 1, ""):
        return "?"
    return f"{join}{{{low}}}" if low == high else f"{join}{{{low},{'' if high is None else high}}}"


_QUANTIFIED: Final = {row.name for row in FUNCTIONS.values() if row.quantifier}
"""Of `x < ANY(list)` and the like."""


# Expressions: OR 0, AND 1, NOT 2, condition 3, sum 4, product 5, unary 6, primary 7


def print_expression(node: ast.Expression) -> str:
    """The text of a condition or a value."""
    return _expression(node, 0)


def _expression(node: ast.Expression, level: int) -> str:
    text, own = _expression_text(node)
    return text if own >= level else f"({text})"


def _expression_text(node: ast.Expression) -> tuple[str, int]:
    match node:
        case ast.Or(left, right):
            return f"{_expression(left, 0)} OR {_expression(right, 1)}", 0
        case ast.And(left, right):
            return f"{_expression(left, 1)} AND {_expression(right, 2)}", 1
        case ast.Not(ast.IsNull(value)):
            return f"{_expression(value, 4)} IS NOT NULL", 3
        case ast.Compare("=", ast.Call(name) as call, ast.Truth(True)) if name in _QUANTIFIED:
            return _value_text(call)
        case ast.Not(child):
            return f"NOT {_expression(child, 2)}", 2
        case ast.Compare(symbol, left, right):
            return f"{_expression(left, 4)} {symbol} {_expression(right, 4)}", 3
        case ast.Like(value, pattern):
            if pattern.startswith("(?i)"):
                return f"{_expression(value, 4)} ILIKE {_text(pattern.removeprefix('(?i)'))}", 3
            return f"{_expression(value, 4)} LIKE {_text(pattern)}", 3
        case ast.In(value, items):
            return f"{_expression(value, 4)} IN {{{', '.join(print_expression(i) for i in items)}}}", 3
        case ast.InRange(value, low, high):
            return f"{_expression(value, 4)} IN {_range(low, high)}", 3
        case ast.IsNull(value):
            return f"{_expression(value, 4)} IS NULL", 3
        case ast.Holds(variable, condition):
            return f"{_variable(variable.text)}[{print_expression(condition)}]", 7
        case _:
            return _value_text(node)


def _earlier(attribute: ast.Attribute, back: int) -> str:
    if back:
        return f"PREV({print_expression(attribute)}{'' if back == 1 else f', {back}'})"
    if attribute.variable is None:
        return f"FIRST({print_expression(attribute)})"
    return f"{_name(attribute.variable)}[0].{_name(attribute.name)}"


def _range(low: ast.Expression | None, high: ast.Expression | None) -> str:
    if low is not None and high is not None:
        return f"RANGE({_expression(low, 4)}, {_expression(high, 4)})"
    return f"{{{'' if low is None else print_expression(low)}..{'' if high is None else print_expression(high)}}}"


def _case(node: ast.Case) -> str:
    whens = [
        f"WHEN {print_expression(condition)} THEN {print_expression(result)}"
        for condition, result in zip(node.conditions, node.results, strict=True)
    ]
    otherwise = [] if node.otherwise is None else [f"ELSE {print_expression(node.otherwise)}"]
    return " ".join(["CASE", *whens, *otherwise, "END"])


def _value_text(node: ast.Expression) -> tuple[str, int]:
    match node:
        case ast.Case():
            return _case(node), 7
        case ast.Number(value):
            return _number(value), 6 if _number(value).startswith("-") else 7
        case ast.Duration(nanoseconds):
            return _duration(nanoseconds), 7
        case ast.Text(text):
            return _text(text), 7
        case ast.Truth(truth):
            return str(truth).upper(), 7
        case ast.Null():
            return "NULL", 7
        case ast.Attribute(name, None):
            return _name(name), 7
        case ast.Attribute(name, str() as variable) if name == EVENT_TIME:
            return f"(time of {_name(variable)})", 7
        case ast.Attribute(name, str() as variable):
            return f"{_name(variable)}.{_name(name)}", 7
        case ast.EveryMatch():
            return "*", 7
        case ast.Variable(name):
            return _name(name), 7
        case ast.Earlier(attribute, back):
            return _earlier(attribute, back), 7
        case ast.Call(function, (value, listed)) if function in _QUANTIFIED:
            return f"{_expression(value, 4)} {function}({print_expression(listed)})", 3
        case ast.Call(function, (argument,)) if function.endswith(" DISTINCT"):
            return f"{function.removesuffix(' DISTINCT')}(DISTINCT {print_expression(argument)})", 7
        case ast.Call("CAST" | "TRY_CAST" as function, (value, ast.Text(kind))):
            return f"{function}({print_expression(value)} AS {_name(kind)})", 7
        case ast.Call(function, arguments):
            return f"{_function(function)}({', '.join(print_expression(a) for a in arguments)})", 7
        case ast.Negate(child):
            text = _expression(child, 7)
            return "-" + (f"({text})" if isinstance(child, ast.Number) and text[0] != "(" else text), 6
        case ast.Arithmetic(symbol, left, right):
            level = ARITHMETIC[symbol].level
            return f"{_expression(left, level)} {symbol} {_expression(right, level + 1)}", level
    raise InternalError(f"no text for {type(node).__name__}")
