"""This package, sent to the workers of a running session, whose Python has what it needs but not the package itself."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pyspark.sql import SparkSession

from spaseq.spark.session.connecting import is_connect
from spaseq.spark.session.versions import pyspark_version

_PACKAGES: Final = ("ceql", "spaseq")
_KINDS: Final = (".py", ".lark", ".typed")


def ship(spark: SparkSession) -> str:
    """Send `spaseq` and `ceql`, as they are here, to all workers of a session; the path of the zip file that was sent.

    For clusters on which they are not installed, also through Spark Connect. The workers' Python must have the packages
    that `pip install 'spaseq[spark]'` brings. What is sent goes before what is installed there; sending it twice is
    the same as once. About 1 MB.
    """
    path = _zip()
    if pyspark_version() < (4, 0) and not is_connect(spark):
        spark.sparkContext.addPyFile(path)  # there addArtifacts is for Spark Connect alone
    else:
        spark.addArtifacts(path, pyfile=True)
    return path


@cache
def _zip() -> str:
    """A zip file of the packages, kept until this process ends. Its name says what is in it."""
    found = sorted(entry for name in _PACKAGES for entry in _files(files(name), name))
    digest = blake2b(digest_size=6)
    for name, content in found:
        digest.update(f"\0{name}\0".encode() + content)
    folder = tempfile.mkdtemp(prefix="spaseq-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, f"spaseq-{digest.hexdigest()}.zip")
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        for name, content in found:
            file.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return path


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of what Python and we read of a package."""
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files(each, f"{name}/{each.name}")
        elif each.name.endswith(_KINDS):
            yield f"{name}/{each.name}", each.read_bytes()
