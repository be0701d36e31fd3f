"""Kernels and their cache: an edit in any kernel file is seen, and nothing is compiled twice."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.core import jit
from tests.support.prose import statements

PACKAGE = Path(jit.__file__).parent.parent
DECORATORS = {"allocating", "hot", "inlined", "kernel"}

FIRST = """
from spaseq.core.jit import hot, kernel
FACTOR = 2
@kernel
def twice(x):
    return FACTOR * x
"""
SECOND = """
from spaseq.core.jit import kernel
from spaseq.core.tecs.kernels.first import FACTOR, twice
@kernel
def much(x):
    return twice(x) + FACTOR
"""
ASK = """
from numba.core import event
compiled = []
class Count(event.Listener):
    def on_start(self, e): pass
    def on_end(self, e): compiled.append(e)
event.register("numba:compile", Count())
from spaseq.core.engine.kernels.second import much
print(much(3), len(compiled))
"""


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path != Path(jit.__file__)]


def imported(path: Path) -> list[str]:
    """The modules, with the names taken of them, that a file imports."""
    found = []
    for node in statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def names(path: Path) -> str:
    return ".".join(("spaseq", *path.relative_to(PACKAGE).with_suffix("").parts))


def test_kernels_are_only_in_kernel_files() -> None:
    """So that the stamp covers them."""
    files = set(jit.kernel_files())
    assert files
    strays = [str(path) for path in modules() if path not in files for name in imported(path)
              if name.removeprefix("spaseq.core.jit.") in DECORATORS]  # fmt: skip
    assert not strays


def test_kernel_files_read_only_kernel_files() -> None:
    """What a kernel calls, and the constants that are compiled into it, are in files that the stamp covers."""
    files = jit.kernel_files()
    known = {"spaseq.core.jit", *(names(path) for path in files), *(names(path.parent) for path in files)}
    strays = {
        (names(path), name)
        for path in files
        for name in imported(path)
        if name.startswith("spaseq.") and name not in known and name.rpartition(".")[0] not in known
    }
    assert not strays


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with our `jit`, the modules it imports, and two kernel files in two rooms."""
    house = tmp_path / "spaseq"
    for folder in ("", "core", "core/tecs", "core/tecs/kernels", "core/engine", "core/engine/kernels"):
        (house / folder).mkdir()
        (house / folder / "__init__.py").touch()
    for name in ("core/compiling.py", "core/errors.py", "core/jit.py", "core/watch.py"):
        (house / name).write_text((PACKAGE / name).read_text("utf-8"), "utf-8")
    (house / "core/tecs/kernels/first.py").write_text(FIRST, "utf-8")
    (house / "core/engine/kernels/second.py").write_text(SECOND, "utf-8")
    return house


def run(package: Path, script: str = ASK, **variables: str) -> tuple[list[str], str]:
    """What a process says that has only this package: words on stdout, stderr."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    environment = {**inherited, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=package.parent, env=environment, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split(), result.stderr


@pytest.mark.slow
def test_a_second_process_compiles_nothing(package: Path) -> None:
    """As in the folder of a user, below."""
    assert run(package) == (["8", "2"], "")
    assert run(package) == (["8", "0"], "")


def test_a_literal_needs_no_code_of_its_own(package: Path) -> None:
    """By numba's private API: without it there is code for each literal."""
    second = package / "core/engine/kernels/second.py"
    second.write_text(SECOND.replace("twice(x) + FACTOR", "twice(x) + twice(1) + twice(FACTOR)"), "utf-8")
    assert run(package) == (["12", "2"], "")


@pytest.mark.slow
def test_an_edit_in_another_file_is_seen(package: Path) -> None:
    """As by whether code is at hand, below."""
    run(package)
    first = package / "core/tecs/kernels/first.py"
    first.write_text(FIRST.replace("FACTOR = 2", "FACTOR = 5"), "utf-8")
    assert run(package) == (["20", "2"], "")
    assert run(package) == (["20", "0"], "")


def test_what_is_not_in_the_key_is_in_the_stamp(package: Path) -> None:
    run(package)
    assert run(package, NUMBA_BOUNDSCHECK="1")[0] == ["8", "2"]


def test_code_that_numba_cannot_keep_in_a_folder_of_its_own_runs(package: Path, tmp_path: Path) -> None:
    """Found without optimisation: numba warned by attributes that its own locators have, and ours had not."""
    (found, compiled), said = run(package, NUMBA_OPT="0", NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    assert (found, compiled) == ("8", "2")
    assert not said or "Cannot cache compiled function" in said


def test_compiled_code_in_a_folder_of_its_own_is_taken_wherever_the_package_lies(package: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, or in a zip file; but not after an edit."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    assert run(package, **cache) == (["8", "2"], "")
    other = tmp_path / "other" / "spaseq"
    shutil.copytree(package, other)
    assert run(other, **cache) == (["8", "0"], "")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "spaseq")
    assert run(package, **cache, PYTHONPATH=archive) == (["8", "0"], "")
    (other / "core/tecs/kernels/first.py").write_text(FIRST.replace("FACTOR = 2", "FACTOR = 5"), "utf-8")
    assert run(other, **cache) == (["20", "2"], "")
    assert not list(tmp_path.glob("**/__pycache__/*.nbi"))


def test_code_is_at_hand_once_it_was_compiled(package: Path) -> None:
    """Kept by an earlier process or made by this one. By numba's private API: without it the answer would be no."""
    script = "from spaseq.core.engine.kernels.second import much\nprint(much.at_hand, much(3), much.at_hand)"
    assert run(package, script)[0] == ["False", "8", "True"]
    assert run(package, script)[0] == ["True", "8", "True"]
    first = package / "core/tecs/kernels/first.py"
    first.write_text(FIRST.replace("FACTOR = 2", "FACTOR = 5"), "utf-8")
    assert run(package, script)[0] == ["False", "20", "True"]
    assert run(package, script, NUMBA_DISABLE_JIT="1")[0] == ["True", "20", "True"]


def test_where_nothing_can_be_written_each_process_compiles_and_says_so(package: Path) -> None:
    """As root may write anything, files stand where folders are wanted."""
    for folder in ("core/tecs/kernels", "core/engine/kernels"):
        (package / folder / "__pycache__").touch()
    nowhere = package / "core/jit.py"
    home = {"XDG_CACHE_HOME": str(nowhere), "HOME": str(nowhere), "NUMBA_CACHE_DIR": str(nowhere)}
    words, errors = run(package, **home)
    assert words == ["8", "2"]
    assert errors.count("compiled kernels cannot be kept") == 1


def test_a_read_only_package_uses_the_users_folder(package: Path) -> None:
    for folder in ("core/tecs/kernels", "core/engine/kernels"):
        (package / folder / "__pycache__").touch()
    cache = {"XDG_CACHE_HOME": str(package.parent / "cache")}
    assert run(package, **cache) == (["8", "2"], "")
    assert run(package, **cache) == (["8", "0"], "")


@pytest.mark.parametrize(
    "change",
    [
        "del caching.CacheImpl._locator_classes",
        pytest.param("caching.CacheImpl._locator_classes = [object]", marks=pytest.mark.slow),
        pytest.param("del caching.CacheImpl", marks=pytest.mark.slow),
    ],
)
def test_where_numba_is_not_as_we_know_it_each_process_compiles(package: Path, change: str) -> None:
    """Rather than trust a cache that does not see edits of other files."""
    script = f"from numba.core import caching, dispatcher\n{change}\n" + ASK
    words, errors = run(package, script)
    assert words == ["8", "2"]
    assert errors.count("compiled kernels cannot be kept") == 1
    assert not list(package.rglob("*.nbi"))


RESOLVE = """
import gc
from numba.core.types.functions import BaseFunction
known, thresholds, resolved = getattr(BaseFunction, "get_call_type", None), gc.get_threshold(), []
def count(self, context, args, WORDS):
    resolved.append(args)
    return known(self, context, args, WORDS)
BaseFunction.get_call_type = count
from spaseq.core.jit import kernel
@kernel
def total(upto):
    found = 0
    for x in range(upto):
        found = found + x * x + x * found
    return found
@kernel
def wrong(upto):
    return upto + "text"
print(total(4), len(resolved))
try:
    wrong(1)
except Exception as error:
    print(type(error).__name__)
print(BaseFunction.get_call_type is count, gc.get_threshold() == thresholds)
"""


def test_a_call_is_resolved_once_and_numba_is_as_it_was(package: Path) -> None:
    """Also after a kernel that cannot be compiled; and compiled as ever, if numba is not as we know it."""
    (first, *counted), (second, *others) = (
        run(package, RESOLVE.replace("WORDS", word))[0] for word in ("kws", "other")
    )
    assert first == second == "37"
    assert int(counted[0]) < int(others[0])
    assert counted[1:] == others[1:] == ["TypingError", "True", "True"]


MACHINE = """
import numpy
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
add, made, keep = JITCPUCodegen._add_module, [], JITCodeLibrary.serialize_using_object_code
def count(codegen, module):
    made.append(module.name)
    add(codegen, module)
JITCPUCodegen._add_module = count
from spaseq.core.engine.kernels.second import much, twice
print(much(NUMBER), sorted(name for name in made if "much" in name or "twice" in name))
print(twice(4), JITCodeLibrary.serialize_using_object_code is keep)
"""


@pytest.mark.parametrize("kept", [False, True])
def test_what_only_kernels_call_has_no_machine_code(package: Path, kept: bool) -> None:
    """Compiled, or loaded for a kernel that is compiled; and Python may call the same kernel."""
    if kept:
        run(package, MACHINE.replace("NUMBER", "numpy.int32(3)"))
    assert run(package, MACHINE.replace("NUMBER", "3")) == (["8", "['much']", "8", "True"], "")
    assert run(package) == (["8", "0"], "")


def test_machine_code_is_made_of_all_if_numba_is_not_as_we_know_it(package: Path) -> None:
    change = "from numba.core.codegen import CPUCodeLibrary\ndel CPUCodeLibrary.serialize_using_bitcode\n"
    words, _ = run(package, change + MACHINE.replace("NUMBER", "3"))
    assert words == ["8", "['much',", "'twice", "inner']", "8", "True"]


SLOWLY = """
import sys, time
from numba.core.caching import IndexDataCacheFile
from spaseq.core.jit import kernel
save = IndexDataCacheFile._save_index
def save_slowly(file, overloads):
    time.sleep(1)
    save(file, overloads)
IndexDataCacheFile._save_index = save_slowly
from spaseq.core.tecs.kernels.first import twice
print(twice(float(sys.argv[1]) if "." in sys.argv[1] else int(sys.argv[1])))
"""


LATER = """
import time
from numba.core.compiler import CompilerBase
compile = CompilerBase._compile_core
def compile_later(self):
    time.sleep(1)
    return compile(self)
CompilerBase._compile_core = compile_later
"""


def run_both(package: Path, script: str, *arguments: str) -> list[list[str]]:
    """What two processes print that start at once and keep code in one folder."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(package.parent / "kept")}
    both = [
        subprocess.Popen([sys.executable, "-c", script, each], cwd=package.parent, env=environment,
                         stdout=subprocess.PIPE, text=True)
        for each in arguments
    ]  # fmt: skip
    said = [process.communicate(timeout=120)[0].split() for process in both]
    assert not list((package.parent / "kept").rglob("*.lock"))
    return said


def test_two_processes_that_keep_code_at_once_lose_none(package: Path) -> None:
    """One reads the index before the other one has written it; so without a lock they write under one name."""
    assert run_both(package, SLOWLY, "2", "2.5") == [["4"], ["5.0"]]
    assert len(list((package.parent / "kept").rglob("first.twice-*.nbc"))) == 2


def test_of_two_processes_one_compiles(package: Path) -> None:
    """The other one waits for it, and loads."""
    said = run_both(package, LATER + ASK, "", "")
    assert sorted(said) == [["8", "0"], ["8", "2"]]


def test_without_numbas_compiler_kernels_are_functions(package: Path) -> None:
    assert run(package, NUMBA_DISABLE_JIT="1") == (["8", "0"], "")


def _kernels(path: Path) -> list[ast.FunctionDef]:
    """The kernels of a file."""
    functions = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if DECORATORS & {d.id for d in f.decorator_list if isinstance(d, ast.Name)}]


def _explained(path: Path) -> str:
    """What the rooms of a kernel file and the file itself say."""
    tecs = PACKAGE / "core/tecs/kernels/__init__.py"
    rooms = [path, path.parent / "__init__.py", *([tecs] if path.is_relative_to(PACKAGE / "core/engine") else [])]
    return " ".join(ast.get_docstring(ast.parse(each.read_text("utf-8"))) or "" for each in rooms)


ROOMS = ("core/automata", "core/engine", "core/tecs")
STRUCTURE = [path for path in jit.kernel_files() if path.relative_to(PACKAGE).as_posix().startswith(ROOMS)]


@pytest.mark.parametrize("path", STRUCTURE, ids=names)
def test_every_argument_of_a_kernel_is_explained(path: Path) -> None:
    """In its docstring or, where it is the same everywhere, in that of its file or room."""
    shared = _explained(path)
    missing = {}
    for function in _kernels(path):
        said = shared + (ast.get_docstring(function) or "")
        unsaid = [a.arg for a in function.args.args if not re.search(rf"\b{a.arg}\b", said)]
        if unsaid:
            missing[function.name] = unsaid
    assert not missing
