"""The house stays in order: no circles, no crowded folders, no endless files, no wide signatures, no reaching inside.

Everything is counted on the syntax trees, so an import inside a function or under TYPE_CHECKING counts too. Limits are
what holds today; whoever gets below one lowers it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.support.prose import statements

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("ceql", "spaseq")
FLOORS = (*SHIPPED, "spaseq.core", "spaseq.tools")
"""Packages of packages, where modules stand beside these."""

CIRCLES = 0
"""Groups of modules that import each other."""
ROOM_CIRCLES = 0
"""Groups of folders that import each other."""
FULLEST = 20
"""Modules of a folder."""
LONGEST = 650
"""Lines of a file."""
WIDEST = 11
"""Parameters of a function, where numba is not at work."""
WIDEST_KERNEL = 18
"""Parameters of a function of a module with kernels; arrays that travel together are a named tuple."""
PRIVATE = 20
"""Uses of a private name outside the module that it belongs to; what is left are names of rdflib, pyspark and os."""

_DECORATORS = {"allocating", "hot", "inlined", "kernel"}
"""Of kernels."""
_NAMED_TUPLE = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
"""Public by the standard library's own account."""


@cache
def _modules() -> Mapping[str, tuple[Path, ast.Module]]:
    """Name -> (path, tree) of all modules we ship."""
    found = {}
    for path in sorted(path for top in SHIPPED for path in (ROOT / top).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path, ast.parse(path.read_text("utf-8"))
    return found


@cache
def _nodes(module: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_modules()[module][1]))


def _is_face(module: str) -> bool:
    """Whether it stands above the rooms of its package: what a package shows, and what `python -m` runs."""
    return _modules()[module][0].name in ("__init__.py", "__main__.py")


def _imports(module: str) -> Iterator[tuple[str, str]]:
    """(module of ours, name or "") of everything that `module` imports."""
    for node in statements(_modules()[module][1]):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in _modules())
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}:{node.lineno}: imports are written in full"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in _modules():
                    yield whole, ""
                elif node.module is not None and node.module in _modules():
                    yield node.module, alias.name


def _circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        path.append(node)
        for other in sorted(edges[node]):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in path:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = path.index(node)
            if len(path) - at > 1:
                found.append(sorted(path[at:]))
            del path[at:]

    for node in edges:
        if node not in number:
            visit(node)
    return found


def _room(module: str) -> str:
    """The folder of a module; a face is a room of its own, and so is a module that stands beside the packages."""
    folder = module.rpartition(".")[0]
    return module if _is_face(module) or folder in FLOORS else folder + "/"


def test_modules_import_in_one_direction() -> None:
    edges = {module: {target for target, _ in _imports(module)} - {module} for module in _modules()}
    found = _circles(edges)
    listed = "\n".join("  " + " - ".join(circle) for circle in found)
    assert len(found) <= CIRCLES, (
        f"these modules import each other; move what both need into a module below them, or hand it in:\n{listed}"
    )


def test_rooms_import_in_one_direction() -> None:
    edges: dict[str, set[str]] = {_room(module): set() for module in _modules()}
    for module in _modules():
        edges[_room(module)] |= {_room(target) for target, _ in _imports(module)} - {_room(module)}
    found = _circles(edges)
    listed = "\n".join("  " + " - ".join(circle) for circle in found)
    assert len(found) <= ROOM_CIRCLES, (
        f"these folders import each other; put the module where the order of docs/architecture.md has it:\n{listed}"
    )


def test_no_folder_is_crowded() -> None:
    sizes = Counter(path.parent.relative_to(ROOT) for path, _ in _modules().values())
    crowded = {str(folder): size for folder, size in sizes.items() if size > FULLEST}
    assert not crowded, f"more than {FULLEST} files: make rooms, each with an __init__ that is its overview: {crowded}"


def test_every_module_says_what_it_is() -> None:
    missing = [name for name, (_, tree) in _modules().items() if not ast.get_docstring(tree)]
    assert not missing, f"no docstring: {missing}"


def _has_kernels(module: str) -> bool:
    return any(of == "spaseq.core.jit" and name in _DECORATORS for of, name in _imports(module))


def test_every_room_has_an_overview() -> None:
    """The docstring of a package names its modules and the packages in it; that of a whole language, its rooms."""
    missing = []
    for name in _modules():
        package = name.rpartition(".")[0]
        if package and package not in SHIPPED and not name.endswith("__main__"):
            overview = ast.get_docstring(_modules()[package][1]) or ""
            last = name.rpartition(".")[2]
            if not any(f"`{told}`" in overview for told in (last, f"{last}/", name)):
                missing.append(name)
    assert not missing, f"not in the overview, the docstring of the __init__ beside it: {missing}"


def test_no_file_is_endless() -> None:
    endless = {}
    for module, (path, _) in _modules().items():
        length = len(path.read_text("utf-8").splitlines())
        if length > (LONGEST):
            endless[module] = length
    assert not endless, f"a file of more than {LONGEST} lines is about two things: split it between them: {endless}"


def test_no_signature_is_wide() -> None:
    wide = []
    for module in _modules():
        functions = [node for node in _nodes(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        limit = WIDEST_KERNEL if _has_kernels(module) else WIDEST
        for function in functions:
            given = function.args
            count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
            if count > limit:
                wide.append(f"{module}:{function.lineno} {function.name}: {count}, {limit} at most")
    assert not wide, f"too many parameters; those that travel together are a frozen value: {wide}"


def _own_names(module: str) -> set[str]:
    """The names that a module defines anywhere: functions, classes, variables, attributes, slots."""
    own = set()
    for node in _nodes(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                own.add(name)
            case ast.Constant(value=str(name)) if name.startswith("_") and name.isidentifier():
                own.add(name)  # in __slots__, or to setattr
    return own


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in _NAMED_TUPLE


def _reaching(module: str) -> Iterator[str]:
    """Where a module uses a private name that is not its own, one text each."""
    own = _own_names(module)
    for node in _nodes(module):
        if not isinstance(node, ast.Attribute) or not _is_private(node.attr) or node.attr in own:
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            yield f"{module}:{node.lineno} {ast.unparse(node)}"
    yield from (f"{module}: imports {target}.{name}" for target, name in _imports(module) if _is_private(name))


def test_nobody_reaches_inside() -> None:
    found = [use for module in _modules() for use in _reaching(module)]
    assert len(found) <= PRIVATE, (
        f"{len(found)} uses of private names outside their module, {PRIVATE} are known; make the name public, with a "
        "docstring, or ask its owner to do the work:\n" + "\n".join(found)
    )
