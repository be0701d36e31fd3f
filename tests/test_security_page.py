"""docs/limits.md lists every place of the code that can run code of data or start a process, and no other.

What is looked for on the syntax trees: calls of the built-in functions that run a text, what unpickles, what imports a
module by a name that is made at run time, and what starts a process; also under another name (`from pickle import
loads as load`), passed on without being called, or as a method called `eval` or `exec`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "limits.md"

BUILT_IN = {"eval", "exec", "compile", "__import__", "breakpoint", "execfile"}
LIBRARIES = {
    "pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "pyspark.cloudpickle", "pyspark.serializers",
    "joblib", "copyreg", "subprocess", "runpy", "code", "codeop", "pty", "imp", "pkgutil", "yaml", "multiprocessing",
    "concurrent.futures.ProcessPoolExecutor", "importlib", "py4j.java_gateway", "webbrowser", "ctypes", "cffi",
}  # fmt: skip
FUNCTIONS = re.compile(
    r"os\.(?:system|popen|exec\w+|spawn\w+|posix_spawnp?|startfile|fork\w*)|asyncio\.create_subprocess_\w+"
    r"|numpy\.(?:load|fromregex)|pandas\.(?:read_pickle|eval)|types\.CodeType"
)
SAFE = re.compile(
    r"pickle\.(?:dumps|HIGHEST_PROTOCOL)|subprocess\.(?:PIPE|DEVNULL|STDOUT|TimeoutExpired|SubprocessError)"
    r"|importlib\.(?:resources|metadata)\b.*|importlib\.util\.find_spec|importlib\.machinery\b.*"
    r"|py4j\.java_gateway\.(?:GatewayParameters|JavaGateway)|concurrent\.futures"
)
"""Of the libraries, what runs nothing."""


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` of attributes of a name; empty for attributes of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (of := dotted_name(node.value)):
        return f"{of}.{node.attr}"
    return ""


def dangers(tree: ast.Module) -> Iterator[str]:
    """The names, in full, of what a module uses that can run code or start a process."""
    names: dict[str, str] = {}
    own: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    names[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            case ast.ImportFrom(module=str(module)):
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.FunctionDef() | ast.ClassDef():
                own.add(node.name)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield "allow_pickle"
        if isinstance(node, ast.Attribute) and node.attr in ("eval", "exec"):
            yield f".{node.attr}"
            continue
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in inner:
            continue
        dotted = dotted_name(node)
        if not dotted:
            continue
        first, dot, rest = dotted.partition(".")
        if first in BUILT_IN and first not in own and first not in names and not dot:
            yield first
        elif first in names:
            full = names[first] + dot + rest
            parts = full.split(".")
            if (
                LIBRARIES & {".".join(parts[:end]) for end in range(1, len(parts) + 1)} or FUNCTIONS.match(full)
            ) and not SAFE.fullmatch(full):
                yield full


def found() -> set[tuple[str, str]]:
    paths = [path for top in ("ceql", "spaseq") for path in (ROOT / top).rglob("*.py")]
    return {
        (str(path.relative_to(ROOT)), name) for path in paths for name in dangers(ast.parse(path.read_text("utf-8")))
    }


def test_the_page_lists_what_can_run_code_or_start_a_process() -> None:
    section = PAGE.read_text("utf-8").partition("## Security")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w/]+\.py)` \| ((?:`[^`]+`(?:, )?)+) \| \S", section, re.MULTILINE)
    listed = {(path, name) for path, cell in rows for name in re.findall(r"`([^`]+)`", cell)}
    assert found() == listed


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import pickle\npickle.loads(b'')", "pickle.loads"),
        ("from pickle import loads as read\nread(b'')", "pickle.loads"),
        ("import pickle as p\nrun(p.Unpickler)", "pickle.Unpickler"),
        ("def f():\n    import marshal\n    marshal.load(f)", "marshal.load"),
        ("eval('1')", "eval"),
        ("list(map(exec, texts))", "exec"),
        ("compile('1', '', 'eval')", "compile"),
        ("__import__(name)", "__import__"),
        ("frame.eval(text)", ".eval"),
        ("f(x).eval(text)", ".eval"),
        ("import importlib as i\ni.import_module(name)", "importlib.import_module"),
        ("from importlib import import_module\nimport_module(name)", "importlib.import_module"),
        ("import importlib.util\nimportlib.util.spec_from_file_location(a)", "importlib.util.spec_from_file_location"),
        ("import os\nos.system(text)", "os.system"),
        ("import os\nos.execvp(a, b)", "os.execvp"),
        ("from os import popen\npopen(text)", "os.popen"),
        ("import subprocess\nsubprocess.run(a)", "subprocess.run"),
        ("import numpy as np\nnp.load(path)", "numpy.load"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
        ("import pandas as pd\npd.read_pickle(path)", "pandas.read_pickle"),
        ("from pyspark import cloudpickle\ncloudpickle.loads(b)", "pyspark.cloudpickle.loads"),
        ("import yaml\nyaml.load(text)", "yaml.load"),
    ],
)
def test_it_would_be_found(text: str, name: str) -> None:
    assert name in set(dangers(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "import re\nre.compile('a')",
        "def compile(text): ...\ncompile('a')",
        "json.loads('1')",
        "import pickle\npickle.dumps(1)",
        "from os import path\npath.exists('a')",
    ],
)
def test_what_is_harmless_is_not(text: str) -> None:
    assert set(dangers(ast.parse(text))) == set()
