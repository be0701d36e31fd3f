"""The state of a live evaluation, as bytes: a snapshot of its session, with the position of the source that it covers.

One value, so that the two cannot come apart.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.core.files.beside import write_beside
from spaseq.core.snapshot import expect, seal, unseal

Save = Callable[[bytes], Awaitable[None] | None]
"""A function that keeps a state; it is kept when this returns."""
State = bytes | str | os.PathLike[str] | None
Saving = Save | str | os.PathLike[str] | None
_IDENTITY: Final = {"language": "a live evaluation"}


def state_bytes(snapshot: bytes, position: Any) -> bytes:
    """A state. Raises `OptionError` for a position that is no plain value."""
    return seal(_IDENTITY, {"session": snapshot, "position": position})


def parts_of(state: bytes) -> tuple[bytes, Any]:
    """The snapshot of a session and the position that are in a state. `OptionError` for anything else."""
    return unseal(state, _IDENTITY, (), _parts)


def _parts(contents: dict[str, Any]) -> tuple[bytes, Any]:
    expect(type(contents["session"]) is bytes, "a snapshot of a session")
    return contents["session"], contents["position"]


def read_state(state: State) -> bytes | None:
    """The bytes of a state that was given, as such or as the path of a file; None if there is no such file yet."""
    if state is None or isinstance(state, bytes | bytearray | memoryview):
        return None if state is None else bytes(state)
    if not isinstance(state, str | os.PathLike):
        problem = f"a state cannot be a {type(state).__name__}"
        raise OptionError(problem, "give the bytes of alive.snapshot(), or the path of a file of them")
    try:
        with open(state, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OptionError(f"cannot read the state {os.fspath(state)}: {error.strerror}") from None


def saving(save: Saving) -> Save | None:
    """The function that keeps states. For a path, one that writes the file beside it and renames it."""
    if save is None or callable(save):
        return save
    if not isinstance(save, str | os.PathLike):
        problem = f"save cannot be a {type(save).__name__}"
        raise OptionError(problem, "give the path of a file, or a function of the bytes of a state")
    path = os.fspath(save)

    def write(state: bytes) -> None:
        try:
            with write_beside(path) as file:
                file.write(state)
        except OSError as error:
            raise OptionError(f"cannot write the state {path}: {error.strerror or error}") from None

    return write


async def keep(save: Save, state: bytes) -> None:
    """Call a function that keeps states, and wait for it if it is asynchronous."""
    done = save(state)
    if inspect.isawaitable(done):
        await done
