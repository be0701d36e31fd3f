"""`demo`: the examples, each with the command that runs it. They are in the folder `examples` of the project, and in
installations under `share/spaseq/examples`."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.tools.command.colours import say, tell
from spaseq.tools.command.table import Table


@dataclass(frozen=True, slots=True)
class Demo:
    """An example: the command that runs it (`ceql`, `spaseq`), its folder, the words of `run`, and a summary. In the
    words of `run`, `{}` stands for the folder."""

    command: str
    folder: str
    words: str
    about: str


_TRAFFIC: Final = "--stream S1={}/182955.nq --stream S2={}/195578.nq --stream S3={}/195446.nq"
_STOCK: Final = "--stream S1={}/google.nt --event-by size:3 --time http://stockmarket.org/ns#at"
DEMOS: Final = {
    "stock": Demo("ceql", "stock", "{}/query.ceql --events {}/trades.csv --type-column event_type",
                  "a large purchase, then two sales within ten seconds, each dearer"),
    "smart-grid": Demo("spaseq", "smart-grid", "{}/query.rq --stream S1={}/power.nq --stream S2={}/weather.nq "
                       "--stream S3={}/storage.nq --kb http://smartgrid.org/db={}/kb.ttl",
                       "dear power, then sun for a while, then cheaper storage"),
    "card-fraud": Demo("spaseq", "card-fraud", "{}/query.rq --stream S1={}/withdrawals.nq "
                       "--kb http://creditcard.org/db={}/kb.ttl", "a large withdrawal, then small ones"),
    "head-and-shoulders": Demo("spaseq", "stock-patterns", f"{{}}/head-and-shoulders.rq {_STOCK}",
                               "a shape of a price: three peaks, the middle one the highest"),
    "v-shape": Demo("spaseq", "stock-patterns", f"{{}}/v.rq {_STOCK}", "a shape of a price: a fall, then a rise"),
    "w-shape": Demo("spaseq", "stock-patterns", f"{{}}/w.rq {_STOCK} --kb http://stockmarket.org/db={{}}/kb.ttl",
                    "a shape of a price: two falls with rises"),
    "traffic": Demo("spaseq", "traffic", f"{{}}/query.rq {_TRAFFIC}", "congestion, then at two more sensors"),
    "traffic-spread": Demo("spaseq", "traffic", f"{{}}/spread.rq {_TRAFFIC} --kb http://traffic.org/roads={{}}/roads.ttl",
                           "congestion along roads that the knowledge connects"),
    "traffic-networks": Demo(
        "spaseq", "traffic", f"{{}}/networks.rq {_TRAFFIC} --kb http://traffic.org/roads={{}}/roads.ttl "
        "--groups http://traffic.org/roads=http://traffic.org/ns#connectedTo", "congestion by networks of roads"),
    "vessels": Demo("spaseq", "vessels", "{}/query.rq --stream S1={}/boats.nq --kb http://harbour.org/db={}/kb.ttl",
                    "vessels that leave the harbour and lie still where fish are"),
}  # fmt: skip
"""By name, those of both commands."""


def add_demo(commands: Any, command: str, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    """Adds `demo` to a command; `parse` parses the words of a command line."""
    own = {name: demo for name, demo in DEMOS.items() if demo.command == command}
    parser = commands.add_parser(
        "demo",
        help="run an example",
        description="Run an example, or list them. The command that runs it is shown; more words of it may follow.",
    )
    parser.add_argument("--copy", metavar="FOLDER", help="make a folder with the files of all examples")
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"one of {', '.join(own)}")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="…", help=f"more words of {command} run")

    def run(options: argparse.Namespace) -> int:
        if options.copy is not None:
            made = _copy(Path(options.copy))
            say(f"{options.copy} has {', '.join(made)}\n")
            return 0
        if options.name is None:
            table = Table(sys.stdout, ["name", "what it shows"], rule=False)
            for name, demo in own.items():
                table.row([name, demo.about])
            table.flush()
            return 0
        if options.name not in own:
            others = ", ".join(own)
            raise OptionError(f"there is no example {options.name}", f"{command} demo has {others}")
        demo = own[options.name]
        folder = str(examples_folder() / demo.folder)
        words = ["run", *(word.replace("{}", folder) for word in shlex.split(demo.words)), *options.words]
        tell("$ " + shlex.join([command, *words]))
        asked = parse(words)
        return int(asked.command(asked))

    parser.set_defaults(command=run)


def _copy(into: Path) -> list[str]:
    """Make a folder with the files of all examples, and list its contents. Raises `OptionError` if there is one
    already, or it cannot be made."""
    folder, names = examples_folder(), list(dict.fromkeys((*(demo.folder for demo in DEMOS.values()), "notebooks")))
    try:
        into.mkdir(parents=True)
        for name in names:
            shutil.copytree(folder / name, into / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    except FileExistsError:
        raise OptionError(f"{into} is there already", "name a folder that is to be made") from None
    except (OSError, shutil.Error) as error:
        raise OptionError(f"cannot make {into}: {getattr(error, 'strerror', None) or error}") from None
    return names


def examples_folder() -> Path:
    """The folder of the examples. Raises `OptionError` if they are not installed."""
    for place in (Path(__file__).resolve().parents[3] / "examples", Path(sys.prefix) / "share" / "spaseq" / "examples"):
        if place.is_dir():
            return place
    raise OptionError("the examples are not installed", "they are in the folder examples of the project")
