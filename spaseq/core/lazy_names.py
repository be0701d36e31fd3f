"""Public names that are loaded when first asked for, so that importing a package costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def loader(
    package: str, names: Mapping[str, tuple[str | None, ...]], check: Callable[[str], None] = lambda name: None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, given by module the names it holds; None stands for the module itself,
    by the last part of its name. `check` is called with the name before a module is loaded."""
    places = {name or module.rpartition(".")[2]: (module, name) for module, own in names.items() for name in own}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = places[name]
        check(name)
        loaded = importlib.import_module(module)
        return loaded if own is None else getattr(loaded, own)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return get, listed
