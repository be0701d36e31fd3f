"""What all tests share: the local Spark session, and examples drawn the same on every run."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a test, and a failure must come again: no deadlines, no fresh seeds.
settings.register_profile("project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """One local Spark session for the whole run; tests that need it are skipped, by name, where there is none."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'spaseq[spark]'")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if not java or not Path(java).exists():
        pytest.skip("no Java: install Java 17 or set JAVA_HOME")
    from spaseq.spark.session import local_session

    session = local_session()
    yield session
    session.stop()
