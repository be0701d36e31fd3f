"""The pictures of the gallery, of the examples and of the papers' experiments: `python -m tests.support.gallery` makes
them and its page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import ceql
import spaseq
from spaseq.core.drawing import Timeline
from spaseq.tools.command.demos import DEMOS, Demo
from tests.support.papers import EXPERIMENTS

__all__ = ["PAGE", "page", "timeline", "write_all", "write_charts"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "gallery.md"
_MATCHES = 12
_ABOUT = (
    "Charts of what `python -m benchmarks.figures` measured, on logarithmic scales. It is processor time, the best of",
    "several runs that took turns on a machine with other work. Compare shapes: the papers' machines, languages and",
    "parts of the streams differ. [Performance](performance.md#figures-of-the-papers) has the list of figures.",
)


def _words(demo: Demo) -> dict[str, list[str]]:
    """The options of a demo, and its query."""
    words = shlex.split(demo.words.replace("{}", str(ROOT / "examples" / demo.folder)))
    found: dict[str, list[str]] = {"query": [words[0]]}
    for name, value in zip(words[1::2], words[2::2], strict=True):
        found.setdefault(name.removeprefix("--").replace("-", "_"), []).append(value)
    return found


def query(demo: Demo) -> Any:
    """The query of a demo, compiled."""
    path = Path(_words(demo)["query"][0])
    return (ceql if demo.command == "ceql" else spaseq).compile(path.read_text("utf-8"), source=path.name)


def timeline(demo: Demo) -> Timeline:
    """The first matches of a demo."""
    words = _words(demo)
    if demo.command == "ceql":
        matches = query(demo).run(words["events"][0], type_column=words["type_column"][0], valuations=True)
    else:
        knowledge: dict[str, Any] = dict(given.split("=", 1) for given in words.get("kb", ()))
        for given in words.get("groups", ()):
            iri, _, by = given.partition("=")
            knowledge[iri] = spaseq.Grouped(knowledge[iri], [by])
        streams = dict(given.split("=", 1) for given in words["stream"])
        more = {name: words[name][0] for name in ("event_by", "time") if name in words}
        matches = query(demo).run(streams, knowledge, **more)
    found: Timeline = matches.timeline(_MATCHES)
    return found


def page() -> str:
    """The text of the page."""
    about = "See what the examples find: each has the automaton of its query, and its first matches on a time axis."
    books = "Notebooks explain five of them step by step, with their outputs: `examples/notebooks`."
    lines = ["# Gallery", "", about, "`make docs` makes the pictures anew.", books, ""]
    for name, demo in DEMOS.items():
        about = f"{demo.about[0].upper()}{demo.about[1:]} (`examples/{demo.folder}`): `{demo.command} demo {name}`."
        lines += [f"## {name}", "", about, "", f"![automaton of {name}](gallery/{name}-automaton.svg)", ""]
        lines += [f"![matches of {name}](gallery/{name}.svg)", ""]
    lines += ["## Experiments of the papers", "", *_ABOUT, ""]
    for experiment in EXPERIMENTS:
        lines += experiment.section()
    return "\n".join(lines)


def write_all() -> None:
    """Writes the page and its pictures."""
    folder = PAGE.parent / "gallery"
    folder.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    for name, demo in DEMOS.items():
        timeline(demo).save(folder / f"{name}.svg")
        query(demo).picture().save(folder / f"{name}-automaton.svg")
    write_charts()


def write_charts() -> None:
    """Writes the charts of the papers' experiments."""
    for experiment in EXPERIMENTS:
        (PAGE.parent / "gallery" / f"{experiment.name}.svg").write_text(experiment.svg(), encoding="utf-8")


if __name__ == "__main__":
    write_all()
