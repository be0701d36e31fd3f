"""The commands `ceql alert` and `ceql forecast`: a query's matches as they end, and forecasts of the next one.

Alerts come from the engine, which here computes only the ends of matches. Forecasts come from the query's register
match automaton (`ceql.runtime.alerts`). Both write the lines of a batch of events as soon as it has been read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

from ceql.cli import arguments
from ceql.cli.formats import ALERTS, FORECASTS
from spaseq.core.errors import OptionError
from spaseq.tools.command import (
    Format,
    accounted,
    add_results,
    bounded,
    chosen_format,
    opened,
    report,
)
from spaseq.tools.command.colours import tell
from spaseq.tools.command.frame import end_interrupted, held_back, warn
from spaseq.tools.command.writers import Results

if TYPE_CHECKING:
    import numpy as np

    from ceql.runtime.alerts import Alerts
    from spaseq.core.events import EventBatch
    from spaseq.core.forecast import Evaluation, Forecasts

Line = dict[str, Any]


def add_alerts(commands: Any) -> None:
    """Adds the parsers of both commands to `commands`."""
    alert = commands.add_parser(
        "alert",
        help="say at which events a query matches, without listing the matches",
        description="A line for each event at which some match ends: its position, time and type. No match is "
        "enumerated, so an event costs what the automaton does, however many matches end there. Every query is taken; "
        "after NOT at the end a line comes once the windows of the matches have closed.",
    )
    arguments.add_events(alert)
    which = alert.add_argument_group("which alerts are reported, for each key of PARTITION BY")
    which.add_argument("--at-least", metavar="N", type=int, help="only if there are N within the timeframe")
    which.add_argument("--timeframe", metavar="DURATION", help="of --at-least, such as 10m or '1 hour'")
    which.add_argument(
        "--realert", metavar="DURATION", help="none so soon after one that was reported (default: the timeframe)"
    )
    add_results(alert, ALERTS, "text", "events")
    arguments.add_growing(alert)
    alert.set_defaults(command=_alert)
    forecast = commands.add_parser(
        "forecast",
        help="learn from past events when a query will match next, and forecast it",
        description="A line for each event: its position and time, the shortest interval, in events from then, that "
        "holds the next match with at least the threshold's probability, that probability, and whether a match ends at "
        "the event itself. The interval is empty where none within the horizon is probable enough. The query may have "
        "a window of events, or none; and neither AND, NOT, aggregates, nor a selection that leaves matches out.",
    )
    arguments.add_events(forecast)
    forecast.add_argument("--train", metavar="FILE", action="append", required=True, help="past events to learn from")
    forecast.add_argument(
        "--order", metavar="N", type=int, default=1, help="events that the next one depends on (default: 1)"
    )
    forecast.add_argument(
        "--least", metavar="N", type=int, default=1, help="how often a context must have been seen (default: 1)"
    )
    forecast.add_argument(
        "--threshold", metavar="P", type=float, default=0.5, help="probability of an interval (default: 0.5)"
    )
    forecast.add_argument(
        "--horizon", metavar="N", type=int, default=100, help="events to look ahead at most (default: 100)"
    )
    add_results(forecast, FORECASTS, "text", "events")
    forecast.add_argument("--evaluate", action="store_true", help="say afterwards, on standard error, how good it was")
    arguments.add_growing(forecast)
    forecast.set_defaults(command=_forecast)


def _alert(options: argparse.Namespace) -> int:
    form = chosen_format(ALERTS, options.format, options.output, "text", live=options.follow)
    query = arguments.asked(options)
    with arguments.late_rows(options):
        return _alert_query(options, query, ALERTS[form])


def _alert_query(options: argparse.Namespace, query: Any, form: Format) -> int:
    alerts = query.alerts(at_least=options.at_least, timeframe=options.timeframe, realert=options.realert)
    keys = () if alerts.threshold is None else tuple(f"key.{name}" for name in alerts.threshold.names)
    lines = _alerts(alerts, options, arguments.growing(options), keys)
    found = _Found(lines, options.limit, ("position", "time", "type", *keys), _alert_text)
    interrupted, written = _write(options, query, alerts, found, form)
    if interrupted:
        warn(held_back(alerts.held_back))
    report(alerts, arguments.outcome(query, None if options.limit == 0 else written))
    return interrupted


def _write(options: argparse.Namespace, query: Any, alerts: Alerts, found: _Found, form: Format) -> tuple[int, int]:
    """Writes what is found: 0, or the exit code if Ctrl-C ended the events regularly, with `--follow`; and the number
    of lines. Limits are those of the query."""
    try:
        with (
            bounded(query.settings),
            accounted(lambda: alerts.counters.events, lambda: found.written, "lines"),
            opened(options.output, form) as out,
        ):
            found.out = out
            return 0, form.load()(found, out)
    except KeyboardInterrupt as error:
        if not options.follow:
            raise
        return end_interrupted(error), found.written


def _alerts(
    alerts: Alerts, options: argparse.Namespace, reading: dict[str, Any], names: Sequence[str]
) -> Iterator[Iterator[Line]]:
    """A line for each event at which a match ends, batch by batch, with the key under `names`."""
    for batch, found in alerts.answers(**reading):
        show, rows = _clock(alerts, options), found.nonzero()[0]
        keys: Sequence[Any] = [()] * len(rows)
        if names and alerts.threshold is not None:
            keys = alerts.threshold.keys(batch.table, rows)
        lines = zip(rows.tolist(), keys, strict=True)
        yield (_alert_line(batch, row, show) | dict(zip(names, key, strict=True)) for row, key in lines)


def _alert_line(batch: EventBatch, row: int, show: Callable[[int], Any]) -> Line:
    types = batch.types
    code = -1 if types is None else int(types.codes[row])
    kind = None if types is None or code < 0 else types.texts[code].as_py()
    return {"position": int(batch.positions[row]), "time": show(int(batch.times[row])), "type": kind}


def _alert_text(line: Line) -> str:
    keys = "".join(f"  {name.removeprefix('key.')}={value}" for name, value in line.items() if name not in _OF_ALL)
    return f"{line['position']:>9}  {line['time']}  {line['type'] or ''}{keys}".rstrip()


_OF_ALL: Final = ("position", "time", "type")


def _forecast(options: argparse.Namespace) -> int:
    if not 0 < options.threshold <= 1:
        raise OptionError("--threshold is a probability", "more than 0, at most 1")
    if options.horizon < 1:
        raise OptionError("--horizon counts events", "1 or more")
    if options.follow and options.evaluate:
        raise OptionError("--evaluate with --follow: forecasts are judged at the end", "leave one of them out")
    if (options.stream and len(options.stream) > 1) or arguments.growing(options)["types"] is not None:
        raise OptionError("forecasts are of one stream of events", "--events FILE, past ones with --train FILE")
    form = chosen_format(FORECASTS, options.format, options.output, "text", live=options.follow)
    query = arguments.asked(options)
    with arguments.late_rows(options):
        return _forecast_query(options, query, FORECASTS[form])


def _forecast_query(options: argparse.Namespace, query: Any, form: Format) -> int:
    from spaseq.core.automata.rma import SingleRun
    from spaseq.core.forecast import Forecaster, learn

    reading, alerts = arguments.growing(options), query.alerts()
    past = arguments.reading(options)
    past |= {"events": options.train[0] if len(options.train) == 1 else options.train, "streams": None}
    with bounded(query.settings):
        run = SingleRun(alerts.deterministic())
        model = learn(run, alerts.rows(**past), order=options.order, least=options.least)
    forecaster = Forecaster(model, threshold=options.threshold, horizon=options.horizon)
    seen: list[tuple[np.ndarray, Forecasts]] = []
    names = ("position", "time", "first", "last", "probability", "match")
    found = _Found(_forecasts(alerts, forecaster, options, reading, seen), options.limit, names, _forecast_text)
    interrupted, _ = _write(options, query, alerts, found, form)
    if options.evaluate:
        tell(str(_evaluation(seen)))
    report(alerts)
    return interrupted


def _forecasts(
    alerts: Alerts, forecaster: Any, options: argparse.Namespace, reading: dict[str, Any],
    seen: list[tuple[np.ndarray, Forecasts]],
) -> Iterator[Iterator[Line]]:  # fmt: skip
    """A line for each event, batch by batch; with `--evaluate`, `seen` receives the partition keys and the forecasts of
    each batch."""
    import numpy as np

    batches: list[Any] = []

    def read() -> Iterator[Any]:
        for rows in alerts.rows(**reading):
            batches.append(rows)
            yield rows

    for found in forecaster.follow(read()):
        rows = batches.pop()
        if options.evaluate:
            seen.append((np.zeros(len(rows), np.int64) if rows.keys is None else rows.keys, found))
        yield map(partial(_foretold, rows, found, _clock(alerts, options)), range(len(rows)))


def _foretold(rows: Any, found: Forecasts, show: Callable[[int], Any], row: int) -> Line:
    known = bool(found.first[row])
    return {
        "position": int(rows.positions[row]),
        "time": show(int(rows.events.times[row])),
        "first": int(found.first[row]) if known else None,
        "last": int(found.last[row]) if known else None,
        "probability": round(float(found.probability[row]), 4) if known else None,
        "match": bool(found.accepted[row]),
    }


def _forecast_text(line: Line) -> str:
    said = "no forecast"
    if line["first"] is not None:
        said = f"in {line['first']} to {line['last']} events, p = {line['probability']:.2f}"
    return f"{line['position']:>9}  {line['time']}  {said}{'  <- a match' if line['match'] else ''}"


def _evaluation(seen: list[tuple[np.ndarray, Forecasts]]) -> Evaluation:
    """The quality of the forecasts, each partition judged as a stream of its own."""
    import numpy as np

    from spaseq.core.forecast import Forecasts, evaluate

    names = ("first", "last", "probability", "accepted")
    keys = np.concatenate([k for k, _ in seen]) if seen else np.zeros(0, np.int64)
    columns = [np.concatenate([getattr(f, name) for _, f in seen]) for name in names] if seen else []
    return evaluate(Forecasts(*(c[keys == key] for c in columns)) for key in np.unique(keys[keys >= 0]))


def _clock(alerts: Alerts, options: argparse.Namespace) -> Callable[[int], Any]:
    from ceql.cli.output import clock

    return clock(alerts.counters.iso_times, options.time_unit or "s")


class _Found(Results):
    """The first `limit` lines of a command, each a value for each of `names`; the output is flushed after each batch of
    events."""

    def __init__(
        self, batches: Iterator[Iterator[Line]], limit: int | None, names: tuple[str, ...], text: Callable[[Line], str]
    ) -> None:
        self.text = text
        self.out: IO[str] = sys.stdout
        self._batches = batches
        self._limit = limit
        self._names = names

    def objects(self) -> Iterator[Line]:
        """The lines."""
        for line in islice(self._lines(), self._limit):
            yield line
            self.written += 1

    def _lines(self) -> Iterator[Line]:
        self.out.flush()  # the head is out before the first event is waited for
        for lines in self._batches:
            yield from lines
            self.out.flush()

    def cells(self) -> Iterator[Sequence[Any]]:
        """The values of each line in order of the names; truth values as JSON writes them."""
        yield self._names
        for line in self.objects():
            yield [str(line[name]).lower() if isinstance(line[name], bool) else line[name] for name in self._names]

    def count(self) -> int:
        """The number of lines."""
        return sum(1 for _ in islice(self._lines(), self._limit))


def write_text(found: _Found, out: IO[str]) -> int:
    """A line for people for each result."""
    written = 0
    for line in found.objects():
        out.write(f"{found.text(line)}\n")
        written += 1
    return written
