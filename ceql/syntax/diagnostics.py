"""Turns the parser's failures into one clear `QuerySyntaxError`.

The parser knows the terminals it would have taken; here they become words, and slips that people coming from other
languages make get a hint of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from spaseq.core.after import AFTER_SLIPS
from spaseq.core.errors import QuerySyntaxError, Span
from spaseq.core.text import file_hint, foreign_hint

_WORDS: Final[dict[str, str]] = {
    "IDENT": "a name",
    "QUOTED": "a name",
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "REGEX": "a regular expression in quotes",
    "COMPARISON": "a comparison (= != < <= > >=)",
    "MORETHAN": "a comparison (= != < <= > >=)",
    "PLUS": "+",
    "MINUS": "an arithmetic operator",
    "STAR": "*",
    "SLASH": "an arithmetic operator",
    "PERCENT": "an arithmetic operator",
    "SEMICOLON": ";",
    "COLON": ":",
    "COMMA": "','",
    "DOT": ".",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "VALUES": "{",
    "RBRACE": "}",
    "BOUNDS": "a repetition (? + * {2,5}, with -> or : before it)",
    "ARROW": "->",
    "QMARK": "?",
    "UNIT": "a unit of time (DAYS, HOURS, MINUTES, SECONDS, MILLISECONDS)",
    "EVENT": "EVENTS",
    "DOTS": "..",
    "PARTITION": "PARTITION BY",
    "CONSUME": "CONSUME BY",
    "POLICY": "ANY, PARTITION or NONE",
    "AFTER": "AFTER MATCH",
    "GROUP": "GROUP BY",
    "ORDER": "ORDER BY",
    "STRATEGY": "a selection strategy (ALL, ANY, NEXT, LAST, MAX, STRICT, FIRST)",
    "$END": "the end of the query",
}
_TOKEN: Final = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/|\s+)|(?P<string>'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*"|[‘’][^‘’\n]*’|[“”][^“”\n]*”)
    |(?P<name>`[^`\n]*`|[^\W\d]\w*)|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSER: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSER_TERMINAL: Final = {"(": "RPAR", "[": "RSQB", "{": "RBRACE"}
_QUOTES: Final = "'\"‘’“”"

_EVERY: Final = (
    "every A -> B is A -> B with AFTER MATCH NO SKIP, the default; "
    "every (A -> B) is A -> B AFTER MATCH SKIP PAST LAST EVENT"
)
_TICKS: Final = (
    "NOT … FOR EVERY reports a silence again and again: B ; NOT B FOR EVERY 10 SECONDS has a row after each 10 s "
    "behind a B that no other B came in"
)
_WORD_HINTS: Final[dict[str, str]] = {
    "PATTERN": "the pattern is the WHERE clause: WHERE A; B+; C",
    "DEFINE": "conditions on variables are a FILTER: FILTER a[price > 3] AND b[price < 2]",
    "MEASURES": "SELECT computes what is reported: SELECT a.price AS first, COUNT(b) AS n",
    "EVERY": _EVERY,
    "HAVING": "conditions are a FILTER after the formula; those on groups of rows are for a table: DuckDB, pandas",
    "UNTIL": "UNTIL stands behind a loop: B+ UNTIL C",
    "EVENT": "a window over events is WITHIN 100 EVENTS",
    "FILTER": "the order is SELECT … FROM … WHERE … FILTER … PARTITION BY … WITHIN …",
    "WHERE": "the order is SELECT … FROM … WHERE … FILTER … PARTITION BY … WITHIN …",
    "FROM": "the order is SELECT … FROM … WHERE … FILTER … PARTITION BY … WITHIN …",
}
_WINDOW: Final = "a window is 100 EVENTS, 10 SECONDS, 1 HOUR 30 MINUTES, or 10000 [attribute]"
_FORMULA: Final = r"(?:WHERE|[;:(,]|\bOR|\bNOT)\s*"
# Patterns of the text before and after the error's position, and the hint. The first pair that matches both decides.
_TOP: Final = "ORDER BY x.price DESC LIMIT 3, behind the formula, reports the best 3 matches of each event"
_SLIPS: Final = tuple(
    (re.compile(rf"(?:{before})$", re.IGNORECASE), re.compile(behind, re.IGNORECASE), hint)
    for before, behind, hint in (
        (
            r"\bCOUNT\s*\(\s*\*[\s\S]*\bGROUP\s+BY",
            r"",
            "a group is an EVENT at which matches end, a KEY of PARTITION BY, or a time: PARTITION BY [user] GROUP BY "
            "KEY, 1 HOUR",
        ),
        (r"SELECT\b.*\w\s*\.", r"\*", "attributes are named one by one: SELECT x.price, x.time"),
        (r"SELECT\s+(?:FIRST\s+)?EVERY\s*\*\s*(?:FROM|WHERE)", r"\w", _EVERY),
        (r"\bAS", r"['\"]", "a name with blanks stands in back-quotes: AS `my name`"),
        (r"SELECT\s+(?:\w+\s+)?\*", r",", "* has no columns beside it: SELECT user, COUNT(x) AS n, or SELECT *"),
        (r"INTERVAL", r"[\d'\"]", "a duration is 30 MINUTES, without INTERVAL"),
        (r"\bFOR", r"['\"]", "the time of an absence stands without quotes: NOT B FOR 1 SECOND"),
        (r"EXTRACT\s*\(\s*\w+", r"FROM\b", "write HOUR(x.time), YEAR(x.time) or another of these functions"),
        (r"\w\s*\(.*\)", r"FILTER\s*\(", "an aggregate has no FILTER: COUNT(NULLIF(x.open, FALSE)) counts some"),
        (r"SELECT\s+NXT\s*\*\s*\w*\s*", r"", "the strategy is called NEXT here: SELECT NEXT *"),
        (
            r"SELECT\s+\w+\s*\*\s*(?:WHERE|FROM)",
            r"\w",
            "the word before * is no strategy: they are ALL, ANY, NEXT, LAST, MAX, STRICT and FIRST",
        ),
        (r"SELECT\s+DISTINCT", r"", "no match is reported twice; a table drops equal rows: drop_duplicates()"),
        (r"SELECT\s+TOP", r"", _TOP),
        (r"", r"TOP\b", _TOP),
        (r"", r"NULLS\s", "NULL is the greatest value: last, and with DESC first"),
        (r"SELECT\b[^;]*,\s*WHERE", r"", "is there a comma too many before WHERE?"),
        (
            r"FROM\s+[\w,\s]+",
            r"(?:(?:INNER|LEFT|RIGHT|CROSS|FULL)\s+)?JOIN\b",
            "events are related by a FILTER: WHERE A AS a; B AS b FILTER a.id = b.id",
        ),
        (r"FROM\s+[\w,\s]+", r"AS\b", "streams have no other names; s>A is an A of stream s"),
        (
            r"FROM\s+\w+",
            r"\.(?:csv|tsv|jsonl?|ndjson|parquet)\b",
            "FROM names streams, and --stream NAME=FILE gives one its file; without FROM the events need no name",
        ),
        (r"FROM\s+\w+", r"[.#]", "windows stand at the end: WITHIN 30 SECONDS"),
        (r"\bFOR(?:\s+[\d.]+\s+\w+)?", r"EVERY\b", _TICKS),
        (r"\bEVERY", r"(?:\d|NOT\b|\(\s*(?:NOT\b|timer:interval))", _TICKS),
        (r"\bEVERY", r"[\w(*]", _EVERY),
        (
            r"",
            r"ORDER\s+BY\b",
            "ORDER BY stands behind the formula, as WITHIN does, and sorts the matches of each event",
        ),
        (
            r"PARTITION\s+BY\b[\s\S]*\bGROUP\s+BY",
            r"",
            "GROUP BY KEY has a row for each key of PARTITION BY; a table has other groups: to_pandas(), DuckDB",
        ),
        (
            r"\bGROUP\s+BY",
            r"",
            "to treat each key on its own write PARTITION BY [key]; GROUP BY KEY then has a row for each",
        ),
        (r"\bIN", r"\(", "sets are written in braces: IN {'a', 'b'}"),
        (r"\bIN", r"[\d-]", "sets and ranges are written in braces: IN {1, 2}, IN {1..3}"),
        (r"\bIN\s*\{[^}]*", r"NULL\b", "NULL is in no set: x.price IN {1, 2} OR x.price IS NULL"),
        (r"\bIN\s*\{", r"\}", "a set has at least one value"),
        (
            r"\(\s*DISTINCT\b[^()]*",
            r",",
            "DISTINCT is of one value: COUNT(DISTINCT CONCAT(x.a, ' ', x.b)) joins two texts to one",
        ),
        (r"SELECT\b.*\)", r"OVER\b", "an aggregate is over the events of its variable in the match: leave OVER out"),
        (r"COUNT\s*\(", r"\*", "COUNT(x) counts the events of a variable x"),
        (r"={2,}", r"=", "write = or =="),
        (r"\bBETWEEN\b[^\]]*", r",|\]", "both ends are given: price BETWEEN 10 AND 20"),
        (r"\bIS", r"", "write price IS NULL or price IS NOT NULL; values are compared by ="),
        (r"\bCASE\b[^\]]*", r"THEN\b|\]", "CASE WHEN price > 3 THEN 'high' ELSE 'low' END"),
        (r"CONSUME", r"(?:ANY|PARTITION|NONE)\b", "write CONSUME BY ANY, CONSUME BY PARTITION or CONSUME BY NONE"),
        (
            r"\w+\s*\.\s*\w+",
            r"\[",
            "PREV(b.price) is the price of the event that b took before, b[0].price that of its first event",
        ),
        (r"\bPREV", r"[^\W\d]", "what is read stands in parentheses: PREV(b.price)"),
        (r"\w+\s*\.\s*\w+", r"\.", "an attribute is x.price: one variable, one attribute"),
        (r"WITHIN", r"", _WINDOW),
        (r"", r"WHERE\s+TIMER\b", "a window is WITHIN 10 SECONDS, at the end"),
        (r"", r"AFTER\s+MATCH\b", "AFTER MATCH stands behind the formula, as WITHIN does"),
        *AFTER_SLIPS,
        (r"(?:WHERE|[;:]|\bOR|\bNOT)\s*", r"['\"]", "event types stand without quotes, or in back-quotes: `a type`"),
        (
            r"SELECT\b(?!.*\bWHERE\b).*[\w)\]]",
            r"[^\W\d]\w*\s*(?:,|WHERE\b|FROM\b)",
            "AS gives a column its name: x.price AS p",
        ),
        (r"", r"OFFSET\b", "there is no OFFSET; LIMIT n reports at most n matches for each event that completes some"),
    )
)
_BETWEEN: Final = "; lets anything lie between them, -> what the next does not fit, : nothing"
# The same, for positions where an operator of a formula is expected.
_FORMULA_SLIPS: Final = tuple(
    (re.compile(rf"(?:{before})$", re.IGNORECASE), re.compile(behind, re.IGNORECASE), hint)
    for before, behind, hint in (
        (r"", r"TOP\s+\d", _TOP),
        (r"\bPATTERN", r"\(", "the pattern is the WHERE clause: WHERE A; B+; C"),
        (r"\bSEQ(?:UENCE)?", r"\(", "a sequence is written A; B; C"),
        (r"\bALL", r"\(", "all of them in any order is AND(A, B, C)"),
        (r"\bTIMER\s*:\s*INTERVAL", r"\(", "a timer is the time of an absence: A -> NOT B FOR 10 SECONDS"),
        (r"", r"FOR\b", "FOR is the time of an absence: A -> NOT B FOR 1 SECOND"),
        (r"", r"\.?\s*FOLLOWED_?BY_?ANY\b", "Flink's followedByAny is ; here: A ; B"),
        (r"", r"\.?\s*NOT_?FOLLOWED_?BY\b", "Flink's notFollowedBy is a NOT: A -> NOT B -> C, or A ; NOT B at the end"),
        (r"", r"\.?\s*FOLLOWED_?BY\b", "Flink's followedBy is -> here: A -> B"),
        (r"", r"\.?\s*NOTNEXT\b", "Flink's notNext is A : NOT B, which takes the event that is not a B"),
        (r"", r"\.\s*NEXT\b", "Flink's next is : here: A : B"),
        (r"", r"\.\s*WITHIN\b", "a window is WITHIN 10 SECONDS, at the end"),
        (r"\w", r"<\s*(?:\d+\s*:?\s*\d*|:\s*\d+)\s*>", "numbers of events stand in braces: B{2,5}, B{2,}, B{,5}, B{5}"),
        (r"", r"\(", "conditions are a FILTER: (A FILTER A[price > 3])"),
        (rf"{_FORMULA}\w+", r"[.<]|!=", "conditions are a FILTER behind the formula: WHERE A; B FILTER A[price > 3]"),
        (r"\w", r"\[", "conditions are a FILTER: (A FILTER A[price > 3])"),
        (r"", r"=", "a variable stands behind its type, A AS a, and conditions in a FILTER: A[price = 3]"),
        (
            r"\bNOT\b[^;]*\bFOR\s[\w\s.]*",
            r"AND\s+NOT\b",
            "an absence of both is one of either: NOT (A OR B) FOR 10 SECONDS",
        ),
        (r"\bNOT\b[^;]*\bFOR\s[\w\s.]*", r"AND\b", "a C behind the absence is A -> NOT B FOR 10 SECONDS -> C"),
        (r"\bNOT\s*\w+", r"AND\b", "a C with no B before it is NOT B ; C, behind an A: A -> NOT B -> C"),
        (r"", r"AND\s+NOT\b", "an A with no B before it is NOT B ; A, one with no B behind it A ; NOT B"),
        (r"", r"AND\b", "A and B in any order is AND(A, B); conditions are a FILTER"),
        (r"", r",", "in order: A; B; C. In any order: AND(A, B, C)"),
        (r"[\w+)}`]", r"[^\W\d]|`", _BETWEEN),
    )
)
_WINDOW_BEFORE: Final = re.compile(r"\bWITHIN[\s\d.\w]*$", re.IGNORECASE)
_BEHIND_NUMBER: Final = re.compile(
    r"(?:EVENT|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND|NANOSECOND)S?|AND|OR|IN|NOT|LIKE|WITHIN|PARTITION|CONSUME|"
    r"LIMIT",
    re.IGNORECASE,
)
_NUMBER_AND_WORD: Final = re.compile(r"((?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)(\w+)", re.IGNORECASE)
_TIME_WORDS: Final = {
    word: unit
    for unit, words in (
        ("NANOSECONDS", "NS NSEC NANOS"),
        ("MICROSECONDS", "US USEC MICROS"),
        ("MILLISECONDS", "MS MSEC MILLIS"),
        ("SECONDS", "S SEC SECS"),
        ("MINUTES", "M MIN MINS"),
        ("HOURS", "H HR HRS"),
        ("DAYS", "D"),
        ("", "W WEEK WEEKS MONTH MONTHS Y YEAR YEARS"),
    )
    for word in words.split()
}
"""Words for units of time elsewhere, and ours; "" if there is none."""
_UNITS: Final = "units of time are DAYS, HOURS, MINUTES, SECONDS, MILLISECONDS, MICROSECONDS, NANOSECONDS"


def syntax_error(error: UnexpectedInput, text: str, source: str) -> QuerySyntaxError:
    """The `QuerySyntaxError` for an error of lark's parser, with place, expected words and a hint."""
    start, end, expected = _where(error, text)
    if isinstance(error, UnexpectedCharacters) and (run := _NUMBER_AND_WORD.match(text, start)):
        span = Span.at(text, start, run.end())
        hint = _time_hint(run[1], run[2]) if _WINDOW_BEFORE.search(text[:start]) else ""
        if not hint:
            is_word = _BEHIND_NUMBER.fullmatch(run[2])
            hint = f"is a blank missing: {run[1]} {run[2]}?" if is_word else f"a name stands in back-quotes: `{run[0]}`"
        return QuerySyntaxError(f"{run[0]} is no number", text=text, span=span, source=source, hint=hint)
    hung = _find_unclosed(text)
    if hung is not None and (text[hung] not in _CLOSER or _CLOSER_TERMINAL[text[hung]] in expected):
        return _unclosed_error(text, source, hung)
    found = text[start:end]
    expected_words = _words(expected)
    if not found:
        problem = "the query ends too early" if text.strip() else "the query is empty"
    elif found == ")" and (call := re.search(r"(\w+)\s*\(\s*$", text[:start])) and "LPAR" in expected:
        problem = f"{call[1]}() is of nothing"
    elif found in ")]}":
        problem = f"nothing is open here that {found!r} could close"
    else:
        problem = f"unexpected {found}"
    hint = _hint(text, start, found, expected)
    if hint == _BETWEEN:
        problem = f"two events want ';', '->' or ':' between them: nothing stands before {found}"
    return QuerySyntaxError(
        problem, text=text, span=Span.at(text, start, end), source=source, expected=expected_words, hint=hint
    )


def _parted(word: str, expected: set[str]) -> str:
    """`word` with a blank after the expected keyword that it begins with (`LIMIT 3` for LIMIT3); "" if there is none.

    `asset` hardly means `AS set`: short keywords count only before a digit, or in a place for no event type.
    """
    least = 5 if "SEMICOLON" in expected else 3
    for keyword in sorted(expected):
        rest = word[len(keyword) :]
        telling = keyword.isalpha() and (len(keyword) >= least or rest[:1].isdigit())
        if rest and telling and word.upper().startswith(keyword):
            return f"{word[: len(keyword)]} {rest}"
    return ""


def _where(error: UnexpectedInput, text: str) -> tuple[int, int, set[str]]:
    """Start and end of the text that was not understood, and the terminals that could have stood there."""
    end_of_text = len(text.rstrip())
    if isinstance(error, UnexpectedToken):
        token: Token = error.token
        expected = set(error.accepts or error.expected)
        if token.type == "$END" or token.start_pos is None:
            return end_of_text, end_of_text, expected
        return token.start_pos, token.start_pos + len(token), expected
    if isinstance(error, UnexpectedCharacters):
        start = error.pos_in_stream if error.pos_in_stream is not None else end_of_text
        # No token begins with this character: listing the expected tokens would not help.
        return start, min(start + 1, len(text)), set()
    assert isinstance(error, UnexpectedEOF)
    return end_of_text, end_of_text, set(error.expected)


def _words(terminals: Iterable[str]) -> tuple[str, ...]:
    found = set(terminals) - {"MORETHAN"}
    if {"EVENT", "ROW"} <= found:  # of AFTER MATCH: no plural there
        return ("EVENT",)
    if {"EVENT", "KEY"} <= found:  # of GROUP BY
        return ("EVENT", "KEY", "a duration")
    if "BOUNDS" in found:
        found -= {"PLUS", "STAR", "LOOP", "LBRACE", "QMARK"}
    if "LSQB" not in found:  # behind x[…], of which few mean x[0].price
        found.discard("DOT")
    words = {_WORDS.get(t, t) for t in found}
    if "an arithmetic operator" in words:
        words -= {"+", "*"}
    return tuple(sorted(words, key=lambda w: (not w.startswith("a "), w)))


def _find_unclosed(text: str) -> int | None:
    """The position of the innermost bracket, quote or comment that is not closed; None if all are."""
    open_at: list[int] = []
    for match in _TOKEN.finditer(text):
        character = match["other"]
        if character is None:
            continue
        if character in _QUOTES or character == "`" or text.startswith("/*", match.start()):
            return match.start()
        if character in _CLOSER:
            open_at.append(match.start())
        elif character in ")]}":
            if not open_at or _CLOSER[text[open_at[-1]]] != character:
                return open_at[-1] if open_at else None
            open_at.pop()
    return open_at[-1] if open_at else None


def _unclosed_error(text: str, source: str, at: int) -> QuerySyntaxError:
    opener = text[at]
    if opener in _QUOTES:
        problem, hint = (
            "this text is not closed",
            "a text ends on its line with the quote it begins with; '' is a quote in it",
        )
    elif opener == "`":
        problem, hint = "this name is not closed", "a back-quoted name ends with a back-quote"
    elif opener == "/":
        problem, hint = "this comment is not closed", "a comment ends with */"
    else:
        problem, hint = f"{opener!r} is not closed", f"add the missing {_CLOSER[opener]!r}"
    return QuerySyntaxError(problem, text=text, span=Span.at(text, at, at + 1), source=source, hint=hint)


def _time_hint(number: str, word: str) -> str:
    """The hint for a unit of time that is spelt as elsewhere; "" for any other word."""
    unit = _TIME_WORDS.get(word.upper())
    return "" if unit is None else f"write {number} {unit}; {_UNITS}" if unit else _UNITS


def _hint(text: str, start: int, found: str, expected: set[str]) -> str:
    """The hint for a known slip; "" for any other error."""
    if hint := foreign_hint(text):
        return hint
    before, rest = text[:start].rstrip(), text[start:]
    word = found.upper()
    last = re.search(r"(\S+)$", before)
    if rest.startswith("=>"):
        return "CEQL writes 'followed by' as -> (the next that fits), ; (anything between) or : (immediately)"
    if found == ")" and re.search(r"\b(now|current_\w+|today|sysdate)\s*\($", before, re.IGNORECASE):
        return "a query has no clock: events have their own times, and WITHIN says how far apart they may be"
    if found == ")" and re.search(r"\w\s*\($", before) and "LPAR" in expected:
        return "an aggregate says what it is of: COUNT(x), AVG(x.price)"
    if rest.startswith(("&&", "&")):
        return "write AND"
    if rest.startswith(("||", "|")):
        return "write OR" if re.search(r"\bWHERE\b", before, re.IGNORECASE) else "write CONCAT(x.first, x.last)"
    if rest.startswith("::"):
        return "write CAST(x.price AS NUMBER)"
    if rest.startswith(("**", "^")) or (before.endswith("*") and rest.startswith("*")):
        return "write POWER(x.price, 2)"
    if rest.startswith("!") and not rest.startswith("!="):
        return "write NOT"
    if rest.strip() == ";" or (not found and before.endswith(";")):
        return "a query does not end with ';': that means 'followed by'"
    if last and last[1].upper() == "BY" and found and "LSQB" in expected:
        return f"PARTITION BY lists attributes in brackets: PARTITION BY [{found}]"
    if "UNIT" in expected and (number := re.search(r"[\d.]+$", before)) and (hint := _time_hint(number[0], found)):
        return hint
    if "UNIT" in expected and "EVENTS" in expected:
        return _WINDOW
    if re.search(r"\w\s*>$", before) and re.match(r"[\d'\"]", rest) and "FILTER" not in before.upper():
        return "conditions are a FILTER behind the formula: WHERE A; B FILTER A[price > 3]"
    for slip_before, slip_behind, hint in _SLIPS:
        if found and slip_before.search(before) and slip_behind.match(rest):
            return hint
    if found in ("=", "==", "<", "<=", ">", ">=", "!=", "<>") and "AND" in expected:
        return "compare two values at a time: a = b AND b = c"
    if not before and word in ("PREFIX", "BASE", "CONSTRUCT", "ASK"):
        return "this begins as a query of SPAseq does: spaseq run"
    if before.upper() == "SELECT" and rest.startswith("?"):
        return "variables of CEQL have no ?; a query over streams of RDF is one of SPAseq: spaseq run"
    if hint := file_hint(text):
        return hint
    if word == "SELECT" or not before:
        return "a query begins with SELECT: SELECT * FROM s WHERE A; B"
    if before[-1:] in "'\"’”" and re.match(r"\w", rest):
        return "is a quote missing before it?"
    if word in _WORD_HINTS:
        return _WORD_HINTS[word]
    if parted := _parted(found, expected):
        return f"is a blank missing: {parted}?"
    if found and ("SEMICOLON" in expected or rest[:1] in "?,"):
        for slip_before, slip_behind, hint in _FORMULA_SLIPS:
            if slip_before.search(before) and slip_behind.match(rest):
                return hint
    if found in (";", ":", "->", "+", ":+", "->+") and "AND" in expected:
        return "FILTER reaches to the end of its formula; put (φ FILTER …) in parentheses to go on after it"
    if found and re.fullmatch(r"\w+", found) and expected & {"IDENT"} and found.isupper():
        return f"to use {found} as a name, write it in back-quotes: `{found}`"
    return ""
