"""A progress bar of Spark's tasks on stderr, for people at a terminal.

The total is the tasks of the stages seen so far: Spark plans a stage only when the ones before it are done.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, TextIO

from pyspark.sql import SparkSession
from tqdm import tqdm

from spaseq.spark.session.connecting import is_connect

_EVERY = 0.2  # seconds between two looks
_FORMAT = "{desc} {percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt} tasks, {elapsed}"


@contextmanager
def progress_bar(
    spark: SparkSession, label: str, *, enabled: bool | None = None, stream: TextIO | None = None
) -> Iterator[None]:
    """While the body runs Spark jobs, show how many of their tasks are done under `label`.

    `enabled` None means: only if `stream` (stderr by default) is a terminal.
    """
    out = sys.stderr if stream is None else stream
    if not (out.isatty() if enabled is None else enabled):
        yield
        return
    done = Event()
    with tqdm(desc=label, total=1, bar_format=_FORMAT, file=out, leave=False, dynamic_ncols=True) as bar:
        if is_connect(spark):
            with _told(spark, bar):
                yield
            return
        watcher = Thread(target=_watch, args=(spark.sparkContext, bar, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


@contextmanager
def _told(spark: SparkSession, bar: tqdm) -> Iterator[None]:
    """While the body runs, Spark Connect tells how far its jobs are."""

    def tell(stages: Any, inflight_tasks: int, done: bool) -> None:
        bar.total = max(1, sum(stage.num_tasks for stage in stages or ()))
        bar.n = sum(stage.num_completed_tasks for stage in stages or ())
        bar.refresh()

    spark.registerProgressHandler(tell)
    try:
        yield
    finally:
        spark.removeProgressHandler(tell)


def _watch(context: Any, bar: tqdm, done: Event) -> None:
    """Until `done`, bring `bar` up to date with the stages that started after this call did."""
    tracker = context.statusTracker()
    stages: set[int] = set()
    while True:
        stages.update(tracker.getActiveStageIds())
        infos = [info for info in map(tracker.getStageInfo, stages) if info is not None]
        bar.total = max(1, sum(info.numTasks for info in infos))
        bar.n = sum(info.numCompletedTasks for info in infos)
        bar.refresh()
        if done.wait(_EVERY):
            return
