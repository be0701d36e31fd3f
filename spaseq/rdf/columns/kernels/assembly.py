"""Kernels that make events of rows, by the rules of `spaseq.rdf.columns.drafts`.

`cut` puts rows into drafts and finds their times. It stops at an error, which the caller words.

Arrays, owned by `spaseq.rdf.columns.drafts`
--------------------------------------------
* `rows`, `lines`: as in `kernels`. Rows of no event are squeezed out, and marks of empty graphs (subject NIL).
* `drafts` (`Drafts`), by draft: `name` (int32), `first` row and `size`, `record`, `number` in its file, `time` (int64),
  `known` (uint8: it has a time), `repeated` (uint8). `asking` (int32): the next draft that waits for a time of the same
  name. `subject` (int64): the row of its subject, for a run of one subject.
* `values` (int64), `status` (uint8), by row: the time that the row states, if its predicate is the one for times.
* `said` (int64, (capacity, 3)): name, time and line of each time in the default graph, in order; name NIL once taken.
* by term (int32): `said_of`, its row in `said`; `asked_by`, the first draft that asks; `asked_last`, the last one.
* by term, for runs of one subject (`Runs`): `seen` and `seen_type` (int32), the draft whose IRI had this predicate, or
  type. `home` (int32), the draft that named this blank node last; `kind` (uint8), the kinds of terms.
* `at` (int64): the numbers below.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.core.jit import inline, kernel
from spaseq.rdf.columns.kernels.layout import BAD_TIME, BLANK, NIL, NO_TIME, TIME

# how events are made
BY_GRAPH = 0
BY_SUBJECT = 1
BY_SIZE = 2
BY_FILE = 3

# what `cut` comes back with
DONE = 0
TWO_TIMES = 1  # a draft has times that differ, or cannot be read: ERROR is the draft
BAD_SAID = 2  # the default graph says a time that cannot be read: ERROR is the row
SAID_TWICE = 3  # … that differs from what it said before: ERROR is the row
WAITS_TOO_LONG = 4  # too many drafts wait: FRONT is the first of them

# places in `at`
DRAFTS = 0  # drafts there are
CLOSED = 1  # drafts that have ended: all, or all but the last, or the last NESTED where they are runs of a subject
FRONT = 2  # drafts that have ended and have a time, up to the first that has none
NEXT_ROW = 3  # the next row to look at
USED = 4  # rows kept
NUMBER = 5  # drafts of this file so far
SAID = 6  # rows of `said`
SAID_FIRST = 7  # the first of them that may be alive
SAID_LIVE = 8
IGNORED = 9
ERROR = 10
CLOCK = 11  # events before, if time is from arrival
OWN = 12  # of the first open draft: it has a time on its own name, and its least and greatest; or on any subject
OWN_LEAST = 13
OWN_MOST = 14
ANY = 15
ANY_LEAST = 16
ANY_MOST = 17
TIMES = 6  # such numbers, which the open drafts behind it have behind them
NESTED = 5  # drafts that may be open: `[ … ]` that stand in each other up to four deep
AT_SIZE = OWN + NESTED * TIMES


class Drafts(NamedTuple):
    """Events in the making, by column."""

    name: np.ndarray
    first: np.ndarray
    size: np.ndarray
    record: np.ndarray
    number: np.ndarray
    time: np.ndarray
    known: np.ndarray
    repeated: np.ndarray
    asking: np.ndarray
    file: np.ndarray
    subject: np.ndarray


class Runs(NamedTuple):
    """The notes by term, for runs of one subject."""

    seen: np.ndarray
    seen_type: np.ndarray
    home: np.ndarray
    kind: np.ndarray


class Said(NamedTuple):
    """The times that the default graph states, and the drafts that wait for one."""

    rows: np.ndarray
    said_of: np.ndarray
    asked_by: np.ndarray
    asked_last: np.ndarray


class Rules(NamedTuple):
    """The rules of cutting. `time`: the predicate's term, or NIL; `arrival`: count drafts; `type`: that of rdf:type."""

    by: int
    size: int
    time: int
    arrival: bool
    interval: int
    type: int
    lookahead: int
    file: int


@kernel
def cut(rows, lines, end, rules, drafts, values, status, said, runs, at):
    """Looks at the rows `at[NEXT_ROW]:end`. Returns DONE or an error.

    There is room in `drafts` for a draft for each row, and in `said` for each row. O(rows).
    """
    for row in range(at[NEXT_ROW], end):
        s = rows[row, 0]
        p = rows[row, 1]
        g = rows[row, 3]
        if rules.by == BY_GRAPH and g == NIL:
            if p != rules.time:
                at[IGNORED] += 1
            elif not rules.arrival:
                problem = note(row, s, lines[row], rules, drafts, values, status, said, at)
                if problem != DONE:
                    at[NEXT_ROW] = row
                    return problem
            continue
        if rules.by == BY_SUBJECT:
            if not goes_on(row, rows, rules, drafts, runs, at):
                problem = find_run(row, rows, lines[row], rules, drafts, said, runs, at)
                if problem != DONE:
                    at[NEXT_ROW] = row
                    return problem
            draft = at[DRAFTS] - 1
            keep_row(row, draft, rows, lines, drafts, values, status, at)
            note_terms(at[USED] - 1, draft, rows, rules, runs)
            continue
        draft = at[DRAFTS] - 1
        if at[CLOSED] == at[DRAFTS] or (rules.by == BY_GRAPH and g != drafts.name[draft]):
            if at[CLOSED] < at[DRAFTS]:
                problem = close(rules, drafts, said, at)
                if problem != DONE:
                    at[NEXT_ROW] = row
                    return problem
            draft = begin(g, lines[row], rules, drafts, at)
        elif rules.by == BY_SIZE and g != drafts.name[draft]:
            forget_name(draft, drafts, at)
        if s == NIL:
            continue
        keep_row(row, draft, rows, lines, drafts, values, status, at)
        if rules.by == BY_SIZE and drafts.size[draft] == rules.size:
            problem = close(rules, drafts, said, at)
            if problem != DONE:
                at[NEXT_ROW] = row + 1
                return problem
    at[NEXT_ROW] = end
    return DONE


@inline
def begin(name, line, rules, drafts, at):
    """A new draft, which is open."""
    draft = at[DRAFTS]
    at[DRAFTS] = draft + 1
    at[NUMBER] += 1
    drafts.name[draft] = name
    drafts.first[draft] = at[USED]
    drafts.size[draft] = 0
    drafts.record[draft] = line
    drafts.number[draft] = at[NUMBER]
    drafts.known[draft] = False
    drafts.repeated[draft] = False
    drafts.asking[draft] = NIL
    drafts.file[draft] = rules.file
    drafts.subject[draft] = 0
    place = (draft - at[CLOSED]) * TIMES
    at[place + OWN] = NO_TIME
    at[place + ANY] = NO_TIME
    return draft


@inline
def goes_on(row, rows, rules, drafts, runs, at):
    """True if the row continues the only open draft: it is about the draft's IRI, repeats nothing and has no blank
    node. `find_run` would change nothing. PERF: a call of it takes longer than all else for a row."""
    draft = at[CLOSED]
    if draft != at[DRAFTS] - 1 or rows[row, 3] != drafts.name[draft]:
        return False
    s = rows[row, 0]
    p = rows[row, 1]
    o = rows[row, 2]
    if runs.kind[s] == BLANK or subject_of(draft, rows, drafts) != s or (o != NIL and runs.kind[o] == BLANK):
        return False
    return (runs.seen_type[o] if p == rules.type else runs.seen[p]) != draft


@kernel
def find_run(row, rows, line, rules, drafts, said, runs, at):
    """Sees to it that the last open draft is the one that takes `row`. DONE or an error.

    The open drafts are runs of one subject, each of them but the first of a blank node. A blank node that an open run
    names belongs to it. Any other begins a run on top of the open ones, as parsers give `[ … ]` before the rows that
    point at it. A run that points at the subject of one above it takes that run and those above it; so does a run that
    begins by pointing at one. Whatever else begins a run ends all of them. No more than NESTED runs wait, so that
    events that are blank nodes themselves come out.

    O(1), and for each row of a draft that another takes, at most NESTED times.
    """
    s = rows[row, 0]
    p = rows[row, 1]
    o = rows[row, 2]
    g = rows[row, 3]
    if at[CLOSED] < at[DRAFTS] and g != drafts.name[at[CLOSED]]:
        problem = close_first(at[DRAFTS] - at[CLOSED], rules, drafts, said, at)
        if problem != DONE:
            return problem
    first = at[CLOSED]
    last = at[DRAFTS] - 1
    blank = runs.kind[s] == BLANK
    again = False
    if blank:
        home = np.int64(runs.home[s]) if runs.home[s] >= first else np.int64(NIL)
    else:
        home = first if first <= last and subject_of(first, rows, drafts) == s else np.int64(NIL)
        if home != NIL:
            again = (runs.seen_type[o] if p == rules.type else runs.seen[p]) == home
    child = np.int64(NIL)
    if first <= last and o != NIL and runs.kind[o] == BLANK:
        child = first if home == NIL else home + 1
        while child <= last and subject_of(child, rows, drafts) != o:
            child += 1
        child = child if child <= last else np.int64(NIL)
    problem = np.int64(DONE)
    if child != NIL and home != NIL and not again:
        merge(home, rows, drafts, runs, at)
    elif child != NIL:
        merge(child, rows, drafts, runs, at)
        if not blank:
            problem = close_first(child - first, rules, drafts, said, at)
        drafts.subject[child] = drafts.size[child]
    elif again or home < last or first > last:
        if home != NIL or not blank:
            problem = close_first(last + 1 - first, rules, drafts, said, at)
        elif last + 1 - first == NESTED:
            problem = close_first(1, rules, drafts, said, at)
        if problem == DONE:
            begin(g, line, rules, drafts, at)
    return problem


@inline
def subject_of(draft, rows, drafts):
    """The term whose run a draft with rows is."""
    return rows[drafts.first[draft] + drafts.subject[draft], 0]


@kernel
def merge(draft, rows, drafts, runs, at):
    """The open draft takes the rows and the times of those behind it."""
    low = (draft - at[CLOSED]) * TIMES
    for above in range(draft + 1, at[DRAFTS]):
        high = (above - at[CLOSED]) * TIMES
        for place in (OWN, ANY):
            if at[high + place] != NO_TIME:
                note_inside(low + place, at[high + place + 1], at[high + place + 2], at[high + place], at)
        for row in range(drafts.first[above], drafts.first[above] + drafts.size[above]):
            note_blanks(row, draft, rows, runs)
        drafts.size[draft] += drafts.size[above]
    at[NUMBER] -= at[DRAFTS] - draft - 1
    at[DRAFTS] = draft + 1


@inline
def note_blanks(row, draft, rows, runs):
    """The blank nodes in the row are at home in the draft."""
    s = rows[row, 0]
    o = rows[row, 2]
    if runs.kind[s] == BLANK:
        runs.home[s] = draft
    if o != NIL and runs.kind[o] == BLANK:
        runs.home[o] = draft


@inline
def note_terms(row, draft, rows, rules, runs):
    """The draft has the row now."""
    note_blanks(row, draft, rows, runs)
    if runs.kind[rows[row, 0]] != BLANK:
        if rows[row, 1] == rules.type:
            runs.seen_type[rows[row, 2]] = draft
        else:
            runs.seen[rows[row, 1]] = draft


@inline
def close_first(count, rules, drafts, said, at):
    """The first `count` open drafts end."""
    for _ in range(count):
        problem = close(rules, drafts, said, at)
        if problem != DONE:
            return problem
    return DONE


@inline
def keep_row(row, draft, rows, lines, drafts, values, status, at):
    """Puts the row behind those of the open draft, and notes its time."""
    to = at[USED]
    if to != row:
        rows[to, 0] = rows[row, 0]
        rows[to, 1] = rows[row, 1]
        rows[to, 2] = rows[row, 2]
        rows[to, 3] = rows[row, 3]
        lines[to] = lines[row]
    at[USED] = to + 1
    drafts.size[draft] += 1
    if status[row] != NO_TIME:
        place = (draft - at[CLOSED]) * TIMES + (OWN if rows[to, 0] == drafts.name[draft] else ANY)
        note_inside(place, values[row], values[row], status[row], at)


@inline
def note_inside(place, least, most, found, at):
    """One more time, or several, at `place`, which is OWN or ANY of an open draft."""
    if at[place] == NO_TIME:
        at[place + 1] = least
        at[place + 2] = most
    at[place] = max(at[place], found)
    at[place + 1] = min(at[place + 1], least)
    at[place + 2] = max(at[place + 2], most)


@inline
def forget_name(draft, drafts, at):
    """The open draft has no name after all, so no time stands on it."""
    if drafts.name[draft] != NIL and at[OWN] != NO_TIME:
        note_inside(ANY, at[OWN_LEAST], at[OWN_MOST], at[OWN], at)
        at[OWN] = NO_TIME
    drafts.name[draft] = NIL


@kernel
def close(rules, drafts, said, at):
    """The first open draft ends: its time is looked for inside, then in `said`."""
    draft = at[CLOSED]
    at[CLOSED] = draft + 1
    own = at[OWN]
    least = at[OWN_LEAST]
    most = at[OWN_MOST]
    if own == NO_TIME:
        own = at[ANY]
        least = at[ANY_LEAST]
        most = at[ANY_MOST]
    if draft + 1 < at[DRAFTS]:
        for place in range(OWN, AT_SIZE - TIMES):
            at[place] = at[place + TIMES]
    if rules.arrival:
        drafts.time[draft] = at[CLOCK] * rules.interval
        drafts.known[draft] = True
        at[CLOCK] += 1
        at[FRONT] = draft + 1
        return DONE
    if own != NO_TIME:
        if own == BAD_TIME or least != most:
            at[CLOSED] = draft
            at[ERROR] = draft
            return TWO_TIMES
        drafts.time[draft] = least
        drafts.known[draft] = True
    elif drafts.name[draft] != NIL:
        ask(draft, drafts, said, at)
    return advance(rules, drafts, at)


@inline
def advance(rules, drafts, at):
    """Lets FRONT pass the drafts that have a time."""
    while at[FRONT] < at[CLOSED] and drafts.known[at[FRONT]]:
        at[FRONT] += 1
    return WAITS_TOO_LONG if at[CLOSED] - at[FRONT] > rules.lookahead else DONE


@inline
def ask(draft, drafts, said, at):
    """Gives the draft the time said about its name, or lets it wait."""
    name = drafts.name[draft]
    found = said.said_of[name]
    if found != NIL:
        drafts.time[draft] = said.rows[found, 1]
        drafts.known[draft] = True
        said.rows[found, 0] = NIL
        said.said_of[name] = NIL
        at[SAID_LIVE] -= 1
    else:
        wait(draft, name, drafts, said)


@inline
def wait(draft, name, drafts, said):
    """The draft is the last to ask for a time of `name`."""
    drafts.asking[draft] = NIL
    if said.asked_by[name] == NIL:
        said.asked_by[name] = draft
    else:
        drafts.asking[said.asked_last[name]] = draft
    said.asked_last[name] = draft


@kernel
def note(row, name, line, rules, drafts, values, status, said, at):
    """The default graph states a time: the first draft that waits for it gets it, or it is kept for one to come."""
    at[ERROR] = row
    if status[row] != TIME:
        return BAD_SAID
    draft = said.asked_by[name]
    if draft != NIL:
        said.asked_by[name] = drafts.asking[draft]
        drafts.time[draft] = values[row]
        drafts.known[draft] = True
        return advance(rules, drafts, at)
    found = said.said_of[name]
    if found != NIL:
        return DONE if said.rows[found, 1] == values[row] else SAID_TWICE
    said.said_of[name] = at[SAID]
    said.rows[at[SAID], 0] = name
    said.rows[at[SAID], 1] = values[row]
    said.rows[at[SAID], 2] = line
    at[SAID] += 1
    at[SAID_LIVE] += 1
    if at[SAID_LIVE] > rules.lookahead:
        while said.rows[at[SAID_FIRST], 0] == NIL:
            at[SAID_FIRST] += 1
        said.said_of[said.rows[at[SAID_FIRST], 0]] = NIL
        said.rows[at[SAID_FIRST], 0] = NIL
        at[SAID_LIVE] -= 1
        at[IGNORED] += 1
    return DONE


@kernel
def restore(rows, rules, drafts, said, runs, at):
    """Fills in the notes by term, all NIL before: after terms have got new numbers, and at the beginning."""
    for i in range(at[SAID_FIRST], at[SAID]):
        if said.rows[i, 0] != NIL:
            said.said_of[said.rows[i, 0]] = i
    for draft in range(at[FRONT], at[CLOSED]):
        if not drafts.known[draft] and drafts.name[draft] != NIL:
            wait(draft, drafts.name[draft], drafts, said)
    if rules.by == BY_SUBJECT:
        for draft in range(at[CLOSED], at[DRAFTS]):
            for row in range(drafts.first[draft], drafts.first[draft] + drafts.size[draft]):
                note_terms(row, draft, rows, rules, runs)
