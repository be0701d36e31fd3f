"""Kernels: functions over arrays, interpreted while there is little to do, else compiled by numba.

A decorated function is a `Kernel`. It is `compiled`, `interpreted` by Python, or called, which means compiled. numba is
imported when the first kernel is compiled. Kernels call each other by name. The names are resolved when kernels are
linked: compiled kernels with those compiled for calls from kernels (`inner`), interpreted with interpreted.

*Small inputs are interpreted.* numba takes half a second to be imported, and seconds to compile for an empty cache.
Python takes 20 µs for an event of a plain query, 300 with a condition over several, 450 for a line of N-Quads. So
`attempt` and `attempt_events` interpret until a process has spent `BUDGET` seconds on it, or eight times as long for
kernels that have never been compiled before. From then on they compile. SPASEQ_INTERPRET gives the seconds; with 0 all
is compiled.

A *kernel file* is `kernels.py`, or a file in a folder `kernels`, of one of `ROOMS`. Kernels call only kernels and read
only constants of kernel files, so a kernel file imports numpy, numba, this module and other kernel files.

*The cache is never stale.* Compiled code holds the kernels it calls and the constants it reads, from any file, but
numba checks only the kernel's own file for changes. Here all kernel files, and the settings that change the code made
of them, are one stamp. So an edit in any of them, or an upgrade, compiles all of them anew.

numba decides the place of the cache: `__pycache__` beside the file, else the user's cache folder. NUMBA_CACHE_DIR goes
before these. The contents do not depend on the place of the package, installed, unpacked or in a zip file. So such a
folder can be made on one machine and sent to others with processors of its kind; `python -m spaseq.tools.kernels`
makes one. If no folder can be written, or numba has no cache of the known form, each process compiles for itself, and
reports so once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from time import perf_counter, thread_time
from types import FunctionType
from typing import Any, Final
from zipfile import ZipFile

import numpy as np

from spaseq.core.compiling import INNER, speed_up
from spaseq.core.errors import OptionError
from spaseq.core.watch import check

_ROOT: Final = Path(__file__).parent.parent
"""Of the package `spaseq`."""
ROOMS: Final = ("core/automata", "core/engine", "core/tecs", "gpm/columnar", "rdf/columns")
"""The packages of this one that may have kernel files."""
_OWN: Final = ("core/jit.py", "core/compiling.py")
"""The files of this package that decide what is made of kernels."""
_LOCATORS: Final = "_locator_classes"
"""numba's list of the classes that choose the place of a function's compiled code."""


def _seconds(text: str) -> float:
    """The value of SPASEQ_INTERPRET. Raises `OptionError` for a text that is no number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        hint = "0 compiles at once, 0.4 is the default"
        raise OptionError(f"SPASEQ_INTERPRET is {text!r}, which is no number of seconds", hint)
    return seconds


BUDGET: float = _seconds(os.environ.get("SPASEQ_INTERPRET", "0.4"))
"""Seconds of a processor that a process may spend on interpreting kernels whose compiled code is kept."""
_PATIENCE: Final = 8
"""The factor on the budget for a kernel that would have to be compiled, which takes up to 20 seconds."""
_STEP: Final = 16
"""Events that are interpreted between two looks at the clock."""
_ROWS: Final = 1 << 16
"""Rows that are interpreted without one."""
_SLICE: Final = 0.1
"""Seconds that one call of a compiled kernel may take, about."""
_FIRST: Final = 1 << 12
_LEAST: Final = 4
"""Events of the first call of a compiled kernel, and of any at the least."""


class Kernel:
    """A function over arrays, and the options that numba compiles it with."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.function = function
        self.options = options
        self.slice: int = _FIRST
        self._at_hand = False
        self.__doc__ = function.__doc__
        self.__name__: str = function.__name__

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """numba's dispatcher: it compiles, or loads, for the types of arguments that it is called with."""
        return _compile(self._link(), self.options)

    @cached_property
    def inner(self) -> Any:
        """numba's dispatcher for calls from compiled kernels. Python must not call it: it has no entry for Python.

        PERF: that entry unpacks every array of a call, and most kernels are never called by Python. Literals had code
        of their own, too (`_unite_integers`). Without both, the kernels of a query with an equality take 35 s of
        processor time, before 45; those of `b.price > a.price` 97, before 114 (2026-11-27, a very busy machine).
        """
        linked = self._link()
        linked.__qualname__ += INNER  # the name of a file of its own in the cache
        return _unite_integers(_compile(linked, {**self.options, "no_cpython_wrapper": True}))

    @property
    def at_hand(self) -> bool:
        """True if its compiled code is loaded, or need only be loaded. Imports numba.

        By private API of numba's (0.61 to 0.68: `_cache`, `_cache_file`, `_load_index`); without it, False.
        """
        if not self._at_hand:  # PERF: once it is, it stays: asking numba costs a call of a push a microsecond
            known = getattr(self.compiled, "signatures", None)
            self._at_hand = known is None or bool(known) or self._kept
        return self._at_hand

    @cached_property
    def _kept(self) -> bool:
        file = getattr(getattr(self.compiled, "_cache", None), "_cache_file", None)
        index = getattr(file, "_load_index", None)
        return index is not None and bool(index())

    @cached_property
    def interpreted(self) -> Any:
        """The function as Python runs it. Overflow of integers, which wraps around, is warned of."""
        return self._link("interpreted")

    def _link(self, way: str = "inner") -> FunctionType:
        """The function, the kernels it calls being `inner` or `interpreted`."""
        code, known = self.function.__code__, self.function.__globals__
        calls = {name: known[name] for name in code.co_names if isinstance(known.get(name), Kernel)}
        linked = FunctionType(code, {**known, **{name: getattr(each, way) for name, each in calls.items()}})
        linked.__module__, linked.__qualname__ = self.function.__module__, self.function.__qualname__
        linked.__doc__ = self.function.__doc__
        return linked


class Bound(Kernel):
    """A kernel for one caller, whose arguments have the same types at every call.

    PERF: numba looks up the type of every argument of a call, 25 ns for an array and a microsecond for a named tuple of
    arrays. Here it does so at the first call alone; later calls only unpack. 24 arrays: 0.72 us a call if they are
    arguments, 4.1 in four named tuples, 0.38 in four named tuples here (2026-11-25). An argument of another type at a
    later call is not noticed; it is read as if it had the type of the first call.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        super().__init__(kernel.function, **kernel.options)

    @property
    def at_hand(self) -> bool:
        """As of the kernel."""
        return self._kernel.at_hand

    @cached_property
    def interpreted(self) -> Any:
        """As of the kernel."""
        return self._kernel.interpreted

    @cached_property
    def compiled(self) -> Any:
        """The code for the types of the first call, from that call on."""
        return self._bind

    def _bind(self, *arguments: Any) -> Any:
        dispatcher = self._kernel.compiled
        if hasattr(dispatcher, "compile"):
            dispatcher = self._code_for(dispatcher, arguments)
        self.compiled = dispatcher
        return dispatcher(*arguments)

    def _code_for(self, dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
        """The code of a dispatcher for arguments of these types.

        PERF: numba takes 300 us for the types of 24 arrays, more than opening an evaluation of 50 events does else. So
        code is kept by a key that takes 10 us.
        """
        from numba import typeof

        key = dispatcher, _type_key(arguments)
        if key not in _BOUND:
            _BOUND[key] = dispatcher.compile(tuple([typeof(each) for each in arguments]))
        return _BOUND[key]


_BOUND: dict[Any, Any] = {}
"""Compiled code by its dispatcher and the types of arguments."""


def _type_key(argument: Any) -> Any:
    """A key that is equal only for arguments of which numba has one type."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    if isinstance(argument, tuple):
        return type(argument), tuple([_type_key(each) for each in argument])
    return type(argument)


class _Native(Kernel):
    """A kernel whose compiled form `make` gives, if it does not give None."""

    def __init__(self, function: Callable[..., Any], make: Callable[[], Any]) -> None:
        super().__init__(function, _nrt=False)
        self._make = make

    @cached_property
    def compiled(self) -> Any:
        made = self._make()
        return _compile(self._link(), self.options) if made is None else made

    @cached_property
    def inner(self) -> Any:
        """As compiled."""
        return self.compiled


_spent = 0.0


def interprets(kernel: Kernel) -> bool:
    """True if a kernel is still interpreted."""
    return _spent < BUDGET or (_spent < _PATIENCE * BUDGET and not kernel.at_hand)


def attempt(kernel: Kernel, *arguments: Any) -> Any:
    """Call a kernel whose cost is small: interpreted while there is time."""
    return _time(kernel, arguments) if interprets(kernel) else kernel.compiled(*arguments)


def attempt_rows(kernel: Kernel, rows: int, *arguments: Any) -> Any:
    """Call a kernel whose cost is linear in `rows`: interpreted while there is time, and if they are not many. A row
    takes some 3 µs; if it takes more, the caller raises `rows` in proportion."""
    few = rows <= _ROWS or (rows <= _PATIENCE * _ROWS and not kernel.at_hand)
    return attempt(kernel, *arguments) if few else kernel.compiled(*arguments)


def attempt_events(kernel: Kernel, state: np.ndarray, row: int, done: int, *arguments: Any) -> int:
    """Call a kernel whose first argument is events, of which it goes on with number state[row], and returns a status.

    A few events at a time are interpreted while there is time; the rest is compiled. `done` is the status for no more.
    A compiled call gets so many events that it takes a fraction of a second, so that Ctrl-C is heard and limits are
    looked at (`spaseq.core.watch`). PERF: a slice costs some 10 µs; most batches are one slice.
    """
    events, *others = arguments
    while interprets(kernel):
        stop = int(state[row]) + _STEP
        status = int(_time(kernel, (events[:stop], *others)))
        if status != done or stop >= len(events):
            return status
        check()
    kernel.compiled  # noqa: B018 - compiling is not measured as a slice
    while True:
        first = int(state[row])
        stop = first + kernel.slice
        began = perf_counter()
        status = int(kernel.compiled(events[:stop], *others))
        taken = perf_counter() - began
        if taken > _SLICE and kernel.slice > _LEAST:
            kernel.slice = max(_LEAST, int(kernel.slice * _SLICE / taken / 2))
        elif taken < _SLICE / 8 and status == done and stop < len(events):
            kernel.slice *= 4
        if status != done or stop >= len(events):
            return status
        check()


def _time(kernel: Kernel, arguments: tuple[Any, ...]) -> Any:
    global _spent
    began = thread_time()
    with np.errstate(all="ignore"):  # integers wrap around, and a division by zero is no error
        found = kernel.interpreted(*(np.int64(each) if type(each) is int else each for each in arguments))
    _spent += thread_time() - began
    return found


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function that allocates nothing; it returns a status and never raises (numba leaks what a raising call
    allocated).

    PERF: so it needs no reference counts, which numba otherwise keeps, with atomic operations, for every array argument
    of every call. S3' of benchmarks/stock.py: 253 ns per moving event with them, 52 without (`_nrt=False`), 26 with the
    kernels of the usual event inlined as well.
    """
    return Kernel(function, _nrt=False)


def hot(function: Callable[..., Any]) -> Kernel:
    """A small `kernel` that numba inlines at its calls.

    Inlining takes the compiler time that grows with the size of the caller times the number of calls. So it is not for
    kernels that inline much themselves, and not for calls of more than thirty arguments.
    """
    return Kernel(function, _nrt=False, inline="always")


def inline(function: Callable[..., Any]) -> Kernel:
    """A larger `kernel` that LLVM inlines at its calls: an array is seven words of a call.

    LLVM optimises inlined code anew in each caller: a large one is to be called at one place. `rise` of
    benchmarks/rma.py takes three times as long with calls.
    """
    return Kernel(function, _nrt=False, forceinline=True)


def native(make: Callable[[], Any]) -> Callable[[Callable[..., Any]], Kernel]:
    """A `kernel` for which compiled kernels call the result of `make`, an intrinsic of numba's, if that is not None."""
    return lambda function: _Native(function, make)


def allocating(function: Callable[..., Any]) -> Kernel:
    """Compile a function that makes arrays; floats are divided as numpy does, without an error."""
    return Kernel(function, error_model="numpy")


def kernel_files() -> list[Path]:
    """All kernel files, in an order that is always the same."""
    rooms = [_ROOT / room for room in ROOMS]
    found = [path for room in rooms for path in (room / "kernels.py", *(room / "kernels").rglob("*.py"))]
    return sorted(path for path in found if path.is_file())


@cache
def stamp() -> str:
    """The stamp of compiled kernels: a hash of all kernel files, of `_OWN`, and of settings of numba's that its own
    cache ignores."""
    from numba import config

    found = hashlib.sha256(repr((config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT)).encode())
    for name, content in sorted(_sources()):
        found.update(f"\0{name}\0".encode() + content)
    return found.hexdigest()


def _sources() -> Iterator[tuple[str, bytes]]:
    """Name in the package and content of all kernel files and `_OWN`, on the disk or in a zip file."""
    archive = getattr(globals()["__loader__"], "archive", None)
    if archive is None:
        for path in (*(_ROOT / name for name in _OWN), *kernel_files()):
            yield path.relative_to(_ROOT).as_posix(), path.read_bytes()
        return
    kernels = [f"{room}/kernels" for room in ROOMS]
    with ZipFile(archive) as file:
        for entry in file.namelist():
            name = entry.removeprefix(f"{_ROOT.name}/")
            own = any(name == f"{start}.py" or name.startswith(f"{start}/") for start in kernels)
            if name != entry and name.endswith(".py") and (own or name in _OWN):
                yield name, file.read(entry)


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """numba's dispatcher for a function.

    PERF: no kernel is called from C, so none gets numba's entry for that. 22 kernels of a plain query are compiled in
    6.4 s of processor time; with that entry it took 6.9 (2026-11-27).
    """
    from numba import njit

    if _has_locator():
        try:
            return speed_up(njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)(function))
        except RuntimeError:  # no folder that can be written
            pass
    _warn()
    return speed_up(njit(nogil=True, no_cfunc_wrapper=True, **options)(function))


def _unite_integers(dispatcher: Any) -> Any:
    """The dispatcher, which compiles for a literal, or an element of an int32 array, what it compiles for an int64.

    By private API of numba's (0.61 to 0.68: `get_call_template`); without it, each has code of its own.
    """
    template = getattr(dispatcher, "get_call_template", None)
    if template is not None:
        from numba.types import int32, int64, unliteral

        def unite(argument: Any) -> Any:
            found = unliteral(argument)
            return int64 if found == int32 else found

        dispatcher.get_call_template = lambda args, kws: template([unite(each) for each in args], kws)
    return dispatcher


@cache
def _warn() -> None:
    message = "compiled kernels cannot be kept, so each process takes seconds to compile them"
    if _has_locator():
        message += ": neither the package nor the user's cache folder can be written; NUMBA_CACHE_DIR names another"
    warnings.warn(message, RuntimeWarning, stacklevel=5)


class _Provided:
    """A locator of numba's for NUMBA_CACHE_DIR: below it a folder of one stamp, and there the package's own folders."""

    def __init__(self, function: Any, file: str) -> None:
        from numba import config

        place = Path(file).relative_to(_ROOT).parent
        self._folder = os.path.join(config.CACHE_DIR, f"spaseq-{stamp()[:16]}", place)
        self._py_file, self._lineno = file, function.__code__.co_firstlineno  # numba names both if it cannot keep code

    def ensure_cache_path(self) -> None:
        """Raises OSError if the folder cannot be made or written."""
        os.makedirs(self._folder, exist_ok=True)
        tempfile.TemporaryFile(dir=self._folder).close()

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> str:
        return stamp()

    def get_disambiguator(self) -> str:
        return str(self._lineno)


class _Locator:
    """numba's locators (private API of 0.61 to 0.68: `from_function`, `get_source_stamp`) with our stamp."""

    others: tuple[Any, ...] = ()

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The first locator that has a folder for the function's code; None if it is not ours, or there is none."""
        from numba import config

        if not Path(py_file).is_relative_to(_ROOT):
            return None
        if config.CACHE_DIR:
            provided = _Provided(py_func, py_file)
            with suppress(OSError):
                provided.ensure_cache_path()
                return provided
        for other in cls.others:
            locator = other.from_function(py_func, py_file)
            if locator is not None:
                locator.get_source_stamp = stamp
                return locator
        return None


@cache
def _has_locator() -> bool:
    """True if numba's cache accepts our locator."""
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
