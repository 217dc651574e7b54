"""Nothing of an event's data is taken for its frame."""

from __future__ import annotations

import pytest

from protolink_sync.wire.sse import EventReader


@pytest.mark.parametrize(
    ("block", "data"),
    [
        (b"data: XaX", b"XaX"),
        (b"data: X\ndata: aX", b"X\naX"),
        (b"data: X\ndata:aX", b"X\naX"),
        (b"XX: 1\ndata: aX", b"aX"),
        (b"event: XX\ndata: a\nid: XX", b"a"),
        (b"data:  a ", b" a "),
        (b"data:data: a", b"data: a"),
        (b"data: data:", b"data:"),
        (b"data:a\ndata:b\ndata:c", b"a\nb\nc"),
        (b"data: a\n: X\ndata: b", b"a\nb"),
    ],
)
@pytest.mark.parametrize("before", [b"", b"\n", b"\xef\xbb\xbf", b": XX\n\n", b"data: XX\n\n"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_has_its_data_and_no_more(before, block, data, end):
    whole = (before + block + b"\n\n").replace(b"\n", end)
    expected = [b"XX", data] if before.startswith(b"data") else [data]

    for size in (1, 2, 3, 5, len(whole)):
        reader = EventReader(1000)
        found = []
        for begin in range(0, len(whole), size):
            found += reader.feed(whole[begin : begin + size])
        # A CR at the end may still belong to a CRLF, but the event is whole already.
        assert found == expected
