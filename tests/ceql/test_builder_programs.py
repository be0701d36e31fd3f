"""Programs with the builder as its users write them, over generated logs. Plain Python says what each must find."""

from __future__ import annotations

import datetime
import random
from itertools import groupby, pairwise
from typing import Any

import ceql
from ceql import adjacent, event, no, seq, steps

Events = list[dict[str, Any]]


def test_fraud() -> None:
    """Three failed logins or more, then a successful one of the same user, within a minute."""
    rng = random.Random(1)
    log: Events = []
    now = 0
    for _ in range(400):
        now += rng.randint(1, 9)
        log.append({"type": rng.choice(("fail", "fail", "login")), "user": rng.choice("abc"), "time": now})

    fail, login = event("fail"), event("login")
    guessed = (
        seq(fail.times(3, None), login)
        .over("user")
        .within("1m")
        .keep("max")
        .select(user=login.user, failures=fail.count(), at=login.time)
    )

    expected = []
    for event_ in log:
        if event_["type"] == "login":
            before = [
                e
                for e in log
                if e["type"] == "fail"
                and e["user"] == event_["user"]
                and event_["time"] - 60 <= e["time"] < event_["time"]
            ]
            if len(before) >= 3:
                expected.append({"user": event_["user"], "failures": len(before), "at": event_["time"]})
    assert expected and [match.row for match in guessed.run(log)] == expected


def test_v_shape() -> None:
    """A price that falls at least twice in a row and then rises at least twice."""
    rng = random.Random(2)
    ticks: Events = [{"type": "tick", "symbol": rng.choice("XY"), "price": rng.randint(1, 20)} for _ in range(300)]

    tick = event("tick")
    falls = tick.where(tick.price < tick.prev().price)
    rises = tick.where(tick.price > tick.prev().price)
    v = (
        adjacent(
            tick,
            falls.times(2, None, by="adjacent"),
            rises.times(2, None, by="adjacent"),
        )
        .over("symbol")
        .select(first=tick.price.first(), bottom=tick.price.min(), last=tick.price, ticks=tick.count())
    )

    expected = []
    for symbol in "XY":
        prices = [t["price"] for t in ticks if t["symbol"] == symbol]
        for start in range(len(prices)):
            for end in range(start + 5, len(prices) + 1):
                part = prices[start:end]
                signs = [(b > a) - (b < a) for a, b in pairwise(part)]
                runs = [(sign, len(list(same))) for sign, same in groupby(signs)]
                if [sign for sign, _ in runs] == [-1, 1] and min(length for _, length in runs) >= 2:
                    expected.append((part[0], min(part), part[-1], len(part)))
    found = [tuple(match.row.values()) for match in v.run(ticks)]
    assert expected and sorted(found) == sorted(expected)


def test_missing_heartbeat() -> None:
    """A sensor that sends nothing for ten seconds after a beat."""
    rng = random.Random(3)
    beats: Events = []
    now = 0
    for _ in range(300):
        now += rng.randint(1, 3)
        beats.append({"type": "beat", "sensor": rng.choice("abc"), "time": now})

    beat = event("beat")
    silent = seq(beat, no(beat, lasting="10s")).over("sensor").select(sensor=beat.sensor, since=beat.time)

    expected = []
    for place, one in enumerate(beats):
        later = [b["time"] for b in beats[place + 1 :] if b["sensor"] == one["sensor"]]
        if not later or later[0] - one["time"] > 10:
            expected.append({"sensor": one["sensor"], "since": one["time"]})
    found = [match.row for match in silent.run(beats)]
    assert len(expected) > 5
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_orders_without_payment() -> None:
    """Orders that are not paid within an hour, while others are paid in the meantime."""
    rng = random.Random(4)
    log: Events = []
    for number in range(60):
        ordered = rng.randint(0, 40_000)
        log.append({"type": "order", "id": number, "amount": rng.randint(1, 99), "time": ordered})
        if rng.random() < 0.8:
            log.append({"type": "payment", "id": number, "time": ordered + rng.randint(1, 6000)})
    log.sort(key=lambda e: int(e["time"]))

    order, payment = event("order"), event("payment")
    unpaid = (
        seq(order, no(payment.where(payment.id == order.id)))
        .where(order.amount >= 20)
        .within(datetime.timedelta(hours=1))
        .select(order.id, order.amount)
    )

    paid = {e["id"]: e["time"] for e in log if e["type"] == "payment"}
    expected = [
        {"id": e["id"], "amount": e["amount"]}
        for e in log
        if e["type"] == "order" and e["amount"] >= 20 and paid.get(e["id"], 10**9) - e["time"] > 3600
    ]
    assert expected and [match.row for match in unpaid.run(log)] == expected


def test_rising_temperature() -> None:
    """A temperature that rises three times in a row, in two rooms. Events have no types; no two matches overlap."""
    rng = random.Random(5)
    readings: Events = [
        {"room": rng.choice(("hall", "attic")), "degrees": rng.randint(15, 30), "time": second} for second in range(200)
    ]

    reading = event()
    rising = reading.where(reading.degrees > reading.prev().degrees)
    alarm = (
        adjacent(reading, rising.times(3, by="adjacent"))
        .over("room")
        .after_match("past_last")
        .select(room=reading.room, low=reading.degrees.first(), high=reading.degrees)
    )

    expected = []
    for room in ("hall", "attic"):
        mine = [(r["time"], r["degrees"]) for r in readings if r["room"] == room]
        place = 0
        while place + 3 < len(mine):
            four = [degrees for _, degrees in mine[place : place + 4]]
            if four == sorted(set(four)):
                expected.append((mine[place + 3][0], {"room": room, "low": four[0], "high": four[-1]}))
                place += 3
            place += 1
    rows = [row for _, row in sorted(expected, key=lambda each: each[0])]
    assert rows and [match.row for match in alarm.run(readings)] == rows


def test_a_family_of_queries() -> None:
    """Rules that share their parts, made in a loop, each with a name of its own in errors."""
    view, cart, buy = event("view"), event("cart"), event("buy")
    rules = {
        "bought": steps(view, cart, buy),
        "left": seq(cart, no(buy)).where(cart.price > 10),
        "bought at once": adjacent(view, buy),
    }
    compiled = {name: ceql.compile(rule.over("user").within("1h"), source=name) for name, rule in rules.items()}
    log: Events = [
        {"type": "view", "user": 1, "time": 0},
        {"type": "cart", "user": 1, "price": 20, "time": 5},
        {"type": "view", "user": 2, "time": 6},
        {"type": "buy", "user": 1, "time": 10},
        {"type": "buy", "user": 2, "time": 11},
        {"type": "cart", "user": 3, "price": 20, "time": 12},
        {"type": "cart", "user": 4, "price": 5, "time": 13},
    ]
    found = {name: [match.positions for match in query.run(log)] for name, query in compiled.items()}
    assert found == {"bought": [(0, 1, 3)], "left": [(5,)], "bought at once": [(2, 4)]}
