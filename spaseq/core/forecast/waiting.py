"""Waiting times of a Markov chain, and intervals that contain them.

The waiting time W_n of a node n is the number of steps until the chain is next in a final node: at least 1, even from a
final node. With Π the transition matrix, P(W_n = 1) = Σ Π(n, f) over final f, and P(W_n = k) = Σ Π(n, j) P(W_j = k - 1)
over j not final.
"""

from __future__ import annotations

import numpy as np

from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.core.forecast.chain import ChainLimits, MarkovChain

_ROUNDING = 1e-9
"""The tolerance for comparisons of sums of probabilities."""


def waiting_times(
    chain: MarkovChain,
    horizon: int,
    limits: ChainLimits = ChainLimits(),  # noqa: B008 - frozen
) -> np.ndarray:
    """The distributions of waiting times: float64 (nodes, horizon); [n, k - 1] is the probability, in node n, that the
    next match ends k events later.

    The sum of a row is 1 less the probability of a wait longer than the horizon. O(horizon × transitions). Raises
    `OptionError` for a horizon below 1, `BudgetExceeded` (`max_cells`).
    """
    if horizon < 1:
        raise OptionError(f"the horizon is {horizon} events", "it must be 1 or more")
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
    """The shortest interval of waiting times with at least the probability `threshold`, as (first, last, probability);
    None if there is none.

    `distribution`: float64 (horizon,), the probabilities of waits 1, 2, …. Of several shortest intervals the most
    probable is taken, then the earliest. O(horizon log horizon). Raises `OptionError` for a threshold of 0 or less.
    """
    if not 0 < threshold <= 1:
        raise OptionError(f"the threshold is {threshold}", "it must be a probability above 0")
    total = np.concatenate([[0.0], np.cumsum(distribution)])
    last = np.searchsorted(total, total[:-1] + threshold - _ROUNDING, "left")  # an interval [i + 1, last[i]]
    starts = np.flatnonzero(last < len(total))
    if not len(starts):
        return None
    lengths, mass = last[starts] - starts, total[last[starts]] - total[starts]
    best = np.lexsort((starts, -np.round(mass, 12), lengths))[0]
    return int(starts[best]) + 1, int(last[starts[best]]), float(mass[best])
