"""Imports point one way, heavy libraries stay in their packages, and packages say what is public.

Read off the syntax trees, so an import inside a function or under TYPE_CHECKING counts too: lazy is not an excuse.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.prose import statements

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("core", "tools")
"""Packages of `spaseq` that are known by what is in them."""

# Who may import whom inside spaseq; a package may always import itself. `""` is spaseq/__init__.py, the facade.
_BASE = {
    "after",
    "comparisons",
    "errors",
    "events",
    "files",
    "held",
    "integers",
    "slips",
    "snapshot",
    "watch",
}
_COMPILE = _BASE | {"pattern", "trees"}
_ENGINE = _COMPILE | {"automata", "tecs", "drawing", "jit", "lazy_names"}
_LANGUAGE = _ENGINE | {"engine"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "snapshot": {"errors"},
    "after": set(),
    "slips": set(),
    "kinds": {"slips"},
    "files": {"errors"},
    "collected": {"drawing", "errors", "events", "measure"},
    "events": {"errors", "files", "held", "integers", "kinds", "measure", "slips", "snapshot", "watch"},
    "held": set(),
    "integers": set(),
    "comparisons": set(),
    "trees": set(),
    "pattern": {"errors", "events", "trees"},
    "drawing": {"errors", "events", "files", "measure", "watch"},
    "measure": set(),
    "highlight": {"words"},
    "words": set(),
    "lsp": {"errors", "studio", "version", "words"},
    "studio": {"command", "drawing", "engine", "errors", "events", "measure", "watch", "words"},
    "steps": {"drawing", "measure"},
    "watch": {"errors"},
    "start": set(),
    "compiling": set(),
    "jit": {"compiling", "errors", "watch"},
    "kernels": set(),
    "automata": _COMPILE | {"drawing", "jit", "lazy_names"},
    "tecs": _COMPILE | {"jit"},
    "engine": _ENGINE,
    "containment": _COMPILE | {"automata", "engine"},
    "forecast": _COMPILE | {"automata"},
    "rdf": _LANGUAGE | {"measure"},
    "gpm": _LANGUAGE | {"rdf", "text", "measure", "queries"},
    "text": {"errors"},
    "live": _LANGUAGE | {"rdf", "measure", "lazy_names"},
    "language": _LANGUAGE
    | {
        "live",
        "rdf",
        "gpm",
        "text",
        "steps",
        "measure",
        "queries",
        "collected",
        "protocols",
        "containment",
    },
    "spark": _LANGUAGE | {"rdf", "gpm", "language", "words", "protocols", "queries"},
    "command": {
        "containment",
        "errors",
        "engine",
        "events",
        "files",
        "measure",
        "slips",
        "start",
        "version",
        "watch",
        "words",
    },
    "version": set(),
    "lazy_names": set(),
    "queries": {"automata", "engine", "errors", "pattern"},
    "protocols": {"automata", "drawing", "engine", "held", "measure", "pattern", "queries", "steps"},
    "cli": _LANGUAGE | {"rdf", "gpm", "language", "spark", "command", "studio", "lsp", ""},
    "": _LANGUAGE | {"rdf", "gpm", "language", "spark", "version", "lazy_names", "containment"},
    "__main__": {"start"},
    "core": set(),
    "tools": set(),
}
CEQL_MAY_USE = {
    "errors", "snapshot", "events", "pattern", "engine", "automata", "drawing", "forecast", "command", "text",
    "version", "lazy_names", "watch", "start", "steps", "measure", "studio", "held", "integers",
    "after", "comparisons", "trees", "queries", "protocols", "slips", "kinds", "files", "collected",
    "live", "containment",
}  # fmt: skip

# Where a library may be imported at all: packages, or packages inside one.
_KERNELS = {"compiling", "jit", "rdf.columns"}
CONFINED: dict[str, set[str]] = {
    "numba": _KERNELS,
    "llvmlite": _KERNELS,
    "rdflib": {"rdf", "gpm"},
    "owlrl": {"rdf"},
    "matplotlib": set(),
    "pygments": {"highlight"},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "graphframes": {"spark"},
    "lsprotocol": {"lsp"},
    "pygls": {"lsp"},
    "starlette": {"studio"},
    "uvicorn": {"studio"},
    "aiokafka": {"live"},
    "aiomqtt": {"live"},
    "httpx": {"live"},
    "redis": {"live"},
    "websockets": {"live"},
}


def imported_modules(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything `source`, the text of `module`, imports; `from a import b` gives `a.b`."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The dotted name that `node` imports from, relative dots resolved against `module`."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    keep = len(parts) - node.level + is_package
    return ".".join(parts[:keep] + ([node.module] if node.module else []))


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What `module` imports and must not, one sentence each."""
    found = []
    for line, name in imported_modules(source, module, is_package):
        problem = _problem(module, name)
        if problem:
            found.append(f"{module}:{line} {problem}")
    return found


def _problem(module: str, name: str) -> str:
    top, house = name.split(".")[0], module.split(".")[0]
    package = _package(module)
    if top in CONFINED:
        inside = house == "spaseq" and bool(CONFINED[top] & {".".join(_below_floor(module)[0][:n]) for n in (1, 2)})
        return "" if inside else f"imports {top}, which belongs in {', '.join(sorted(CONFINED[top]))}"
    if top == "ceql" and house == "spaseq":
        return "imports ceql: nothing in spaseq may"
    if top != "spaseq":
        return ""
    target = _package(name)
    allowed = CEQL_MAY_USE if house == "ceql" else ALLOWED.get(package)
    if allowed is None:
        return f"is in a package the architecture does not know: {package}"
    if target in allowed or (house == "spaseq" and target == package):
        return ""
    floor = ".".join(_below_floor(name)[1].relative_to(ROOT).parts)
    return f"imports {floor}.{target}".rstrip(".") + f"; {house} {package}".rstrip() + f" may use {sorted(allowed)}"


def _package(name: str) -> str:
    """`engine` of `spaseq.core.engine.runs.evaluator`; empty for the facade and for names that it defines itself."""
    parts, folder = _below_floor(name)
    known = parts and ((folder / parts[0]).is_dir() or (folder / f"{parts[0]}.py").is_file())
    return parts[0] if known else ""


def _below_floor(name: str) -> tuple[list[str], Path]:
    """The parts of a dotted name behind `spaseq`, `spaseq.core` or `spaseq.tools`, and that package's folder."""
    _, *parts = name.split(".")
    if len(parts) > 1 and parts[0] in FLOORS:
        return parts[1:], ROOT / "spaseq" / parts[0]
    return parts, ROOT / "spaseq"


def _sources() -> list[tuple[Path, str, bool]]:
    """(path, module name, is it an `__init__`) of all we ship."""
    found = []
    for path in sorted([*(ROOT / "spaseq").rglob("*.py"), *(ROOT / "ceql").rglob("*.py")]):
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        found.append((path, ".".join(parts[:-1] if is_package else parts), is_package))
    return found


def test_imports_point_one_way() -> None:
    found = [
        problem
        for path, module, is_package in _sources()
        for problem in violations(path.read_text("utf-8"), module, is_package)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source", "part"),
    [
        ("spaseq.core.engine.run", "import spaseq.language.syntax.parse", "imports spaseq.language"),
        ("spaseq.core.engine.run", "from spaseq import language", "imports spaseq.language"),
        ("spaseq.core.engine.run", "def f():\n    from ...gpm import plan", "run:2 imports spaseq.gpm"),
        ("spaseq.core.tecs.arena", "from spaseq.core.automata import x", "imports spaseq.core.automata"),
        ("spaseq.rdf.events", "from spaseq import compile", "imports spaseq;"),
        ("spaseq.core.events.time", "import ceql", "imports ceql"),
        ("spaseq.language.lowering.lower", "import numba", "imports numba"),
        ("spaseq.gpm.plan", "from numba import njit", "imports numba"),
        ("spaseq.rdf.statements", "import numba", "imports numba"),
        ("spaseq.cli.main", "import rdflib.plugins.sparql", "imports rdflib"),
        ("spaseq.rdf.read", "import pyspark.sql", "imports pyspark"),
        ("ceql.lowering.lower", "from spaseq.rdf import terms", "imports spaseq.rdf"),
        ("ceql.spark", "import pyspark", "imports pyspark"),
    ],
)
def test_the_checker_sees_a_violation(module: str, source: str, part: str) -> None:
    (problem,) = violations(source, module)
    assert part in problem


@pytest.mark.parametrize(
    ("module", "source", "is_package"),
    [
        ("spaseq.core.engine", "from .evaluator import Evaluator\nfrom ..tecs import arena", True),
        (
            "spaseq.core.engine.run",
            "from . import windows\nfrom spaseq.core.errors import Span\nimport spaseq.core.jit",
            False,
        ),
        ("spaseq.spark.run", "import pyspark\nfrom spaseq import rdf", False),
        ("spaseq.rdf.columns.kernels", "from numba import njit", False),
        ("ceql.lowering.lower", "from spaseq.core.pattern import Atom\nfrom .ast import Query\nimport numpy", False),
    ],
)
def test_the_checker_lets_pass_what_is_right(module: str, source: str, is_package: bool) -> None:
    assert violations(source, module, is_package) == []


def test_every_package_with_names_says_which_are_public() -> None:
    """One that only has modules names them in its docstring (`test_house`)."""
    missing = [module for path, module, is_package in _sources() if is_package and not _has_all(path)]
    assert not missing, f"no __all__ in {missing}"


def _has_all(path: Path) -> bool:
    """True if it has `__all__`, or nothing but a docstring."""
    _, *rest = ast.parse(path.read_text("utf-8")).body
    targets = [
        target
        for node in rest
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
    ]
    return not rest or any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


@pytest.mark.parametrize("package", ["spaseq", "ceql"])
def test_importing_is_light(package: str) -> None:
    script = (
        f"import sys, {package}\n"
        "heavy = {'pyspark', 'numba', 'matplotlib', 'pandas', 'owlrl'}\n"
        "heavy = sorted({name.split('.')[0] for name in sys.modules} & heavy)\n"
        "print(','.join(heavy))"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == ""


def test_both_languages_run_from_a_zip_file(tmp_path: Path) -> None:
    """As `spark-submit --py-files` brings them to workers: grammars and the stamp of the kernels are read from it."""
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as packages:
        for path in sorted(path for top in ("spaseq", "ceql") for path in (ROOT / top).rglob("*")):
            if path.suffix in (".py", ".lark"):
                packages.write(path, path.relative_to(ROOT))
    script = (
        "import ceql, spaseq\nfrom spaseq.core import jit\n"
        "gpm = 'DEFINE GPM A ON S { ?a <http://example.org/p> ?b }'\n"
        "text = 'SELECT * FROM STREAM S <http://example.org/s> WHERE { SEQ (A) ' + gpm + ' }'\n"
        "found = ceql.compile('SELECT * WHERE A ; B').run([{'type': 'A'}, {'type': 'B'}]).count()\n"
        "print('packages.zip' in spaseq.__file__, spaseq.compile(text).text == text, found, len(jit.stamp()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "packages.zip"), "SPASEQ_INTERPRET": "1000"}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert result.stdout == "True True 1 64\n", result.stderr
