"""Files on other file systems than this machine's: one of Hadoop's (`viewfs`), which mounts a folder, stands for all.

The tasks get at it as they would at `s3a://` or `hdfs://`: by Hadoop's classes and the session's settings.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard

import ceql
import spaseq
import spaseq.spark
from spaseq.cli.main import main
from spaseq.core.errors import EventError, OptionError
from spaseq.core.files.places import open_file, use_storage
from spaseq.rdf import Counters, StreamOptions, StreamSource
from spaseq.spark import Reading, progress, start, wait
from spaseq.spark.ingest.feed import Feed, Place, parts_between
from spaseq.spark.session.storage import access_to
from tests.spark.conftest import KNOWLEDGE, write_stream
from tests.spark.test_feed import TIME, Folder
from tests.spark.test_streams import HEAT, _reading

pytestmark = pytest.mark.spark

QUERY = """PREFIX : <http://example.org/>
SELECT ?x ?y ?f WITHIN 9 SECONDS SLIDING FROM STREAM S <http://example.org/one>
WHERE { SEQ (A; B) DEFINE GPM A ON S { ?a :heat ?x ; :room ?r GRAPH :kb { ?r :floor ?f } }
DEFINE GPM B ON S { ?b :heat ?y FILTER (?y > 20) } }"""
KB = "http://example.org/kb"


@pytest.fixture
def mounted(tmp_path: Path, spark: Any) -> Any:
    """A folder, and its name on a file system of Hadoop's."""
    (tmp_path / "in").mkdir()
    name = f"t{abs(hash(str(tmp_path)))}"
    setting = f"fs.viewfs.mounttable.{name}.link./in"
    spark.conf.set(setting, f"file://{tmp_path}/in")
    yield tmp_path / "in", f"viewfs://{name}/in"
    spark.conf.unset(setting)
    use_storage(None)


def _rows(table: Any) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def _pack(path: Path) -> None:
    """One of the files by gzip, another by zstd."""
    (path / "a.nq.gz").write_bytes(gzip.compress((path / "a.nq").read_bytes()))
    (path / "b.nq.zst").write_bytes(zstandard.compress((path / "b.nq").read_bytes()))
    (path / "a.nq").unlink()
    (path / "b.nq").unlink()


_PLACES = ("a glob", "packed files", "files by name", "file://", "a closure")


@pytest.mark.parametrize(
    "places", [_PLACES[:2], pytest.param(_PLACES[2:], marks=pytest.mark.slow)], ids=["quick", "the other places"]
)
def test_a_batch_by_both_plans(places: tuple[str, ...], mounted: Any, spark: Any) -> None:
    """Globs, files by name, packed files, a document; knowledge in lines and as a document; `file://`. Quick are those
    that differ most."""
    path, url = mounted
    last = write_stream(path / "a.nq", 1, 60)
    last = write_stream(path / "b.nq", 2, 60, start=last + 1)
    write_stream(path / "c.nq", 3, 60, start=last + 1)
    (path / "kb.ttl").write_text(KNOWLEDGE, encoding="utf-8")
    query = spaseq.compile(QUERY)
    columns = ["start", "end", "positions", "time", *query.variables]

    def found(plan: str, stream: Any, kb: str, **more: Any) -> list[str]:
        frame = spaseq.spark.run(query, spark, {"S": stream}, {KB: kb}, plan=plan, partitions=3, **more)
        return _rows(spaseq.spark.collect(frame).select(columns))

    expected = _rows(query.run({"S": str(path / "*.nq")}, {KB: str(path / "kb.ttl")}).to_arrow().select(columns))
    assert expected
    if "a glob" in places:
        counters = Counters()
        assert found("slices", f"{url}/*.nq", f"{url}/kb.ttl", counters=counters) == expected
        assert counters.events == 180
    if "files by name" in places:
        assert found("auto", [f"{url}/{name}.nq" for name in "abc"], f"{url}/kb.ttl") == expected
    if "file://" in places:
        assert found("slices", f"file://{path}/*.nq", f"file://{path}/kb.ttl") == expected
    use_storage(None)
    if "a closure" in places:
        assert found("auto", f"{url}/*.nq", f"{url}/kb.ttl", entailment="rdfs") == expected
    if "packed files" in places:
        _pack(path)
        assert found("auto", f"{url}/[abc].nq*", f"{url}/kb.ttl") == expected


def test_what_is_not_there_or_wrong_is_said_with_its_name(mounted: Any, spark: Any) -> None:
    path, url = mounted
    (path / "a.nq").write_text(_reading(0, 1, 10) + "nonsense\n")
    run = spaseq.spark.run
    with pytest.raises(EventError, match=rf"{url}/a.nq:\d+: not N-Quads"):
        run(HEAT, spark, {"S": f"{url}/a.nq"})
    with pytest.raises(EventError, match=rf"{url}/b.nq: no such file"):
        run(HEAT, spark, {"S": f"{url}/b.nq"})
    with pytest.raises(EventError, match=rf"{url}/\*.nt: no file matches"):
        run(HEAT, spark, {"S": f"{url}/*.nt"})
    with pytest.raises(EventError, match=f"{url}: a folder, not a file"):
        run(HEAT, spark, {"S": url})
    with pytest.raises(EventError, match=r'nowhere://x/a\.nq: cannot read: .*No FileSystem for scheme "nowhere"'):
        run(HEAT, spark, {"S": "nowhere://x/a.nq"})
    with pytest.raises(OptionError, match=f"quarantine {url}/bad: tasks write to a folder of their machine"):
        run(HEAT, spark, {"S": f"{url}/a.nq"}, quarantine=f"{url}/bad")


def test_a_long_file_is_read_from_any_place_in_it(mounted: Any, spark: Any) -> None:
    """By blocks that are asked for, then by a copy that Java makes; what is not read of that is left."""
    path, url = mounted
    data = random.Random(1).randbytes(5 << 20) + b"\nend\n"
    (path / "long").write_bytes(data)
    access_to(spark, [url])
    with open_file(f"{url}/long") as file:
        assert file.read() == data
        for start, count in ((7, 3 << 20), (1 << 20, 100), (4 << 20, 2 << 20), (len(data), 1), (0, 2 << 20)):
            file.seek(start)
            assert file.tell() == start and file.read(count) == data[start : start + count]
        file.seek(-4, os.SEEK_END)
        assert file.readline() == b"end\n"


def test_the_local_engine_says_that_spark_reads_such_files(tmp_path: Path, capsys: Any) -> None:
    use_storage(None)
    (tmp_path / "q.rq").write_text(HEAT)
    assert main(["run", str(tmp_path / "q.rq"), "--stream", "S=s3a://bucket/*.nq"]) == 2
    said = capsys.readouterr().err
    assert "s3a://bucket/*.nq: files of s3a:// are read by Spark" in said and "--engine spark" in said
    with pytest.raises(OptionError, match=r"hdfs://a/b\.csv: (.|\n)*spark.match"):
        list(ceql.compile("SELECT * FROM S WHERE A").run("hdfs://a/b.csv"))
    (tmp_path / "a.nq").write_text(_reading(0, 1, 10) + _reading(1, 3, 12))
    assert len(list(spaseq.compile(HEAT).run({"S": f"file://{tmp_path}/a.nq"}))) == 1


def _stream(spark: Any, url: str, **reading: Any) -> dict[str, int]:
    """Reads what is there, from the checkpoint on; the checkpoint and the matches are on the same file system."""
    streams = {"S": [f"{url}/*.nq", f"{url}/*.nq.gz"]}
    words: dict[str, Any] = {"checkpoint": f"{url}/state", "output": f"{url}/out", "tasks": 1, "available_now": True}
    running = start(HEAT, spark, streams, reading=Reading(**reading), **words)
    wait(running)
    return progress(running)


@pytest.mark.slow
def test_a_stream_goes_on_behind_files_that_went(mounted: Any, spark: Any) -> None:
    """Read files are removed; packed ones come; what is left of a half-read one is read; all of it exactly once."""
    path, url = mounted
    every = path.parent / "every"
    every.mkdir()
    (path / "1.nq").write_text("".join(_reading(n, 2 * n, 10 + n) for n in range(4)))
    _stream(spark, url)
    shutil.move(path / "1.nq", every / "1.nq")
    (path / "2.nq").write_text("".join(_reading(n, 2 * n, 10 + n % 3) for n in range(4, 9)))
    (path / "3.nq.gz").write_bytes(gzip.compress("".join(_reading(n, 2 * n, 9 + n % 5) for n in range(9, 14)).encode()))
    _stream(spark, url)
    assert _stream(spark, url, bounded=True)["events"] == 14
    for name in ("2.nq", "3.nq.gz"):
        shutil.copy(path / name, every / name)
    found = spark.read.parquet(f"{url}/out").select("start", "end", "positions").toArrow()
    local = (
        spaseq.compile(HEAT)
        .run({"S": [str(every / name) for name in ("1.nq", "2.nq", "3.nq.gz")]})
        .to_arrow()
        .select(["start", "end", "positions"])
    )
    assert _rows(found) == _rows(local) != []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("front", "1.nq appeared in front of those already read"),
        ("short", "6.nq: the file cannot be read|6.nq: of the file .* had been read; now it has only"),
        ("other", "6.nq: of the file .* had been read; now its first bytes are others"),
        ("grown", "4.nq: the file was changed after it had been read to its end"),
        ("planned", r"4.nq: the file cannot be read .*, and a batch is planned to read its bytes 0 to"),
    ],
)
def test_files_that_are_not_as_they_were_are_named(change: str, said: str, mounted: Any, spark: Any) -> None:
    """What a feed says of files of this machine (`test_feed.py`) it says of these."""
    path, url = mounted
    access_to(spark, [url])
    folder = Folder(path)
    folder.feed = Feed(0, StreamSource("http://example.org/s", (f"{url}/*.nq",)), StreamOptions(time=TIME))
    for number in (2, 4, 6):
        folder.write(f"{number}.nq", 10 * number, 10 * number + 1)
    place = folder.go_on()
    assert folder.bytes(Place(), place) == b"".join((path / f"{n}.nq").read_bytes() for n in (2, 4, 6))
    (path / "2.nq").unlink()
    assert folder.go_on(place).name == f"{url}/6.nq"
    if change == "front":
        folder.write("1.nq", 1)
    elif change == "short":
        os.truncate(path / "6.nq", 40)
    elif change == "other":
        folder.write("6.nq", 63, 64)
    elif change == "grown":
        folder.write("4.nq", 40, 41, 42)
    else:
        (path / "4.nq").unlink()
    with pytest.raises(EventError, match=said):
        folder.go_on(place)
        folder.write("2.nq", 20, 21)
        parts_between(folder.feed, Place(), place, 1)
