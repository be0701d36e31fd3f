"""Events and the parts of patterns.

`event("fail")` is a part of a pattern and a variable at once: what holds its events. `seq`, `steps`, `adjacent`,
`any_of`, `all_of` and `no` make parts of parts. A part with a clause is a query (`ceql.builder.clauses`), and no part.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import reduce
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final

from ceql.builder.clauses import Clauses
from ceql.builder.constants import article, check_name, duration
from ceql.builder.names import is_automatic, is_mark, new_mark, show_formula
from ceql.builder.values import Condition, Named, Value, Variable, all_true, variable_of
from ceql.semantics.scopes import defined_names
from ceql.syntax import ast
from ceql.syntax.printer import print_formula
from ceql.syntax.sequences import then
from spaseq.core.errors import OptionError
from spaseq.core.pattern import Preference, Skip
from spaseq.core.slips import did_you_mean

_JOINS: Final = {"seq": Skip.ANY, "steps": Skip.NEXT, "adjacent": Skip.NONE}
_CHOICES: Final = {each.value: each for each in Preference}
_NO_OPERATOR: Final = (
    "patterns have no operators: seq(a, b), any_of(a, b), all_of(a, b), no(a); conditions compare attributes: "
    "a.price < b.price"
)


@dataclass(frozen=True, repr=False)
class Pattern(Clauses):
    """A pattern, or a part of one. As a query it is `SELECT * WHERE …`. It is equal to another one if its tree is."""

    _formula: ast.Formula

    def __tree__(self) -> ast.Query:
        return ast.Query(ast.Selection(None, None), (), self._formula)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {print_formula(show_formula(self._formula))}>"

    def where(self, *conditions: Condition | Value) -> Pattern:
        """FILTER: the part, if all conditions are true. They may name events of other parts."""
        return Pattern(ast.Filter(self._formula, all_true(conditions)))

    def alias(self, name: str | Variable) -> Event:
        """The part as a variable of that name, `AS`: its events are read as `x.price`, as those of an event are.

        Given another event instead of a name, the variable of that one holds the events of this part, too.
        """
        child = self._formula
        if isinstance(child, ast.As) and is_automatic(child.variable.text):
            child = child.child
        if isinstance(name, Variable):
            mark = variable_of(name)
        else:
            mark = new_mark(check_name("the name of a variable", name), chosen=True)
        return Event(ast.As(child, ast.Name(mark)), mark)

    # Loops

    def times(
        self,
        least: int,
        most: int | EllipsisType | None = ...,
        *,
        by: str = "seq",
        choose: str = "greedy",
        until: Pattern | None = None,
    ) -> Pattern:
        """So many rounds: `times(3)` is 3, `times(2, 5)` 2 to 5, `times(3, None)` 3 or more.

        Args:
            least, most: the numbers of rounds.
            by: what joins two rounds: "seq" (any events between), "steps" (the next that fits) or "adjacent".
            choose: of a run that waits for a round and for what follows: "greedy", "reluctant" or "each".
            until: no more rounds from an event of this part on.
        """
        high = least if isinstance(most, EllipsisType) else most
        numbers = [least] if high is None else [least, high]
        if any(type(number) is not int for number in numbers):
            found = next(article(number) for number in numbers if type(number) is not int)
            raise OptionError(
                f"times takes whole numbers, and this is {found}", "times(3), times(2, 5), times(3, None)"
            )
        if least < 0 or (high is not None and high < max(least, 1)):
            hint = "the greatest number is 1 or more, and not below the least; times(3, None) has no greatest"
            given = least if isinstance(most, EllipsisType) else f"{least}, {high}"
            raise OptionError(f"times({given}) allows no number of rounds", hint)
        skip, preference = _option("by", by, _JOINS), _option("choose", choose, _CHOICES)
        ending = None if until is None else ast.Without(formula_of(until, "until"))
        return Pattern(ast.Repeat(self._formula, least, high, skip, preference, ending))

    def one_or_more(self, *, by: str = "seq", choose: str = "greedy", until: Pattern | None = None) -> Pattern:
        """One round or more, `+`; the arguments are those of `times`."""
        return self.times(1, None, by=by, choose=choose, until=until)

    def zero_or_more(self, *, by: str = "seq", choose: str = "greedy", until: Pattern | None = None) -> Pattern:
        """Any number of rounds, none among them, `*`; the arguments are those of `times`."""
        return self.times(0, None, by=by, choose=choose, until=until)

    def optional(self, *, choose: str = "greedy") -> Pattern:
        """Once, or no event, `?`."""
        return self.times(0, 1, choose=choose)

    def variable(self, name: str) -> Variable:
        """The variable of that name in a pattern that was a text: `pattern("A AS x ; B").variable("x").price`."""
        known = sorted(each for each in defined_names(self._formula) if not is_mark(each) and ">" not in each)
        if not isinstance(name, str) or name not in known:
            hint = did_you_mean(str(name), known) or f"its variables are {', '.join(known)}"
            raise OptionError(f"the pattern has no variable {name}", hint)
        return Named(name)

    if not TYPE_CHECKING:

        def _refuse(self, *others):
            raise TypeError(_NO_OPERATOR)

        __and__ = __or__ = __rand__ = __ror__ = __invert__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
        __add__ = __radd__ = __sub__ = __mul__ = __neg__ = _refuse


@dataclass(frozen=True, repr=False)
class Event(Pattern, Variable):
    """A part and its variable. One object is one variable, however often it is used.

    `f.user` and `f["user name"]` are attributes of its events, `f.prev().price` and `f[0].price` those of events
    before, and `f.count()` is the number of its events.
    """

    _variable: str

    if not TYPE_CHECKING:

        def __call__(self, *arguments, **words):
            raise TypeError("an event is no function: event('fail').times(3)")


def event(*types: str, stream: str | None = None) -> Event:
    """One event of a type, or of one of several types; without a type, an event of whatever type.

    Args:
        types: the names of types, as the events have them.
        stream: the name of the stream that it is of, if the query reads several.

    >>> a, b = event("A"), event("B")
    >>> print(seq(a, b).where(b.price > a.price))
    SELECT *
    WHERE A ; B FILTER B.price > A.price
    """
    origin = None if stream is None else ast.Name(check_name("a stream", stream))
    if not types:
        whatever, wish = ast.EventType(ast.EVERY, origin, True), "e"
        mark = new_mark(wish, chosen=False)
        return Event(ast.As(whatever, ast.Name(mark)), mark)
    names = list(dict.fromkeys(check_name("the type of an event", name) for name in types))
    formulas: list[ast.Formula] = [ast.EventType(name, origin) for name in names]
    mark = new_mark("_or_".join(names), chosen=False)
    return Event(ast.As(reduce(ast.Either, formulas), ast.Name(mark)), mark)


def seq(*parts: Pattern) -> Pattern:
    """The parts one after the other, with any events between them: `A ; B`. A part that is `no(…)` must not come
    there."""
    return _join("seq", parts, Skip.ANY)


def steps(*parts: Pattern) -> Pattern:
    """The parts one after the other, each the next event that fits: `A -> B`."""
    return _join("steps", parts, Skip.NEXT)


def adjacent(*parts: Pattern) -> Pattern:
    """The parts directly one after the other: `A : B`. Here `no(…)` is one event that is something else."""
    return _join("adjacent", parts, Skip.NONE)


def any_of(*parts: Pattern) -> Pattern:
    """One of the parts: `A OR B`."""
    return _pattern(reduce(ast.Either, _formulas("any_of", parts)), parts)


def all_of(*parts: Pattern) -> Pattern:
    """All parts, in any order or interleaved: `AND(A, B)`."""
    formulas = _formulas("all_of", parts)
    return _pattern(formulas[0] if len(formulas) == 1 else ast.Conjunction(tuple(formulas)), parts)


def no(
    part: Pattern,
    *,
    lasting: str | datetime.timedelta | None = None,
    every: str | datetime.timedelta | None = None,
) -> Pattern:
    """A part that must not come: `NOT A`, in `seq`, `steps` or `all_of`; with `lasting`, for so long: `NOT A FOR …`.
    With `every`, again and again for so long: `NOT A FOR EVERY …`, at the end of a query."""
    if lasting is not None and every is not None:
        raise OptionError("lasting and every are given together", "lasting reports a silence once, every does again")
    given = [(name, value) for name, value in (("lasting", lasting), ("every", every)) if value is not None]
    length = duration(*given[0]) if given else None
    return Pattern(ast.Without(formula_of(part, "no"), length, every is not None))


def formula_of(given: Any, where: str) -> ast.Formula:
    """The formula of a part, with marks for names. `OptionError` for anything else; `where` says what has it."""
    if isinstance(given, Pattern):
        return given._formula
    hint = "seq(event('A'), event('B'))"
    if isinstance(given, str):
        hint = f"event({given!r}) is an event of a type, pattern({given!r}) a pattern that is written in CEQL"
    elif isinstance(given, Clauses):
        hint = "windows, keys and the like are clauses of the whole query: seq(a, b).within('1m')"
    elif isinstance(given, Value | Condition | bool):
        hint = "conditions stand in where: a.where(a.price > 3)"
    raise OptionError(f"{where} takes parts of a pattern, and this is {article(given)}", hint)


def _formulas(function: str, parts: tuple[Pattern, ...]) -> list[ast.Formula]:
    if not parts:
        raise OptionError(f"{function} takes one part or more", f"{function}(event('A'), event('B'))")
    return [formula_of(part, function) for part in parts]


def _pattern(formula: ast.Formula, parts: tuple[Pattern, ...]) -> Pattern:
    """A part of parts; a single one stays what it is."""
    return parts[0] if len(parts) == 1 else Pattern(formula)


def _join(function: str, parts: tuple[Pattern, ...], skip: Skip) -> Pattern:
    formulas = _formulas(function, parts)
    return _pattern(reduce(lambda left, right: then(left, right, skip, ast.NOWHERE), formulas), parts)


def _option(what: str, given: Any, words: dict[str, Any]) -> Any:
    if isinstance(given, str) and given in words:
        return words[given]
    hint = did_you_mean(str(given), words)
    raise OptionError(f"{what}={given!r} is none of {', '.join(words)}", hint)
