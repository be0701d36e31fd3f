"""Make numba compile kernels faster, and each once. The code that it makes stays the same.

*Calls are resolved once.* To infer the types of a kernel, numba looks at each of its calls again until no type
changes. Each time it tries all that the called function may be, a dozen for `+`. Here a function called with the
same types, under the same options, is resolved once, until the outermost kernel is compiled. This is for numba's own
functions; a kernel has a dispatcher, which keeps its types.

*What only kernels call gets no machine code of its own.* LLVM puts it into each kernel that calls it, and makes machine
code of that. Python never calls it by itself (`Kernel.inner`).

*Garbage is collected less often.* numba makes some millions of objects that live until the kernel is compiled.

*One process compiles a kernel.* Processes that start together, as Spark's workers do, need the same kernels. The first
one holds a lock, a file beside the compiled code, until it is kept; the others wait, and load it. The lock is of one
kernel and the types of its arguments. A kernel's lock is taken before those of the kernels that it calls, and kernels
do not call each other in circles, so no two processes wait for each other.

*One process writes.* numba reads an index, adds a name to it, and writes it, then the code under this name. Two
processes that do so at once may give code for two lists of types one name; then a third loads the wrong one. A reader
between the two loads what had the name before. So a process locks the folder to write, and readers share a lock.

The system frees what an ended process held. Without `fcntl`, as on Windows, and in folders that allow no locks, each
process compiles for itself, and nothing is locked.

PERF: the kernels of `b.price > a.price` and an empty cache, processor time in one run. Without both 42 to 46 s, with
calls resolved once 28 to 33, with both 25 to 29 and 26 MB more of 300 (2026-11-27, a busy machine). Those of
`y.v > x.v WITHIN 20 EVENTS` take 33.4 s, and 39.9 if all of them get machine code; what is kept is 5.3 MB, not 6.2
(2026-11-28).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, Final

_YOUNG: Final = 50_000
"""Objects made between two collections of the young ones; 700 in Python 3.11."""
_RESOLVE: Final = "get_call_type"
"""numba's method that resolves a call."""
_held: Final[set[str]] = set()
"""The locks that this process holds. Read and written only under numba's lock for compilers."""
INNER: Final = " inner"
"""The end of the names of what only kernels call."""
_active = False
"""True while a kernel is compiled faster. Read and written only under numba's lock for compilers."""


def speed_up(dispatcher: Any) -> Any:
    """The dispatcher, which compiles faster from now on and keeps its code under locks, as far as numba is as it is
    known.

    By private API of numba's (0.61 to 0.68): `BaseFunction.get_call_type`, `_impl_keys` and the lock for compilers.
    Locks between processes go by `_cache`, `_index_key`, and `load`, `save` and `_load_index` of `_cache_file`.
    """
    compile_ = getattr(dispatcher, "compile", None)
    if compile_ is not None and _is_known():
        _lock_folder(dispatcher)

        def compile_faster(signature: Any) -> Any:
            with _faster(), _alone(dispatcher, signature):
                return compile_(signature)

        dispatcher.compile = compile_faster
    return dispatcher


def _is_known() -> bool:
    try:
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.targetconfig import ConfigStack, TargetConfig
        from numba.core.types.functions import BaseFunction
    except ImportError:
        return False
    parameters = getattr(getattr(getattr(BaseFunction, _RESOLVE, None), "__code__", None), "co_varnames", ())
    return (
        parameters[:4] == ("self", "context", "args", "kws")
        and "_impl_keys" in BaseFunction.__init__.__code__.co_names
        and hasattr(global_compiler_lock, "__enter__")
        and hasattr(ConfigStack, "top_or_none")
        and hasattr(TargetConfig, "summary")
    )


@contextmanager
def _faster() -> Iterator[None]:
    """Compiles within it are faster. numba's lock keeps other threads from compiling meanwhile."""
    global _active
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.types.functions import BaseFunction

    with global_compiler_lock:
        if _active:  # a kernel that a kernel calls
            yield
            return
        resolve, thresholds = getattr(BaseFunction, _RESOLVE), gc.get_threshold()
        setattr(BaseFunction, _RESOLVE, _resolve_once(resolve))
        gc.set_threshold(_YOUNG, *thresholds[1:])
        _active = True
        try:
            with _without_machine_code():
                yield
        finally:
            _active = False
            gc.set_threshold(*thresholds)
            setattr(BaseFunction, _RESOLVE, resolve)


def _is_tried() -> bool:
    """True if numba has a version that machine code has been left out of."""
    import numba

    return (0, 61) <= numba.version_info[:2] <= (0, 68)


@contextmanager
def _without_machine_code() -> Iterator[None]:
    """Within it no machine code is made of what only kernels call: kept and loaded is LLVM's code alone.

    By private API of numba's (0.61 to 0.68), all that is named here; without it, or with another version, machine code
    is made and not used.
    """
    if not _is_tried():
        yield
        return
    try:
        from numba.core.codegen import JITCodeLibrary, JITCPUCodegen

        finalize, keep = JITCodeLibrary._finalize_final_module, JITCodeLibrary.serialize_using_object_code
        keep_inner, set_environment = JITCodeLibrary.serialize_using_bitcode, JITCPUCodegen.set_env
        inner_steps = JITCodeLibrary._finalize_dynamic_globals, JITCodeLibrary._verify_declare_only_symbols
    except (ImportError, AttributeError):
        yield
        return

    def finalize_some(library: Any) -> None:
        if not library.name.endswith(INNER):
            finalize(library)
            return
        for step in inner_steps:
            step(library)
        library._finalized = True

    def keep_some(library: Any) -> Any:
        return (keep_inner if library.name.endswith(INNER) else keep)(library)

    def set_some(codegen: Any, name: str, environment: Any) -> None:
        if codegen._engine.is_symbol_defined(name):
            set_environment(codegen, name, environment)

    changed = (
        (JITCodeLibrary, "_finalize_final_module", finalize_some),
        (JITCodeLibrary, "serialize_using_object_code", keep_some),
        (JITCPUCodegen, "set_env", set_some),
    )
    own = [(each, name, vars(each).get(name)) for each, name, _ in changed]
    for each, name, function in changed:
        setattr(each, name, function)
    try:
        yield
    finally:
        for each, name, function in own:
            if function is None:
                delattr(each, name)  # it is inherited
            else:
                setattr(each, name, function)


@contextmanager
def _alone(dispatcher: Any, signature: Any) -> Iterator[None]:
    """No other process compiles the kernel for these types meanwhile, if its code is to be kept and is not yet."""
    path = _lock_of(dispatcher, signature)
    if path is None or path in _held:
        yield
        return
    _held.add(path)
    try:
        with _lock(path, os.O_RDWR | os.O_CREAT):
            yield
            with suppress(OSError):
                os.unlink(path)  # a process that waits for it finds the code; a later one makes another
    finally:
        _held.discard(path)


def _lock_of(dispatcher: Any, signature: Any) -> str | None:
    """The path of the lock for compiling a kernel; None if nothing is to be compiled, or kept."""
    try:
        cache = dispatcher._cache
        if cache._index_key(signature, dispatcher.targetctx.codegen()) in cache._cache_file._load_index():
            return None
        kernel = dispatcher.py_func
        name = f"{kernel.__module__} {kernel.__qualname__} {signature}"
        return os.path.join(cache.cache_path, f"{sha256(name.encode()).hexdigest()[:16]}.lock")
    except (AttributeError, TypeError, OSError):
        return None


def _lock_folder(dispatcher: Any) -> None:
    """From now on the dispatcher writes compiled code alone, and reads it while no process writes."""
    file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    folder, load, save = (getattr(file, name, None) for name in ("_cache_path", "load", "save"))
    if folder is None or load is None or save is None:
        return

    def load_alone(key: Any) -> Any:
        with _lock(folder, os.O_RDONLY, share=True):
            return load(key)

    def save_alone(key: Any, code: Any) -> None:
        with _lock(folder, os.O_RDONLY):
            save(key, code)

    file.load, file.save = load_alone, save_alone


@contextmanager
def _lock(path: str, flags: int, *, share: bool = False) -> Iterator[None]:
    """A lock of a file or folder, which other processes wait for; none if there can be none."""
    try:
        import fcntl

        descriptor = os.open(path, flags, 0o666)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH if share else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _resolve_once(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """numba's `get_call_type`, which resolves a function once for the same types of arguments and the same options.

    A failure is not kept, as it may be none later. The keys are of objects that are held as long as they are keys.
    """
    from numba.core.targetconfig import ConfigStack

    options: dict[int, tuple[Any, str]] = {}
    resolved: dict[Any, tuple[Any, Any, Any, Any]] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return resolve(self, context, args, kws)
        flags = ConfigStack.top_or_none()
        if id(flags) not in options:
            options[id(flags)] = flags, "" if flags is None else flags.summary()
        key = id(self), id(context), options[id(flags)][1], tuple(args)
        if key in resolved:
            *_, signature, implementation = resolved[key]
            self._impl_keys[signature.args] = implementation
            return signature
        signature = resolve(self, context, args, kws)
        if signature is not None:
            resolved[key] = self, context, signature, self._impl_keys[signature.args]
        return signature

    return get_call_type
