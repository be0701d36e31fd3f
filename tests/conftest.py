"""What all tests share: the local Spark session, examples drawn the same on every run, and which process runs what."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from spaseq.core import jit
from tests.support.sizes import some

# A busy machine must not fail a test, and a failure must come again: no deadlines, no fresh seeds.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    max_examples=some(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")

# Commands that tests start buffer their output as a user's do.
os.environ.pop("PYTHONUNBUFFERED", None)

# Which events are interpreted depends on time; what does must not depend on it, which has tests of its own.
jit.BUDGET = 0.0

FIRST = (
    "tests/core/automata/test_rma_docs.py",
    "tests/gpm/test_chunks.py",
    "spark",
    "tests/live/test_service.py",
    "tests/gpm/",
    "tests/rdf/",
)
"""Where several processes run the tests, in which order they take them; the others come after.

The first compiles the engine's kernels, for more than a minute on a fresh clone; that process goes on with Spark, which
takes longest. Those beside it need other kernels, so that none is compiled twice. Cases come last: they are short,
so that all processes end at the same time.
"""


def _stays_together(nodeid: str) -> str:
    """Names what one process runs from beginning to end: all of Spark, for one session; a case on all roads, as its
    answers by definition are worked out once; and else a file."""
    path, _, name = nodeid.partition("::")
    if path.startswith("tests/spark/") or "spark" in name.partition("[")[0]:
        return "spark"
    return name.partition("[")[2] if path == "tests/test_cases.py" and ": " in name else path


def _turn(nodeid: str) -> int:
    name = _stays_together(nodeid)
    last = len(FIRST) + nodeid.startswith("tests/test_cases.py")
    return next((turn for turn, first in enumerate(FIRST) if name.startswith(first)), last)


@pytest.fixture(autouse=True)
def no_own_functions() -> Iterator[None]:
    """No test sees the functions that another one registered."""
    yield
    for module in ("ceql.operators.own", "spaseq.gpm.functions.own"):
        if (own := sys.modules.get(module)) is not None:
            own.OWN.forget()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The order of `FIRST`, in a process of several."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _turn(item.nodeid))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time has this file; all at once without `fcntl`, as on Windows, or without locks."""
    try:
        import fcntl

        file = path.open("rb")
    except (ImportError, OSError):
        yield
        return
    with file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Of several processes one rewrites the assertions of a module and compiles what it imports; the others load that.

    PERF: on a fresh clone three processes took 45 s of a processor, as each did all of it, and take 33 (2026-11-28).
    """
    if not isinstance(collector, pytest.Module) or not hasattr(collector.config, "workerinput"):
        return (yield)
    with _alone(collector.path):
        return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collections of garbage leave out the tests themselves and what their modules hold, some millions of objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def small_collections() -> None:
    """Nor do they visit what earlier modules left, as kernels and caches. A collection of all that took 0.5 s."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`pytest -n 2`. xdist's own way to keep tests together (`--dist loadgroup`) does nothing with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _stays_together(nodeid)

    config.option.loadscopereorder = False  # as they are collected, not by their number
    return Scheduling(config, log)


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """One local Spark session for the whole run; tests that need it are skipped, by name, where there is none."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'spaseq[spark]'")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if not java or not Path(java).exists():
        pytest.skip("no Java: install Java 17 or set JAVA_HOME")
    from spaseq.spark.session.session import local_session

    jar = os.environ.get("GRAPHFRAMES_JAR")
    session = local_session(configuration={"spark.jars": jar} if jar else None)
    yield session
    session.stop()
