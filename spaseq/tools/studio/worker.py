"""The process that checks or runs queries for the studio: a request a line on standard input, an answer a line back.

A request is an object with these members:

* `do` (`check`, `run`, `warm`), `language`, `text`, `source`;
* `files` ((role, name, path) each), and `shown` (the same with the names that people see);
* `groups`, `reading`, `valuations`;
* `folder` (its working directory), `limit`, `seconds`, `memory`.

Other output to standard output goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from typing import Any

from spaseq.core.engine import Settings
from spaseq.core.errors import SpaseqError
from spaseq.core.words import LANGUAGES
from spaseq.tools.studio.answers import check_form, error_form, run_form, with_files
from spaseq.tools.studio.language import Inputs, language
from spaseq.tools.studio.replies import VERSION, failure


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request. Never raises."""
    try:
        return _answer(request)
    except SpaseqError as error:
        return {"version": VERSION, "errors": [error_form(error, request.get("text", ""))]}
    except RecursionError:
        return failure("the query is nested too deeply", "write fewer steps or alternatives")
    except MemoryError:
        return failure("there is not enough memory", "narrow the window, or take fewer events")
    except Exception as error:  # a bug, which is said, and the page goes on
        problem = f"{type(error).__name__}: {error}"
        return failure(problem, "this is a bug, please report it with the query and the events", "InternalError")


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "warm":
        for name in LANGUAGES:
            language(name)
        with contextlib.suppress(SpaseqError):  # if there is no Graphviz, checks report it
            language("ceql").compiled("SELECT * WHERE A", "", Settings()).picture().svg()
        return {"version": VERSION, "errors": []}
    name, text, source = request["language"], request["text"], request["source"]
    settings = Settings(time_limit=request["seconds"], memory_limit=request["memory"])
    inputs = Inputs(groups=request["groups"], reading=request["reading"], valuations=bool(request["valuations"]))
    if request["do"] == "check":
        shown = with_files(inputs, request["shown"])
        return check_form(name, text, source, shown, settings, draws=request.get("draws", True))
    os.chdir(request["folder"])
    try:
        return run_form(name, text, source, with_files(inputs, request["files"]), settings, request["limit"])
    finally:
        os.chdir(tempfile.gettempdir())  # so that the folder can be removed


def _limit_memory(memory: int) -> None:
    """A wall behind `memory_limit`, which is looked at now and then only."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Answers until standard input ends. The argument: how much memory the process may take at most."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    _limit_memory(int(sys.argv[1]))
    for line in sys.stdin.buffer:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
