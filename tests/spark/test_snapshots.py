"""What a bucket keeps between batches: gone on from by the same query alone, else one error. Without Java."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ceql
import spaseq
from spaseq.core.errors import OptionError
from spaseq.core.snapshot import encode
from spaseq.rdf import StreamOptions
from spaseq.spark.batch.form import PlacedRows
from spaseq.spark.session.layout import lay_out
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.streaming import processor
from spaseq.spark.streaming.evaluation import GraphEvaluation
from spaseq.spark.streaming.tuple_stream import TupleEvaluation
from spaseq.spark.streaming.watermark import Silence
from tests.spark.test_tuple_streams import _NUMBER, _job

TUPLES = StreamOptions(time="time", ties="arrival", late="error")


def tuples(text: str, names: tuple[str, ...] = ("",), **more: Any) -> TupleEvaluation:
    schema = pa.schema({"type": pa.string(), "time": pa.int64(), _NUMBER: pa.int64()})
    return TupleEvaluation(_job(ceql.compile(text), schema, names), TUPLES, **more)


def graphs(sequence: str, **options: Any) -> GraphEvaluation:
    query = spaseq.compile(f"""PREFIX : <http://example.org/> SELECT * WITHIN 9 SECONDS FROM STREAM S <http://example.org/S>
        WHERE {{ SEQ ({sequence}) DEFINE GPM A ON S {{ ?x :v ?a }} DEFINE GPM B ON S {{ ?x :w ?b }} }}""")
    text = QueryText.of(query)
    given = {"time": "http://example.org/at", **options}
    return GraphEvaluation(text, lay_out(text.compiled()), StreamOptions(**given), 1, PlacedRows("text"))


def refused(evaluation: Any, state: Any) -> str:
    with pytest.raises(OptionError) as caught:
        evaluation.restore(state)
    return caught.value.problem


def test_the_state_of_another_query_is_refused_with_what_differs() -> None:
    state = graphs("A; B").snapshot()
    graphs("A; B").restore(state)
    graphs("A; B", lateness=10**9, late="drop").restore(state)  # counts from then on
    assert "another query" in refused(graphs("B; A"), state)
    assert "other streams" in refused(graphs("A; B", ties="arrival"), state)
    assert "another language" in refused(tuples("SELECT * WHERE A"), state)
    state = tuples("SELECT * WHERE A ; B").snapshot()
    tuples("SELECT * WHERE A ; B", silence=Silence(5)).restore(state)
    assert "another query" in refused(tuples("SELECT * WHERE B ; A"), state)
    assert "other streams" in refused(tuples("SELECT * WHERE A ; B", ("S", "T")), state)
    assert "another language" in refused(graphs("A; B"), state)
    with pytest.raises(OptionError, match="another language"):
        ceql.compile("SELECT * WHERE A ; B").open(state)


@pytest.mark.parametrize("entry", [b"", b"junk", encode((1, 2)), encode(((0, "error", 0), 0, [(0, b"junk")]))])
def test_a_damaged_log_is_told_as_such(entry: bytes) -> None:
    for evaluation in (graphs("A; B"), tuples("SELECT * WHERE A ; B")):
        with pytest.raises(OptionError, match="the log behind the snapshot is damaged"):
            processor._again(evaluation, [entry])


BOTH = [lambda: graphs("A; B"), lambda: tuples("SELECT * WHERE A ; B")]


@pytest.mark.parametrize("of", BOTH, ids=["graphs", "tuples"])
def test_a_state_that_is_none_or_damaged_is_refused(of: Any) -> None:
    state = of().snapshot()
    for junk in (b"", b"junk", pickle.dumps((1, 2))):
        assert "no snapshot" in refused(of(), junk)
    assert "damaged" in refused(of(), state[:-1])
    assert "damaged" in refused(of(), state[:90] + bytes([state[90] ^ 1]) + state[91:])
    assert "format 99" in refused(of(), state[:8] + b"\x63" + state[9:])


def test_a_checkpoint_of_another_version_is_told_as_such() -> None:
    """What Spark hands back to a bucket, in the processor's own terms."""

    class State:
        def exists(self) -> bool:
            return True

        def get(self) -> Any:
            return (pickle.dumps(("clock", np.zeros(3))), 0, 0)

    operator = processor.Processor(lambda: graphs("A; B"), "run", processor.Outcome(pa.schema([])), 0)
    operator._state = operator._place = State()
    with pytest.raises(OptionError, match="the checkpoint is not of this query and this version: this is no snapshot"):
        operator._load(0)
