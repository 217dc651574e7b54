"""EventReader: the events do not depend on how the bytes were cut, and are those of the standard.

:func:`by_the_standard` reads a whole stream as WHATWG HTML 9.2.6 says, line by line.
"""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protolink_sync.errors import TransportLimitError
from protolink_sync.wire import EventReader

LIMIT = 1 << 20
BOM = b"\xef\xbb\xbf"

line_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
values = st.text(max_size=12).map(lambda text: re.sub("[\r\n]", "", text).encode()) | st.binary(
    max_size=6
).map(lambda data: re.sub(b"[\r\n]", b"", data))
fields = st.sampled_from(
    (
        *(b"data: ", b"data:", b"data:  ", b"data", b" data: ", b"Data: ", b"database: "),
        *(b"event: ", b"id:", b"retry: ", b"other: ", b": ", b":", b""),
        *("data\u2028: ".encode(), BOM + b"data: "),
    )
)
lines = st.builds(lambda field, value, end: field + value + end, fields, values, line_ends)
blocks = st.builds(
    lambda lines, end: b"".join(lines) + end, st.lists(lines, min_size=1, max_size=4), line_ends
)
streams = st.builds(
    lambda mark, blocks, rest: mark + b"".join(blocks) + rest,
    st.sampled_from([b"", BOM, BOM[:2], BOM * 2, b"\n"]),
    st.lists(blocks, max_size=5),
    st.just(b"") | lines | values,
)


def by_the_standard(stream: bytes) -> list[str]:
    """Return the data of the events of a whole stream; blank data is left out (as said there).

    What is no UTF-8 stays as it is, for the reader of the JSON to refuse.
    """
    text = stream.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    # Behind the last line end stands an unfinished line, which is ignored.
    *whole, _ = re.split("\r\n|\n|\r", text)
    found, data = [], []
    for line in whole:
        if not line:
            if data:
                found.append("\n".join(data))
            data = []
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
    return [
        data for data in found if data and not data.encode("utf-8", "surrogateescape").isspace()
    ]


def read(pieces, limit=LIMIT):
    """Return the data of the events, and the error that came after them."""
    reader = EventReader(limit)
    found = []
    try:
        for piece in pieces:
            found += reader.feed(piece)
        if reader.failed:
            reader.feed(b"")
    except TransportLimitError as error:
        return texts(found), error
    return texts(found), None


def texts(found):
    return [data.decode("utf-8", "surrogateescape") for data in found]


def cut(stream, places):
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[begin:end] for begin, end in itertools.pairwise(edges)]


def one_by_one(stream):
    return [bytes([byte]) for byte in stream]


# --- cuts ---------------------------------------------------------------------------------------


@given(streams, st.lists(st.integers(0, 10_000), max_size=8))
@example(b"data: a\r\n\r\ndata: b\n\r\n", [8, 10])
@example(BOM + b"data: a\n\n", [1, 2])
@example(b"data: a\r\ndata: b\n\n", [8, 8])
@example(b"data\n\ndata:\n\ndata: a\n\n", [])
@example(
    "data: l1\u2028l2\u0085l3\x0bl4\n\nevent: x\ndata: l1\u2028l2\u0085l3\x0cl4\n\n".encode(), []
)
@example(b"event: x\ndata: \xff\xc3\n\n", [])
def test_every_cut_gives_the_events_of_the_standard(stream, places):
    wanted = by_the_standard(stream)

    assert read([stream]) == (wanted, None)
    assert read(cut(stream, places)) == (wanted, None)
    assert read(one_by_one(stream)) == (wanted, None)


@given(streams, st.lists(st.integers(0, 10_000), max_size=8), st.integers(0, 40))
def test_a_limit_strikes_after_the_same_events_wherever_it_is_cut(stream, places, limit):
    whole, error = read([stream], limit)
    pieces, piece_error = read(cut(stream, places), limit)
    bytes_, byte_error = read(one_by_one(stream), limit)

    assert pieces == bytes_ == whole
    assert (piece_error is None) == (byte_error is None) == (error is None)


@given(streams)
def test_each_event_comes_with_its_blank_line_and_not_before(stream):
    reader = EventReader(LIMIT)
    begin = b""
    found = []
    for byte in one_by_one(stream):
        begin += byte
        found += reader.feed(byte)
        assert texts(found) == by_the_standard(begin)


# --- what a stream may hold ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]),
        (b"event: m\r\ndata: x\n\r\n", ["x"]),
        (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n", ["a", "b"]),
        (BOM + b"data: first\n\n", ["first"]),
        (BOM + b"\ndata: first\n\n", ["first"]),
        (b"data: a\n\n" + BOM + b"data: not at the begin\n\n", ["a"]),
        (b": keep-alive\n\ndata: a\n\n:\n\n: inside\ndata: b\n: too\n\n", ["a", "b"]),
        (b": data: no\n\n", []),
        (b"data: {\ndata:  1\ndata: }\n\n", ["{\n 1\n}"]),
        (b"data: {\nid: 5\ndata:1}\n\n", ["{\n1}"]),
        (b"data:a\n\ndata:  b\n\n", ["a", " b"]),
        (b"data: a\ndata: data: b\ndata:  c\n\n", ["a\ndata: b\n c"]),
        (b"data:a\ndata:data: b\n\n", ["a\ndata: b"]),
        (b"data:a\ndata: data:b\ndata:\n\n", ["a\ndata:b\n"]),
        (b"data: a:b: c\n\n", ["a:b: c"]),
        (b"data\n\ndata:\n\ndata: \n\ndata:\ndata:\n\ndata: a\n\n", ["a"]),
        (b"retry: 3000\n\nevent: ping\n\nid: 7\n\n", []),
        (b"event: data:\n\ndatum: data:\n\n", []),
        (b"data: a\n\ndata: unfinished\n", ["a"]),
        (b"data: a\n\ndata: unfinished", ["a"]),
        (b"data: a\n", []),
        (b"", []),
        (b"\n\n", []),
        (BOM, []),
    ],
)
def test_what_a_stream_may_hold(stream, wanted):
    assert by_the_standard(stream) == wanted, "the oracle"
    assert read([stream]) == (wanted, None)
    assert read(one_by_one(stream)) == (wanted, None)
    for place in range(len(stream)):
        assert read([stream[:place], stream[place:]]) == (wanted, None)


def test_a_carriage_return_ends_an_event_without_waiting_for_a_line_feed():
    reader = EventReader(LIMIT)

    assert reader.feed(b"data: a\r\r") == [b"a"]
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: b\r\n\r") == [b"b"]
    assert reader.feed(b"\ndata: c\n\n") == [b"c"]


# --- the limit ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [b"\n", b"\r", b"\r\n"], ids=["lf", "cr", "crlf"])
@pytest.mark.parametrize("before", [b"", b"\n", b"data: a\n\n", b": x\n\n\n"])
def test_an_event_of_the_limit_passes_and_one_byte_more_does_not(ends, before):
    first = ["a"] if b"a" in before else []
    fits, more = (before + b"data: " + b"x" * size + ends * 2 for size in (14, 15))

    for pieces in ([fits], one_by_one(fits)):
        assert read(pieces, 20) == ([*first, "x" * 14], None)
    for pieces in ([more], one_by_one(more)):
        found, error = read(pieces, 20)
        assert found == first
        assert "21 bytes" in str(error)
        assert "max_event_bytes" in str(error)


def test_the_limit_strikes_before_the_event_is_whole():
    reader = EventReader(1000)
    for _ in range(10):
        assert reader.feed(b"x" * 100) == []

    with pytest.raises(TransportLimitError):
        reader.feed(b"x")
    with pytest.raises(TransportLimitError):
        reader.feed(b"\n\ndata: a\n\n")


def test_the_limit_is_of_one_event_and_not_of_all():
    reader = EventReader(20)

    found = [data for _ in range(100) for data in reader.feed(b"data: 0123456789\n\n")]

    assert found == [b"0123456789"] * 100
    assert EventReader(20).feed(b"data: 0123456789\n\n" * 100) == found


def test_a_large_event_in_small_pieces_is_copied_once():
    """Joined anew for each piece, this would move a hundred gigabytes."""
    reader = EventReader(1 << 26)
    piece = b"x" * 1024
    reader.feed(b"data: ")
    for _ in range(16 * 1024):
        assert reader.feed(piece) == []

    (data,) = reader.feed(b"\n\n")

    assert data == piece * (16 * 1024)


@given(streams)
@example(b"data: x\ndata\n\n")
@example(b"data\ndata :x\ndatax: y\ndata:: z\nid: 1\n\n")
@example(b"event: only\n\n")
def test_a_block_of_very_many_lines_has_the_data_of_the_standard(stream):
    stream = b": x\n" * 5000 + stream

    assert read([stream]) == (by_the_standard(stream), None)


@pytest.mark.parametrize(
    "first", ["data: 0", "data:0", "event: x\ndata: 0", ": x\ndata:0", "data\ndata:0"]
)
def test_an_event_of_very_many_lines_is_joined_once(first):
    """Joined anew for each line, this would move two hundred gigabytes."""
    reader = EventReader(1 << 26)
    line = first.rpartition("\n")[2][:-1].encode()

    (data,) = reader.feed(first.encode() + b"".join([b"\n", line, b"1" * 4]) * 500_000 + b"\n\n")

    assert data.removeprefix(b"\n") == b"0" + b"\n1111" * 500_000
