"""Run the benchmarks: all of them, or those named."""

from __future__ import annotations

import sys

from benchmarks import cel, rma, stock
from benchmarks.harness import measure, report

SUITES = {"stock": stock.workloads, "cel": cel.workloads, "rma": rma.workloads}


def main(names: list[str]) -> int:
    unknown = [n for n in names if n not in SUITES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    for name in names or SUITES:
        found = SUITES[name]()
        if found:
            print(f"-> {report(name, [measure(w) for w in found])}")
    return 0


sys.exit(main(sys.argv[1:]))
