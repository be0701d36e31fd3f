"""Functions of the user, by the names that queries call them by: the one registry, of which each language has its own.

A language says what an entry is, a tuple that begins with the function. Queries that are pickled take their functions
with them, and snapshots name them (`spaseq.core.queries.compiled`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spaseq.core.errors import OptionError

Entry = tuple[Any, ...]
"""The function that was registered, then what its language keeps with it."""


class OwnFunctions:
    """The functions that users registered for a language.

    `enter` and `leave` are called with a name when a function comes, also in place of another one, and when it goes.
    """

    def __init__(
        self, enter: Callable[[str], None] = lambda name: None, leave: Callable[[str], None] = lambda name: None
    ) -> None:
        self._entries: dict[str, Entry] = {}
        self._enter = enter
        self._leave = leave

    def register(self, name: str, entry: Entry, *, replace: bool) -> None:
        """Adds a function. `OptionError` if there is another one of this name, unless `replace`."""
        if name in self._entries and not replace and self._entries[name] != entry:
            raise OptionError(f"{name} is registered already", "replace=True replaces it")
        self._entries[name] = entry
        self._enter(name)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def among(self, names: Iterable[str]) -> tuple[tuple[str, Entry], ...]:
        """Those of `names` that are registered, with their entries, each once: for `take` in another process."""
        return tuple((name, self._entries[name]) for name in dict.fromkeys(names) if name in self._entries)

    def identity(self, names: Iterable[str]) -> Mapping[str, str]:
        """The part of the identity of a snapshot that tells which of `names` are registered; none without them."""
        own = sorted(name for name, _ in self.among(names))
        return {"functions": " ".join(own)} if own else {}

    def take(self, entries: Iterable[tuple[str, Entry]]) -> None:
        """Registers the functions that a query of another process calls, in place of others of their names."""
        for name, entry in entries:
            if self._entries.get(name) != entry:
                self.register(name, entry, replace=True)

    def forget(self) -> None:
        """Takes all functions out again."""
        for name in self._entries:
            self._leave(name)
        self._entries.clear()
