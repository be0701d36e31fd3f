"""Waiting times of a Markov chain, and the intervals that hold them.

The waiting time of a node is the number of steps until the chain is next in a final node: at least 1, also from a
final node. With Π the transition matrix, P(W = 1) = Σ Π(n, f) over final f, and P(W = k) = Σ Π(n, j) P(W_j = k - 1)
over j not final.
"""

from __future__ import annotations

import numpy as np

from spaseq.errors import BudgetExceeded, OptionError
from spaseq.forecast.chain import ChainLimits, MarkovChain

__all__ = ["shortest_interval", "waiting_times"]

_ROUNDING = 1e-9
"""Sums of probabilities are compared up to this."""


def waiting_times(
    chain: MarkovChain,
    horizon: int,
    limits: ChainLimits = ChainLimits(),  # noqa: B008 - frozen
) -> np.ndarray:
    """float64 (nodes, horizon): [n, k - 1] is the probability that the next match comes k events from now.

    A row sums to less than 1 by the probability of a longer wait. O(horizon × transitions). Raises `BudgetExceeded` at
    `max_cells`.
    """
    if horizon < 1:
        raise OptionError(f"a horizon of {horizon} events", "at least 1")
    nodes = len(chain.nodes)
    if nodes * horizon > limits.max_cells:
        raise BudgetExceeded("max_cells", limits.max_cells, nodes * horizon, "probabilities",
                             "lower the horizon or the order of the chain")  # fmt: skip
    found = np.zeros((nodes, horizon))
    arriving = chain.final[chain.target].astype(np.float64)
    for k in range(horizon):
        found[:, k] = np.bincount(chain.source, chain.probability * arriving, nodes)
        arriving = np.where(chain.final[chain.target], 0.0, found[chain.target, k])
    return found


def shortest_interval(distribution: np.ndarray, threshold: float) -> tuple[int, int, float] | None:
    """(first, last, probability) of the shortest interval of waiting times with at least `threshold`; None if none.

    `distribution`: float64 (horizon,), of waits 1, 2, …. Of several equally short ones the most probable, then the
    earliest. O(horizon log horizon).
    """
    if not 0 < threshold <= 1:
        raise OptionError(f"a threshold of {threshold}", "a probability above 0")
    total = np.concatenate([[0.0], np.cumsum(distribution)])
    last = np.searchsorted(total, total[:-1] + threshold - _ROUNDING, "left")  # an interval [i + 1, last[i]]
    starts = np.flatnonzero(last < len(total))
    if not len(starts):
        return None
    lengths, mass = last[starts] - starts, total[last[starts]] - total[starts]
    best = np.lexsort((starts, -np.round(mass, 12), lengths))[0]
    return int(starts[best]) + 1, int(last[starts[best]]), float(mass[best])
