"""Functions of the user on the command line: the Python files of `--functions` run before the query is compiled.

Nothing else names such a file: no query, no event and no setting.
"""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Sequence
from pathlib import Path

from spaseq.core.errors import OptionError, SpaseqError


def run_files(paths: Sequence[str]) -> None:
    """Runs Python files, which call `register_function`, in their order. `OptionError` for one that cannot be read, and
    for one that raises an exception, with its line."""
    for path in paths:
        if not Path(path).is_file():
            raise OptionError(
                f"--functions {path}: there is no such file", "a Python file that calls register_function"
            )
        try:
            runpy.run_path(path)
        except SpaseqError as error:
            raise OptionError(f"{path}{_line(error, path)}: {error}") from None
        except Exception as error:
            raise OptionError(f"{path}{_line(error, path)}: {type(error).__name__}: {error}") from None


def _line(error: Exception, path: str) -> str:
    """The line of the file at which it was left, behind a colon; empty if it is not known."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f":{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f":{lines[-1]}" if lines else ""
