"""What the tasks of a batch read of files: about as much each, however many files there are and however large.

The local engine merges the files of a stream by time as long as it can have them all open, and reads more of them one
after another (`spaseq.rdf.merged_files`). Tasks read each file by itself in both cases, and large files of lines in
parts. Those that the local engine reads one after another are a *chain*: they give the same events if none of them goes
back behind the one before by more than the lateness, which is seen once they are read (`out_of_turn`). Where one does,
or where anything is wrong, all is read again as the local engine does (`whole`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from heapq import heapify, heapreplace
from itertools import count, groupby
from pathlib import Path
from typing import Final

from spaseq.core.files.places import matching, open_file, whole_name
from spaseq.rdf import (
    ARRIVAL,
    EventBy,
    StreamOptions,
    StreamSource,
    expand_files,
    file_options,
    format_of,
    has_lines,
    merged_files,
)
from spaseq.spark.ingest.boundaries import first_boundary

_SMALLEST: Final = 16 << 20
"""Bytes below which a file is not cut for another task: a second of reading."""
_MOST: Final = 128 << 20
"""Bytes for one task, where there are many tasks' worth."""
_MOST_TASKS: Final = 1_000
_ROUNDS: Final = 4
"""Tasks for each of the cores, so that they end at about the same time."""
_PACKED: Final = 10
"""Bytes of triples in one of a compressed file, about."""


@dataclass(frozen=True, slots=True)
class Input:
    """What is read in one go; `stream` is its place in the query. `names`: as the user called the files, by path.

    `chain`: inputs of one chain, in the order of their numbers, are to follow each other in time. `span`: the bytes of
    its file, where they are not all. `weight`: bytes to be read, about.
    """

    number: int
    stream: int
    source: StreamSource
    names: dict[str, str]
    chain: int
    weight: int
    span: tuple[int, int] | None = None

    def to_json(self) -> str:
        """As it travels to its task."""
        return json.dumps(asdict(self))

    @staticmethod
    def of_json(text: str) -> Input:
        """The inverse of `to_json`."""
        given = json.loads(text)
        iri, files, by = given["source"].values()
        source = StreamSource(iri, tuple(files), None if by is None else EventBy(**by))
        span = None if given["span"] is None else tuple(given["span"])
        return Input(**{**given, "source": source, "span": span})

    @property
    def quarantined(self) -> dict[str, str]:
        """By path, the name of the file for lines that cannot be read."""
        return {path: f"{self.number}-{i}-{Path(path).name}.tsv" for i, path in enumerate(self.names)}


def inputs_of(sources: Sequence[StreamSource], options: StreamOptions, tasks: int, *, whole: bool) -> list[Input]:
    """The inputs of all streams; `options` are settled. `whole`: as the local engine reads them.

    Cuts are looked for in the files: O(length of an event) for each. EventError as of `expand_files`.
    """
    found: list[Input] = []
    chains = count()
    sizes = _sizes(sources)
    smallest = max(_SMALLEST, sum(sizes.values()) // (2 * tasks))
    for stream, source in enumerate(sources):
        parts, together = merged_files(source, options), next(chains)
        for part in parts:
            names = {whole_name(name): name for name in expand_files(part.files)}
            weight = sum(sizes.get(path, 0) for path in names)
            if whole or options.time == ARRIVAL:
                given = replace(part, files=tuple(names))
                found.append(Input(len(found), stream, given, names, next(chains), weight))
                continue
            chain = together if len(parts) == 1 else next(chains)
            for path, name in names.items():
                own = Input(0, stream, replace(part, files=(path,)), {path: name}, chain, sizes.get(path, 0))
                for piece in _pieces(own, path, options, smallest):
                    found.append(replace(piece, number=len(found)))
    return found


def _sizes(sources: Sequence[StreamSource]) -> dict[str, int]:
    """Of each file the bytes to be read, about."""
    sizes: dict[str, int] = {}
    for source in sources:
        for pattern in source.files:
            with suppress(OSError):
                sizes |= {whole_name(path): size or 0 for path, size in matching(pattern).items()}
    return {path: size * (_PACKED if path.endswith((".gz", ".zst")) else 1) for path, size in sizes.items()}


def _pieces(own: Input, path: str, options: StreamOptions, smallest: int) -> list[Input]:
    """An input of one file in parts of about `smallest` bytes, if it is longer and may be cut."""
    size = own.weight
    if size < 1.5 * smallest or not can_be_cut(path, own.source, options):
        return [own]
    cuts = [0]
    with suppress(OSError), open_file(path) as file:
        for place in range(smallest, size - smallest // 2, smallest):
            cut = first_boundary(file, place, size)
            if cuts[-1] < cut < size:
                cuts.append(cut)
    spans = list(zip(cuts, [*cuts[1:], size], strict=True))
    return [replace(own, span=span, weight=span[1] - span[0]) for span in spans] if len(spans) > 1 else [own]


def can_be_cut(path: str, source: StreamSource, options: StreamOptions) -> bool:
    """Whether a file of `source` has a line for each statement, is not compressed, and shows where its events begin."""
    by = file_options(path, source, options).event_by
    return has_lines(path, format_of(path, options.format)) and by is not None and by.kind in ("graph", "subject")


def dealt(inputs: Sequence[Input], tasks: int) -> tuple[list[int], int]:
    """For each input the number of the task that reads it, and how many tasks there are: the largest inputs first, each
    to the task that has least. `tasks`: how many run at a time."""
    total = sum(each.weight for each in inputs)
    number = max(1, min(len(inputs), max(_ROUNDS * tasks, total // _MOST), _MOST_TASKS))
    load = [(0, task) for task in range(number)]
    heapify(load)
    chosen = [0] * len(inputs)
    for each in sorted(range(len(inputs)), key=lambda i: -inputs[i].weight):
        has, task = load[0]
        chosen[each] = task
        heapreplace(load, (has + inputs[each].weight + 1, task))
    return chosen, number


def out_of_turn(inputs: Sequence[Input], times: Mapping[int, tuple[int, int]], lateness: int) -> str:
    """The first file that goes back behind what is before it in its chain by more than the lateness; empty for none.

    `times`: of each input that has events, by its number, the first time and the last.
    """
    for _, chain in groupby(inputs, key=lambda each: each.chain):
        latest: int | None = None
        for each in chain:
            if each.number not in times:
                continue
            low, high = times[each.number]
            if latest is not None and low < latest - lateness:
                return next(iter(each.names.values()))
            latest = high if latest is None else max(latest, high)
    return ""
