"""A NOT at the end, with and without conditions on what came before, over random queries and streams, against the
definition on every road."""

from __future__ import annotations

import pytest

from tests.support import proof


@pytest.mark.parametrize("block", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_an_ending_that_is_related_to_the_match(block: int) -> None:
    report = proof.check("endings", range(1000 + 20 * block, 1020 + 20 * block))
    assert len(report.compared) > 10 and report.compared["batch"] == report.compared["snapshot"] == 20
    assert not report.different, "\n\n".join(report.different.values())
