"""A misspelled word is an error for type checkers, in both languages: an ignored error that is none is one, too."""

from __future__ import annotations

import datetime

import ceql
import spaseq


def tuples(query: ceql.Query) -> None:
    query.run([], tme="at")  # type: ignore[call-arg]
    query.open(tme="at")  # type: ignore[call-arg]
    query.run([], time="at", lateness=datetime.timedelta(seconds=5))


def graphs(query: spaseq.Query, session: spaseq.Session) -> None:
    query.run({"S": "s.nq"}, tme="urn:at")  # type: ignore[call-arg]
    query.follow({"S": "s.nq"}, tme="urn:at")  # type: ignore[call-arg]
    query.open(tme="urn:at")  # type: ignore[call-arg]
    query.run({"S": "s.nq"}, time=5)  # type: ignore[arg-type]
    query.run({"S": "s.nq"}, time="urn:at", lateness=datetime.timedelta(seconds=5), format="ttl", malformed="drop")
    session.push("<urn:x> <urn:p> 5 .", tme=5)  # type: ignore[call-arg]
    session.push("<urn:x> <urn:p> 5 .", time=datetime.datetime.now(datetime.UTC), stream="S", format="ttl")
    session.push([(5, "<urn:x> <urn:p> 5 .")])
