"""The process that runs inputs: it says on standard output what it is about to run and what came of it.

A line is JSON: `{"begin": …}` before an input and `{"end": …}` after it; the input itself lies in the file `current` by
then, for whoever finds this process dead. Signal USR1 has it write where it stands to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from spaseq.core import jit
from tests.fuzz import checks, kinds

SLOW = 10.0
"""Seconds of processor time that an input may take."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    faulthandler.enable()
    jit.BUDGET = 0.0  # which events are interpreted is not to depend on time
    faulthandler.register(signal.SIGUSR1)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print themselves
    place = Path(tempfile.mkdtemp(prefix="fuzz"))
    try:
        for line in sys.stdin:
            asked = json.loads(line)
            for seed in range(asked["first"], asked["end"]):
                _one(asked["kind"], seed, place, options.into, out)
            print(json.dumps({"done": True}), file=out)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _one(kind: str, seed: int, place: Path, into: Path, out: Any) -> None:
    given = kinds.drawn(kind, seed)
    (into / "current").write_text(given.to_json())
    print(json.dumps({"begin": [kind, seed]}), file=out)
    said, taken = _run(given, place)
    if taken > SLOW:  # kernels may have been compiled: once more
        said, taken = _run(given, place)
        if taken > SLOW:
            said = ["find", f"slow: {taken:.1f} s of processor time"]
    if said[0] == "find":
        path = into / f"{kind.replace(' ', '-')}-{seed}.json"
        path.write_text(json.dumps({"problem": said[1].splitlines(), **json.loads(given.to_json())}, indent=1))
    print(json.dumps({"end": [kind, seed], "said": said, "seconds": taken}), file=out)


def _run(given: kinds.Input, place: Path) -> tuple[list[str], float]:
    folder = place / "input"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.process_time()
    try:
        said = ["ok", checks.run(given, folder)]
    except checks.Wrong as wrong:
        said = ["find", str(wrong)]
    except BaseException as error:
        said = ["find", f"{type(error).__name__}: {error}"]
    return said, time.process_time() - began


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
