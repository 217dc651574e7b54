"""Timestamps in every form that peers write, and identifiers."""

from __future__ import annotations

import os
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protolink_sync.models import Message
from protolink_sync.models._ids import new_id
from protolink_sync.models._time import instant, parse_datetime, utc_now

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00+00:00", 0),
        ("1970-01-01t00:00:01z", SECOND),
        ("1970-01-01 00:00:01", SECOND),
        ("1970-01-01T00:01", 60 * SECOND),
        ("1970-01-02", 86_400 * SECOND),
        ("1970-01-01T00:00:00.5Z", SECOND // 2),
        ("1970-01-01T00:00:00,5Z", SECOND // 2),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T00:00:00.0000000019Z", 1),
        ("1970-01-01T00:00:00 Z", 0),
        ("1970-01-01T00:00:01.%sZ" % ("0" * 43), SECOND),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T01:00:00+0100", 0),
        ("1970-01-01T01:00:00+01", 0),
        ("1969-12-31T19:30:00-04:30", 0),
        ("1969-12-31T23:59:59.9Z", -SECOND // 10),
        ("1969-12-31T24:00:00Z", 0),
        ("1969-12-31T23:59:60Z", 0),
        ("0001-01-01T00:00:00+14:00", -62_135_596_800 * SECOND - 14 * 3600 * SECOND),
        (" 1970-01-01T00:00:00Z ", 0),
    ],
)
def test_a_timestamp_names_its_moment(text, moment):
    assert instant(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-13-01T00:00:00Z",
        "2026-02-30",
        "2026-01-01T25:00:00Z",
        "2026-01-01T00:61:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00X",
        "2026-01-01T00:00:00Z trailing",
        "٢٠٢٦-01-01",
        "1970-01-01T00:00:01.%sZ" % ("0" * 44),
        None,
        5,
        1767312000.0,
    ],
)
def test_what_is_no_timestamp_names_none(text):
    assert instant(text) is None


@given(
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
)
def test_what_python_writes_is_read_exactly(naive, minutes):
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert parse_datetime(moment.isoformat()) == moment
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert instant(moment.isoformat()) == since // timedelta(microseconds=1) * 1000


@given(st.datetimes(timezones=st.just(timezone.utc)), st.datetimes(timezones=st.just(timezone.utc)))
def test_moments_are_ordered_as_datetimes_are(one, other):
    assert (instant(one.isoformat()) < instant(other.isoformat())) == (one < other)


@given(st.text(max_size=30))
def test_no_text_breaks_the_parser(text):
    assert instant(text) is None or isinstance(instant(text), int)


@pytest.mark.parametrize("run", [" ", "\t\n", "0", "2026-01-01T00:00"])
@pytest.mark.parametrize("begin", ["", "2026-01-01T00:00", "2026-01-01T00:00:00."])
def test_a_megabyte_that_is_no_timestamp_takes_no_time(begin, run):
    """A peer writes it, and the client reads it within the budget of a call."""
    text = begin + run * (1_000_000 // len(run)) + "x"

    before = time.process_time()
    assert instant(text) is None
    assert time.process_time() - before < 0.1


def test_a_moment_that_datetime_cannot_hold_is_a_value_error():
    with pytest.raises(ValueError, match="out of range"):
        parse_datetime("0001-01-01T00:00:00+14:00")
    with pytest.raises(ValueError, match="expected a timestamp"):
        parse_datetime("now")


def test_now_is_utc_with_an_offset():
    assert utc_now().endswith("+00:00")
    assert abs(parse_datetime(utc_now()) - datetime.now(timezone.utc)) < timedelta(seconds=5)


def test_an_id_is_a_random_uuid_in_its_usual_form():
    for _ in range(200):
        identity = new_id()
        parsed = uuid.UUID(identity)

        assert str(parsed) == identity
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)


def test_ids_differ():
    assert len({new_id() for _ in range(10_000)}) == 10_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_other_ids_than_its_parent():
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, Message().id.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)

    assert uuid.UUID(theirs)
    assert theirs != Message().id
