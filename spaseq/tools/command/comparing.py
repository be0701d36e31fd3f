"""`compare OLD NEW` of both commands: the matches that one of two queries reports alone, over all streams."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from spaseq.core.errors import OptionError
from spaseq.tools.command.colours import say
from spaseq.tools.command.frame import bounded, compiled_by, query_text, warn
from spaseq.tools.command.options import add_query, count

if TYPE_CHECKING:
    from spaseq.core.containment.result import Comparison, Witness

DIFFER: Final = 5
UNDECIDED: Final = 6
_ABOUT: Final = (
    "Compare the matches of two queries over all streams, and show a stream on which they differ. Exit 0 if they are "
    f"equivalent, {DIFFER} if they differ, {UNDECIDED} if no difference was found and none is excluded."
)

Compile = Callable[..., Any]
Compare = Callable[..., "Comparison"]


def add_compare(commands: Any, load: Callable[[], tuple[Compile, Compare]], *, valuations: bool) -> None:
    """Adds `compare`. `load` imports the functions that compile a text and compare two queries; `valuations`: the
    command has the option of that name."""
    parser = commands.add_parser("compare", help="compare the matches of two queries over all streams",
                                 description=_ABOUT)  # fmt: skip
    add_query(parser, name="OLD")
    parser.add_argument("new", metavar="NEW", help="file of the changed query, its text, or -")
    if valuations:
        parser.add_argument("--valuations", action="store_true",
                            help="tell matches by the positions of each variable")  # fmt: skip
    parser.add_argument("--streams", type=count, metavar="N",
                        help="random streams to try if the automata do not decide (200)")  # fmt: skip
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text, or all as JSON (text)")
    parser.set_defaults(command=lambda options: _compare(options, load))


def _compare(options: argparse.Namespace, load: Callable[[], tuple[Compile, Compare]]) -> int:
    names = options.query, options.new
    if names.count("-") > 1:
        raise OptionError("standard input is asked for twice", "only one of the queries can be -")
    compile_text, compare = load()
    queries = compiled_by(options, lambda settings: [compile_text(*query_text(name), settings) for name in names])
    for query in queries:
        warn(query.warnings)
    words: dict[str, Any] = {} if options.streams is None else {"streams": options.streams}
    if getattr(options, "valuations", False):
        words["valuations"] = True
    with bounded(queries[0].settings):
        found = compare(*queries, **words)
    if options.format == "json":
        say(json.dumps(_as_dict(found), ensure_ascii=False, default=str) + "\n", data=True)
    else:
        say(f"{found}\n")
    return 0 if found.differ is False else DIFFER if found.differ else UNDECIDED


def _as_dict(found: Comparison) -> dict[str, Any]:
    return {
        "relation": str(found.relation),
        "reason": found.reason,
        **{name: _as_rows(getattr(found, name)) for name in ("only_old", "only_new", "both")},
    }


def _as_rows(witness: Witness | None) -> dict[str, Any] | None:
    return None if witness is None else {"events": list(witness.rows), "match": witness.match}
