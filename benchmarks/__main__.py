"""Run the benchmarks: all of them, or those named; `--repeats N` makes fewer runs of each.

A suite is a module of this package with a function `workloads()`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys

import benchmarks
from benchmarks.harness import measure, report


def suites() -> dict[str, object]:
    """The suites by name."""
    names = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name != "__main__"]
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    return {name: module.workloads for name, module in modules.items() if hasattr(module, "workloads")}


def main(arguments: list[str]) -> int:
    os.environ.setdefault("SPASEQ_INTERPRET", "0")  # so that the warm-up compiles; read when the engine is imported
    found = suites()
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="SUITE", help=f"of {', '.join(found)} (default: all)")
    parser.add_argument("--repeats", type=int, default=None, help="timed runs of each workload at most")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this")
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in found]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(found)}", file=sys.stderr)
        return 2
    for name in options.names or found:
        workloads = [w for w in found[name]() if options.only in w.name]  # type: ignore[operator]
        if workloads:
            print(f"-> {report(name, (measure(w, options.repeats) for w in workloads))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
