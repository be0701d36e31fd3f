"""A compiled query of either language, from which its evaluations are made.

`ceql.runtime.compiled` and `spaseq.language.runtime.compiled` make it. `spaseq.core.protocols.Query` is its face.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from spaseq.core.automata import CEA
from spaseq.core.automata.diagram import automaton_text
from spaseq.core.engine import Program, Settings
from spaseq.core.errors import OptionError, expect_type, named_query
from spaseq.core.pattern import Pattern
from spaseq.core.queries.own_functions import OwnFunctions


class CompiledQuery:
    """A query, parsed, checked and lowered to `pattern`, of which the engine makes `automaton`. It never changes.

    `within` is the clause that names a time; empty if there is none. `own`: the functions that users registered for the
    language.

    Raises `QuerySyntaxError`, `QuerySemanticsError`, `UnsupportedFeature`, each with line, column and a hint, and
    `OptionError` if it is no text and for settings that the query cannot have.
    """

    pattern: Pattern
    within: str
    own: ClassVar[OwnFunctions]

    def __init__(self, text: str, source: str = "<query>", settings: Settings | None = None) -> None:
        if not isinstance(text, str):
            built = hasattr(type(text), "__ceql__")
            hint = "ceql.compile takes it" if built else "open(path).read() reads a file"
            raise OptionError(f"a query is text, and this is a {type(text).__name__}", hint)
        self.text = text
        self.source = source
        self.settings: Settings = Settings.given(settings)
        with named_query(source):
            self._compile()

    def _compile(self) -> None:
        raise NotImplementedError

    def _expect_keys(self, keys: Sequence[Any]) -> None:
        """`OptionError` if `forget_keys_after` is given and the query has no keys."""
        if self.settings.forget_keys_after is not None and not keys:
            raise OptionError(
                "forget_keys_after is given, and the query has no keys", "PARTITION BY gives it some; else leave it out"
            )

    def program(self) -> Program:
        """The automaton with its window and budgets, as the engine runs it."""
        raise NotImplementedError

    @property
    def automaton(self) -> CEA:
        """The automaton. Raises `BudgetExceeded` (`conjunction_transitions`) if it is too large and only a lazy
        evaluator runs the query."""
        return self.program().cea

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions that it calls, each once."""
        raise NotImplementedError

    @property
    def timed(self) -> str:
        """The clause or setting whose meaning depends on the times of events; empty if there is none."""
        return self.within or ("" if self.settings.forget_keys_after is None else "forget_keys_after")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Likely oversights of the query's author."""
        raise NotImplementedError

    @property
    def advice(self) -> tuple[str, ...]:
        """Likely mistakes that can be run: a line each, without the name of the query."""
        raise NotImplementedError

    @property
    def growth(self) -> tuple[str, ...]:
        """The causes, in words, for which the memory of a run grows for ever."""
        raise NotImplementedError

    def explained(self, format: str, plan: Iterable[str], about: Mapping[str, Any]) -> str:
        """`plan` as text, the automaton as `dot` or `svg`, or both and the description `about` as `json`."""
        expect_type("the format", format, str, "text, dot, svg or json")
        with named_query(self.source):  # which may be nested too deeply for its printer
            lines = list(plan)
        if format == "text":
            return "\n".join(lines) + "\n"
        return automaton_text(self.automaton, format, {**about, "warnings": list(self.warnings), "plan": lines})
