"""Checks and compiles SELECT, CONSTRUCT, ASK and the clauses behind WHERE."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Set
from dataclasses import dataclass
from typing import Final, NoReturn

from spaseq.core.errors import InternalError, QuerySemanticsError, QuerySyntaxError, Span, UnsupportedFeature
from spaseq.core.slips import did_you_mean
from spaseq.gpm import ROUNDS, Piece, SolutionPlan, Source, Template, compile_solutions, compile_template
from spaseq.language.syntax import ast

_VARIABLE: Final = re.compile(r"[?$](\w+)")
_ALIAS: Final = re.compile(r"\bAS\s*[?$](\w+)\s*\)\s*$", re.IGNORECASE)
_LIST: Final = re.compile(r"^\(\s*[?$](?P<variable>\w+)\s*\+\s*AS\b", re.IGNORECASE)
_DIGITS: Final = 18
"""More digits than these count beyond all rows."""
_NESTED: Final = "in rounds inside of rounds"
_ONE_REPETITION: Final = "lists and aggregates are of the rounds of one repetition"
_TEXTUAL: Final = ("GROUP BY", "HAVING", "ORDER BY", "VALUES")


@dataclass(frozen=True, slots=True)
class Clauses:
    """The result clauses of a query.

    `select`: the variables of a result. `needed`: the variables of matches that results are computed from. `plan`: the
    computation; None if the variables of a result are variables of the match. `template`: that of CONSTRUCT. `lists`:
    the pairs (name, variable) of `(?variable+ AS ?name)`. `ask`: whether the query is an ASK.
    """

    select: tuple[str, ...]
    needed: tuple[str, ...]
    plan: SolutionPlan | None = None
    distinct: bool = False
    limit: int | None = None
    offset: int = 0
    template: Template | None = None
    lists: tuple[tuple[str, str], ...] = ()
    ask: bool = False

    @property
    def by_window(self) -> bool:
        """True if a result depends on the other solutions of its window."""
        together = self.plan is not None and (self.groups or bool(self.plan.order))
        return together or self.distinct or self.limit is not None or self.offset > 0

    @property
    def groups(self) -> bool:
        """True if a result is computed from several solutions."""
        return self.plan is not None and self.plan.grouped and not self.plan.over_rounds

    @property
    def one_group(self) -> bool:
        """True if all solutions of a window are one group, which is there without a solution, too (SPARQL 1.1
        §18.5)."""
        return self.groups and self.plan is not None and (self.plan.group is None or not self.plan.group.keys)

    @property
    def last(self) -> int | None:
        """The number of results of a window up to the end of LIMIT, those that OFFSET takes away included."""
        return None if self.limit is None else self.offset + self.limit

    @property
    def few(self) -> bool:
        """True if some solutions of a window are no results, whatever solutions come behind them. These are solutions
        that ORDER BY and LIMIT put behind enough others, and those that DISTINCT has seen."""
        return not self.groups and (not self.ordered if self.distinct else self.limit is not None)

    @property
    def rounds(self) -> frozenset[str]:
        """The variables whose values in every round of an iteration matches must keep."""
        aggregated = self.plan.aggregated & self.plan.iterated if self.plan and self.plan.over_rounds else frozenset()
        return aggregated | {variable for _, variable in self.lists}

    @property
    def ordered(self) -> bool:
        """True if there is an ORDER BY."""
        return self.plan is not None and bool(self.plan.order)


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables that clauses may name.

    `bound` are those of `*` in its order. `negated` are those that only negated GPMs have. Each round of a repetition
    binds `iterated` anew, and rounds inside of rounds `nested`.
    """

    bound: tuple[str, ...]
    negated: frozenset[str]
    iterated: frozenset[str]
    nested: frozenset[str] = frozenset()


def check_clauses(tree: ast.Query, source: Source, scope: Scope) -> Clauses:
    """Checks and compiles the clauses of a query. `source` is the whole text.

    Raises `QuerySemanticsError`, `QuerySyntaxError` and `UnsupportedFeature`, each with its place.
    """
    return _Clauses(tree, source, scope).check()


class _Clauses:
    def __init__(self, tree: ast.Query, source: Source, scope: Scope) -> None:
        self._tree = tree
        self._source = source
        self._scope = scope
        self._modifiers: dict[str, ast.Modifier] = {}

    def check(self) -> Clauses:
        tree = self._tree
        for modifier in tree.modifiers:
            if modifier.kind in self._modifiers:
                self._fail(f"{modifier.kind} stands twice", modifier.span)
            self._modifiers[modifier.kind] = modifier
        match tree.form:
            case "SELECT":
                clauses = self._select()
            case "CONSTRUCT":
                clauses = self._construct()
            case "ASK":
                clauses = self._ask()
            case form:
                raise InternalError(f"a query of the form {form}")
        if clauses.by_window and tree.within is not None and tree.within.slides:
            what = next(iter(self._modifiers), None) or ("DISTINCT" if clauses.distinct else "an aggregate")
            self._refuse(
                f"{what} with WITHIN … {'EVENTS' if tree.within.by_events else 'SLIDING'}",
                tree.form_span,
                "it ranges over the solutions of one window: "
                + ("take a window of time" if tree.within.by_events else "leave out SLIDING"),
            )
        return clauses

    # -- SELECT

    def _select(self) -> Clauses:
        tree = self._tree
        every = tuple(dict.fromkeys((*self._scope.bound, *sorted(self._given_variables()))))
        items = tree.select or tuple(ast.Variable(name) for name in every)
        lists = self._lists(items)
        names, computed = self._names(items)
        textual = [self._modifiers[kind] for kind in _TEXTUAL if kind in self._modifiers]
        distinct, limit, offset = tree.quantifier is not None, self._count("LIMIT"), self._count("OFFSET") or 0
        rounds = (ROUNDS,) if lists else ()
        own = tuple(name for name in names if name not in dict(lists))
        # LIMIT and ORDER BY apply to whole solutions, with all variables.
        whole = self._scope.bound if limit is not None or offset or "ORDER BY" in self._modifiers else ()
        if not textual and computed <= dict(lists).keys():
            return Clauses(names, (*(whole or own), *rounds), None, distinct, limit, offset, lists=lists)
        mentioned = self._check_names(items, textual, computed)
        plan = self._plan(items, textual, computed, frozenset(dict(lists)))
        if plan.over_rounds:
            mentioned, rounds = (*mentioned, ROUNDS), ()
        elif plan.grouped:
            self._check_grouped(plan, items)
            mentioned = self._scope.bound  # COUNT(*) counts whole solutions, with all variables
        else:
            mentioned = whole or mentioned
        return Clauses(names, mentioned + rounds, plan, distinct, limit, offset, lists=lists)

    def _ask(self) -> Clauses:
        for kind, modifier in self._modifiers.items():
            self._fail(f"ASK with {kind}", modifier.span, "ASK only says whether there is a match: use SELECT")
        return Clauses((), (), ask=True)

    def _given_variables(self) -> frozenset[str]:
        """The variables that VALUES binds."""
        values = self._modifiers.get("VALUES")
        head = self._mask(values.span).partition("{")[0] if values else ""
        return frozenset(match[1] for match in _VARIABLE.finditer(head))

    def _lists(self, items: tuple[ast.Variable | ast.Embedded, ...]) -> tuple[tuple[str, str], ...]:
        """(name, variable) of each `(?variable+ AS ?name)`."""
        found: list[tuple[str, str]] = []
        for item in items:
            listed = _LIST.match(self._mask(item.span)) if isinstance(item, ast.Embedded) else None
            alias = _ALIAS.search(self._mask(item.span))
            if listed is None or alias is None:
                continue
            name = listed["variable"]
            self._check_bound("SELECT", name, item.span, set())
            if name in self._scope.nested:
                self._refuse(f"a list of ?{name} {_NESTED}", item.span, _ONE_REPETITION)
            if name not in self._scope.iterated:
                self._fail(
                    f"(?{name}+ AS ?{alias[1]}) lists the values of ?{name} in rounds of a Kleene+, and it has one",
                    item.span,
                    f"no GPM under '+' binds ?{name} afresh in each round: write ?{name}",
                )
            found.append((alias[1], name))
        return tuple(found)

    def _names(self, items: tuple[ast.Variable | ast.Embedded, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
        """The names of the result's variables, and which of them are computed."""
        names: list[str] = []
        computed: set[str] = set()
        for item in items:
            if isinstance(item, ast.Variable):
                self._check_bound(
                    "SELECT", item.text, item.span, computed | self._grouped_as() | self._given_variables()
                )
                names.append(item.text)
                continue
            alias = _ALIAS.search(self._mask(item.span))
            if alias is None:
                raise QuerySyntaxError(
                    "an expression in SELECT has no name",
                    text=self._source.query,
                    span=item.span,
                    source=self._source.file,
                    expected=("(expression AS ?name)",),
                )
            if alias[1] in self._scope.bound or alias[1] in computed or alias[1] in self._given_variables():
                problem = f"SELECT computes ?{alias[1]}, which is bound already (SPARQL 1.1 §18.2.1)"
                self._fail(problem, item.span, "give it another name")
            computed.add(alias[1])
            names.append(alias[1])
        return tuple(dict.fromkeys(names)), frozenset(computed)

    def _grouped_as(self) -> set[str]:
        """The variables that GROUP BY (… AS ?v) binds; they must not be bound already."""
        group = self._modifiers.get("GROUP BY")
        names: set[str] = set()
        for match in re.finditer(r"\bAS\s*[?$](\w+)", self._mask(group.span) if group else "", re.IGNORECASE):
            names.add(match[1])
            if group and match[1] in self._scope.bound:
                problem = f"GROUP BY gives ?{match[1]} a value, and it is in scope already (SPARQL 1.1 §18.2.1)"
                self._fail(problem, group.span, "give it another name")
        return names

    def _check_names(
        self, items: tuple[ast.Variable | ast.Embedded, ...], modifiers: list[ast.Modifier], computed: frozenset[str]
    ) -> tuple[str, ...]:
        """The variables of matches that the clauses name, in order; an error if one is not bound."""
        found = [item.text for item in items if isinstance(item, ast.Variable)]
        places = [("SELECT", item.span) for item in items if isinstance(item, ast.Embedded)]
        places += [(modifier.kind, modifier.span) for modifier in modifiers]
        known = computed | self._grouped_as() | self._given_variables()
        for kind, span in places:
            for match in _VARIABLE.finditer(self._source.masked, span.start, span.end):
                where = Span.at(self._source.query, match.start(), match.end())
                if kind == "HAVING" and match[1] in computed:
                    self._fail(f"HAVING names ?{match[1]}, which SELECT computes", where, "repeat its expression")
                self._check_bound(kind, match[1], where, known)
                found.append(match[1])
        return tuple(dict.fromkeys(name for name in found if name in self._scope.bound))

    def _plan(
        self,
        items: tuple[ast.Variable | ast.Embedded, ...],
        modifiers: list[ast.Modifier],
        computed: frozenset[str],
        lists: frozenset[str],
    ) -> SolutionPlan:
        """The plan for the clauses that are SPARQL's. The lists of rounds are computed before it and are variables in
        it."""
        form = self._tree.form_span
        select = [Piece(form.end - 1, form.end, "SELECT")]  # the *
        if self._tree.select:
            select = [Piece(i.span.start, i.span.end, "SELECT") for i in items if not _LIST.match(self._mask(i.span))]
        pieces = [Piece(m.span.start, m.span.end, m.kind) for m in modifiers]
        plan = compile_solutions(self._source, select, pieces, computed - lists, self._scope.iterated)
        for name in sorted(plan.aggregated & self._scope.nested):
            self._refuse(f"an aggregate over ?{name} {_NESTED}", self._place(name), _ONE_REPETITION)
        return plan

    def _check_grouped(self, plan: SolutionPlan, items: tuple[ast.Variable | ast.Embedded, ...]) -> None:
        """Refuses lists and aggregates over rounds together with groups over several solutions."""
        for item in items:
            if _LIST.match(self._mask(item.span)):
                self._refuse(
                    "the list of a variable's rounds with GROUP BY or an aggregate over solutions",
                    item.span,
                    "a list is of one match: aggregate over its rounds, or select it without GROUP BY",
                )
        for name in sorted(plan.aggregated & self._scope.iterated):
            self._refuse(
                f"an aggregate over ?{name}, which a Kleene+ binds in every round, with GROUP BY or one over solutions",
                self._place(name),
                "aggregates over rounds alone give a result for each match",
            )

    def _place(self, name: str) -> Span:
        """The first place of a variable in the text."""
        found = re.search(rf"[?$]{re.escape(name)}\b", self._source.masked)
        return Span.at(self._source.query, found.start(), found.end()) if found else self._tree.form_span

    def _count(self, kind: str) -> int | None:
        modifier = self._modifiers.get(kind)
        if modifier is None:
            return None
        if not modifier.text.isdecimal():
            self._fail(f"{kind} is not a count", modifier.span, f"write a whole number: {kind} 10")
        return int(modifier.text) if len(modifier.text) <= _DIGITS else sys.maxsize

    # -- CONSTRUCT

    def _construct(self) -> Clauses:
        (item,) = self._tree.select
        for kind in ("GROUP BY", "HAVING"):
            if kind in self._modifiers:
                self._refuse(f"CONSTRUCT with {kind}", self._modifiers[kind].span)
        template = compile_template(self._source, Piece(item.span.start, item.span.end, "the CONSTRUCT template"))
        names: list[str] = []
        for match in _VARIABLE.finditer(self._source.masked, item.span.start, item.span.end):
            where = Span.at(self._source.query, match.start(), match.end())
            self._check_bound("CONSTRUCT", match[1], where, self._given_variables())
            names.append(match[1])
        select = tuple(dict.fromkeys(names))
        textual = [self._modifiers[kind] for kind in ("ORDER BY", "VALUES") if kind in self._modifiers]
        limit, offset = self._count("LIMIT"), self._count("OFFSET") or 0
        if not textual:
            return Clauses(select, select, None, False, limit, offset, template)
        items = tuple(ast.Variable(name) for name in select)
        mentioned = self._check_names(items, textual, frozenset())
        pieces = [Piece(m.span.start, m.span.end, m.kind) for m in textual]
        plan = compile_solutions(self._source, [], pieces, frozenset(), frozenset())
        if plan.grouped:
            self._refuse("CONSTRUCT with an aggregate", textual[0].span)
        return Clauses(select, mentioned, plan, False, limit, offset, template)

    # -- names and errors

    def _mask(self, span: Span) -> str:
        return self._source.masked[span.start : span.end]

    def _check_bound(self, clause: str, name: str, span: Span, known: Set[str]) -> None:
        if name in self._scope.bound or name in known:
            return
        if name in self._scope.negated:
            self._fail(f"{clause} names ?{name}, which only a negated GPM has", span, "a negated GPM binds nothing")
        hint = name_hint(name, self._scope.bound, "?")
        self._fail(f"{clause} names the unknown variable ?{name}: no GPM in SEQ binds it", span, hint)

    def _fail(self, problem: str, span: Span | None, hint: str = "") -> NoReturn:
        raise QuerySemanticsError(problem, text=self._source.query, span=span, source=self._source.file, hint=hint)

    def _refuse(self, feature: str, span: Span | None, hint: str = "") -> NoReturn:
        raise UnsupportedFeature(
            f"{feature} is not supported by this version",
            text=self._source.query,
            span=span,
            source=self._source.file,
            hint=hint,
        )


def name_hint(name: str, known: Collection[str], sigil: str = "") -> str:
    """A hint with the name that is closest to `name`, or with all names if they are few; else ""."""
    if hint := did_you_mean(name, sorted(known), sigil + "{}", least=0.5):
        return hint
    return "there is " + ", ".join(sigil + other for other in sorted(known)) if 0 < len(known) <= 8 else ""
