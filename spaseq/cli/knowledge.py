"""`spaseq knowledge`: background knowledge saved as a file (`spaseq.rdf.columns.kept`), and the contents of one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from spaseq.tools.command.colours import say


def add_knowledge(commands: Any) -> None:
    """Adds `knowledge build` and `knowledge info` to the commands."""
    about = "Keep background knowledge as a file that --kb maps into memory, so that a start does not read it."
    top = commands.add_parser("knowledge", help="keep background knowledge as a file", description=about)
    asked = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    what = "Read RDF in any format, and keep it as one graph, in a file for --kb IRI=FILE."
    building = asked.add_parser("build", help="make such a file", description=what)
    building.add_argument("files", nargs="+", metavar="FILE", help="RDF in any format; globs, -, .gz and .zst too")
    building.add_argument("-o", "--output", required=True, metavar="NAME.spaseq-kb", help="the file to write")
    building.set_defaults(command=_build)
    telling = asked.add_parser("info", help="say what is in one", description="Say what is in a file of knowledge.")
    telling.add_argument("file", metavar="NAME.spaseq-kb")
    telling.add_argument("--check", action="store_true", help="read all of it, and compare it with what was written")
    telling.set_defaults(command=_info)


def _build(options: argparse.Namespace) -> int:
    from spaseq.core.files.beside import check_output
    from spaseq.rdf import build_knowledge

    check_output(options.output, options.files, globs_are_open=False)
    kept = build_knowledge(options.files, options.output)
    say(f"{kept.path}: {kept.triples:,} triples, {kept.size:,} bytes\n")
    return 0


def _info(options: argparse.Namespace) -> int:
    from spaseq.rdf import check_kept

    lines = list(_describe(options.file))
    if options.check:
        check_kept(options.file)
        lines.append("checked: all of it is as it was written")
    say("\n".join([*lines, ""]))
    return 0


def _describe(path: str) -> Iterator[str]:
    from spaseq.rdf import described_kept

    kept = described_kept(path)
    yield f"{kept.path}: {kept.triples:,} triples, {kept.size:,} bytes"
    for name, size in kept.sources:
        yield f"made of {name}" + ("" if size is None else f", {size:,} bytes")
    width = max((len(f"{count:,}") for _, count in kept.predicates), default=0)
    for predicate, count in kept.predicates:
        yield f"  {count:>{width},}  <{predicate}>"
