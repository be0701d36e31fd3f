"""Labels of texts are ordered as the texts are, whatever comes in whatever order, and go on where there is no room."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ceql
from spaseq.core.engine.program import text_order
from spaseq.core.engine.program.text_order import TextOrder
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.core.errors import OptionError

TEXTS = st.text(alphabet="ab\U0001f600￿é", max_size=4)


@given(st.lists(st.lists(TEXTS, max_size=6), max_size=12), st.sampled_from([8, 1 << 6, 1 << 60]), st.data())
def test_labels_are_in_the_order_of_texts(batches: list[list[str]], top: int, data: st.DataObject) -> None:
    order = TextOrder()
    held: dict[str, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_order, "_TOP", max(top, 64))
        patch.setattr(text_order, "_STEP", 4)
        for batch in batches:
            labels = order.labels(batch)
            if labels is None:
                assert order.full
                held = {text: held[text] for text in held if data.draw(st.booleans())}
                kept = order.keep(np.array([*held.values(), -5], np.int64))
                assert kept[-1] == -5
                held = dict(zip(held, kept.tolist(), strict=False))
                labels = order.labels(batch)
            if labels is None:
                return  # more texts than labels
            held |= dict(zip(batch, labels.tolist(), strict=True))
            assert [held[text] for text in sorted(held)] == sorted(set(held.values()))
            assert all(order.text(label) == text for text, label in held.items())
            again = TextOrder()
            again.restore(order.snapshot())
            assert again.has(np.array(list(held.values()), np.int64)) and again.snapshot() == order.snapshot()


@pytest.mark.parametrize("state", [(["b", "a"], [1, 2]), (["a", "b"], [2, 1]), (["a"], [0]), (["a"], [1 << 60]),
                                   (["a"], [1, 2]), ([1], [1]), (["a", "a"], [1, 2])])  # fmt: skip
def test_what_is_no_snapshot_is_refused(state: Any) -> None:
    with pytest.raises(OptionError):
        TextOrder().restore(state)


FORMULAS = (
    "(A AS x ; B AS y) FILTER x.t < y.t",
    "(A AS x ; B AS y ; A AS z) FILTER x.t <= y.t AND z.t > y.t",
    "(A AS x ; B+ AS y ; A AS z) FILTER y.t >= x.t AND y.t < z.t",
    "(A AS x ; B AS y ; A AS z) FILTER x.t < y.t AND x.p < z.p AND z.t >= x.t",
    "(A AS x ; NOT (B AS n FILTER n.t > x.t) ; A AS y) FILTER x.t <= y.t",
)


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        pytest.param(kind, formula, marks=[] if (i + j) % 2 else [pytest.mark.slow])
        for i, kind in enumerate(("random", "ever later", "ever earlier", "between"))
        for j, formula in enumerate(FORMULAS)
    ],
)
def test_no_room_for_labels_makes_no_difference(formula: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are so scarce that they are given anew every few events, in batches of all sizes and pushed singly."""
    rng = random.Random(f"{formula} {kind}")

    def text(i: int) -> str | None:
        if rng.random() < 0.05:
            return None
        return {"random": f"{rng.randrange(1000)}", "ever later": f"{i:04}", "ever earlier": f"{9999 - i:04}",
                "between": f"{i % 2 * 9}{i if i % 2 else 9999 - i:04}"}[kind]  # fmt: skip

    stream = [{"type": rng.choice("AB"), "p": rng.randrange(5), "t": text(i)} for i in range(240)]
    query = ceql.compile(f"SELECT * WHERE {formula} WITHIN 12 EVENTS")
    expected = sorted((m.start, m.end, m.positions) for m in query.run(stream))
    monkeypatch.setattr(text_order, "_TOP", 1 << 10)
    monkeypatch.setattr(text_order, "_STEP", 8)
    renumbered: list[int] = []
    keep = TextOrder.keep

    def counted(order: TextOrder, held: np.ndarray) -> np.ndarray:
        renumbered.append(len(held))
        return keep(order, held)

    monkeypatch.setattr(TextOrder, "keep", counted)
    for most in (1, 5):
        session = query.open()
        found, at = [], 0
        while at < len(stream):
            size = rng.randint(1, most)
            found += [(m.start, m.end, m.positions) for m in session.push(stream[at : at + size])]
            at += size
            if rng.random() < 0.05:
                session = query.open(session.snapshot())
        assert isinstance(getattr(session._run.evaluator, "run", None), GuardRun), "the kernels gave up"
        assert sorted(found) == expected, (most, kind)
    assert renumbered
