"""Streams of files that keep coming, as streaming DataFrames of parts to be read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from spaseq.core.errors import OptionError
from spaseq.core.files.places import is_elsewhere, whole_name
from spaseq.rdf import ARRIVAL, GENERATED_AT, EventBy, StreamOptions, StreamSource, file_options
from spaseq.spark.ingest.datasource import register_source
from spaseq.spark.ingest.quarantine import check_folder
from spaseq.spark.session.failures import clear_errors
from spaseq.spark.session.storage import Access, access_to


@dataclass(frozen=True, slots=True)
class Reading:
    """How files of a stream come (`spaseq.spark.ingest.feed`): `growing`: they grow at their ends; else each is
    complete when it appears. `bounded`: what is there when reading starts is all, and its end completes what waits.
    `max_bytes`, `max_files`: the most of each stream in one batch (0: no limit). `quarantine`: a folder for lines that
    cannot be read. `whole`: do not cut files."""

    growing: bool = False
    bounded: bool = False
    max_bytes: int = 0
    max_files: int = 0
    quarantine: str = ""
    whole: bool = False


def for_tasks(spark: SparkSession, sources: list[StreamSource]) -> list[StreamSource]:
    """The sources, if tasks can read them, and this process can look at them from now on; an OptionError for standard
    input, which is the driver's alone."""
    access_to(spark, named_files(sources))
    if any("-" in source.files for source in sources):
        raise OptionError("Spark cannot read standard input", "name a file, or use --engine local")
    return sources


def named_files(sources: Iterable[StreamSource]) -> list[str]:
    """The paths and globs of streams."""
    return [path for source in sources for path in source.files]


def settled_by_names(options: StreamOptions, sources: list[StreamSource]) -> StreamOptions:
    """`spaseq.rdf.settle` by the names of the files, which may not be there yet."""
    if options.time is not None:
        return options
    kinds = {
        file_options(path, source, options).event_by == EventBy("graph") for source in sources for path in source.files
    }
    if len(kinds) > 1:
        raise OptionError(
            "some streams have graphs with times and others have none: their order is unknown",
            'time="PREDICATE" or time_from="arrival", for all streams',
        )
    return replace(options, time=GENERATED_AT if kinds == {True} else ARRIVAL)


def parts_of_files(
    spark: SparkSession, sources: list[StreamSource], options: StreamOptions, reading: Reading, tasks: int
) -> DataFrame:
    """The parts of files that keep coming, for a stream (PARTS of `spaseq.spark.session.tables`)."""
    register_source(spark)
    if is_elsewhere(reading.quarantine):
        check_folder(reading.quarantine)
    access = access_to(spark, named_files(sources))
    given = source_options(sources, options, reading, tasks, access)
    with clear_errors():
        return spark.readStream.format("spaseq").options(**given).load()


def source_options(
    sources: list[StreamSource], options: StreamOptions, reading: Reading, tasks: int, access: Access | None = None
) -> dict[str, str]:
    """The options of the data source (`spaseq.spark.ingest.datasource`) that reads the parts of files."""
    # The files are listed by a process of Spark's, which may stand elsewhere.
    given = [
        (s.iri, [whole_name(path) for path in s.files], None if s.event_by is None else str(s.event_by))
        for s in sources
    ]
    malformed = f"quarantine:{reading.quarantine}" if reading.quarantine else options.malformed
    words = {
        "rows": "parts",
        "streams": json.dumps(given),
        "event_by": options.event_by,
        "time": None if options.time == ARRIVAL else options.time,
        "counted": "true" if options.time == ARRIVAL else None,
        "time_unit": options.unit,
        "format": options.format,
        "malformed": malformed,
        "partitions": tasks,
        "growing": str(reading.growing).lower(),
        "closing": str(reading.bounded).lower(),
        "whole": str(reading.whole).lower(),
        "max_bytes": reading.max_bytes,
        "max_files": reading.max_files,
        "hadoop": None if access is None else json.dumps([access.settings, access.jars]),
    }
    return {name: str(value) for name, value in words.items() if value is not None}
