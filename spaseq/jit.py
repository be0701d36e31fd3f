"""Kernels: functions over arrays that numba compiles, and where what it compiled is kept.

A *kernel file* is `kernels.py`, or a file in a folder `kernels`, of one of `ROOMS`. Kernels call only kernels and read
only constants of kernel files, so a kernel file imports numpy, numba, this module and other kernel files.

*What is cached is never stale.* Compiled code holds the kernels it calls and the constants it reads, whichever file
they are in, but numba asks only whether the kernel's own file has changed. Here all kernel files, and what changes the
code made of them, are one stamp: an edit in any of them, or an upgrade, compiles all of them anew.

Where the cache is, numba decides: NUMBA_CACHE_DIR, else `__pycache__` beside the file, else the user's cache folder.
Where none can be written, or numba has no cache as we know it, each process compiles for itself, and says so once.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from numba import config, njit

__all__ = ["ROOMS", "allocating", "hot", "inlined", "kernel", "kernel_files", "stamp"]

_ROOT: Final = Path(__file__).parent
ROOMS: Final = ("automata", "engine", "gpm/columnar", "rdf/columns", "tecs")
"""The packages of this one that may have kernel files."""
_LOCATORS: Final = "_locator_classes"
"""numba's list of the classes that say where the compiled code of a function is kept."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates nothing; it returns a status and never raises (numba leaks what a raising call
    allocated).

    PERF: so it needs no reference counts, which numba otherwise keeps, with atomic operations, for every array argument
    of every call. S3' of benchmarks/stock.py: 253 ns per moving event with them, 52 without (`_nrt=False`), 26 with the
    kernels of the usual event inlined as well.
    """
    return _compiled(function, _nrt=False)


def hot(function: Callable[..., Any]) -> Any:
    """A small `kernel` that numba inlines where it is called.

    Inlining takes the compiler time that grows with the size of the caller times the number of calls: not for kernels
    that inline much themselves, and not for calls of more than thirty arguments.
    """
    return _compiled(function, _nrt=False, inline="always")


def inlined(function: Callable[..., Any]) -> Any:
    """A larger `kernel` that LLVM inlines where it is called: an array is seven words of a call.

    LLVM optimises what it inlines anew in each caller: a large one is to be called at one place. `rise` of
    benchmarks/rma.py takes three times as long with calls.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def allocating(function: Callable[..., Any]) -> Any:
    """Compile a function that makes arrays; floats are divided as numpy does, without an error."""
    return _compiled(function, error_model="numpy")


def kernel_files() -> list[Path]:
    """All kernel files, in an order that is always the same."""
    rooms = [_ROOT / room for room in ROOMS]
    found = [path for room in rooms for path in (room / "kernels.py", *(room / "kernels").rglob("*.py"))]
    return sorted(path for path in found if path.is_file())


@cache
def stamp() -> str:
    """What compiled kernels were made of: a hash of all kernel files, this one, and settings of numba's that its own
    cache does not tell apart."""
    found = hashlib.sha256(repr((config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT)).encode())
    for path in (Path(__file__), *kernel_files()):
        found.update(f"\0{path.relative_to(_ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    if _has_locator():
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # no folder that can be written
            pass
    _warn()
    return njit(**options)(function)


@cache
def _warn() -> None:
    message = "compiled kernels cannot be kept, so each process takes seconds to compile them"
    if _has_locator():
        message += ": neither the package nor the user's cache folder can be written; NUMBA_CACHE_DIR names another"
    warnings.warn(message, RuntimeWarning, stacklevel=5)


class _Locator:
    """numba's locators (private API of 0.61 to 0.68: `from_function`, `get_source_stamp`) with our stamp."""

    others: tuple[Any, ...] = ()

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The first locator that has a folder for the function's code; None if it is not ours, or there is none."""
        if not Path(py_file).is_relative_to(_ROOT):
            return None
        for other in cls.others:
            locator = other.from_function(py_func, py_file)
            if locator is not None:
                locator.get_source_stamp = stamp
                return locator
        return None


@cache
def _has_locator() -> bool:
    """Whether numba's cache takes our locator."""
    try:
        from numba.core.caching import CacheImpl

        locators = getattr(CacheImpl, _LOCATORS)
        if not all(hasattr(each, name) for each in locators for name in ("from_function", "get_source_stamp")):
            return False
        _Locator.others = tuple(locators)
        setattr(CacheImpl, _LOCATORS, [_Locator, *locators])
    except (ImportError, AttributeError, TypeError):
        return False
    return True
