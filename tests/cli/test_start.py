"""What the commands set for their whole process, and the library does not."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from spaseq.tools import start


@pytest.mark.skipif(sys.platform != "linux", reason="malloc's settings are glibc's")
@pytest.mark.parametrize("name", [None, "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_what_is_freed_is_kept_unless_the_environment_says_how(
    name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in [key for key in os.environ if key.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(known)
    if name is not None:
        monkeypatch.setenv(name, "1")
    told: list[tuple[int, int]] = []

    class Library:
        def __init__(self, _: object) -> None:
            self.mallopt = lambda which, size: told.append((which, size))

    monkeypatch.setattr(ctypes, "CDLL", Library)
    start.keep_freed()
    assert told == ([] if name else [(-1, 128 << 20), (-3, 32 << 20)])  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD


def test_a_library_without_such_settings_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    start.keep_freed()


@pytest.mark.parametrize(
    "code, given, expected",
    [
        ("from spaseq.tools.start import command\ntry: command('no_such_module')\nexcept ImportError: pass", None, "1"),
        ("from spaseq.tools.start import command\ntry: command('no_such_module')\nexcept ImportError: pass", "2", "2"),
        ("import spaseq, ceql; spaseq.compile, ceql.compile", None, "None"),
    ],
    ids=["a command", "a command that is told", "the library"],
)
def test_threads_for_matrices_are_begun_by_nobody_but_who_asks(code: str, given: str | None, expected: str) -> None:
    told = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    told |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    script = f"import os\n{code}\nprint(os.environ.get('OPENBLAS_NUM_THREADS'))"
    found = subprocess.run([sys.executable, "-c", script], env=told, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == expected
