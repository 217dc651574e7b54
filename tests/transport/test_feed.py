"""From what a transport reads of a stream to its events: moments that no peer can bring about."""

from __future__ import annotations

import math

import pytest

from protolink_sync.config import RetryPolicy
from protolink_sync.errors import CallCancelledError, ClientClosedError, TransportTimeoutError
from protolink_sync.transport._call import Call
from protolink_sync.transport._feed import Feed
from protolink_sync.wire import TransportRequestContext


class Endless:
    """A protocol whose streams need no mark at their end."""

    may_end = True

    def decode_event(self, payload, context):
        return payload, False


class EndedMeanwhile:
    """An open stream whose call is ended between the read of its only event and the next look."""

    def __init__(self, call, how):
        self._call = call
        self._how = how
        self._left = [b"event"]

    def receive(self):
        payloads, self._left = self._left, None
        self._call.abort(self._how)
        return payloads

    def close(self, finished):
        assert not finished


def fed(how):
    """Return a feed of such a stream, and a list for what it tells at its end."""
    call = Call(math.inf, None, Endless(), None, None, RetryPolicy())
    told = []
    context = TransportRequestContext("stream_message", "http://agent.test", "r-1")
    feed = Feed(EndedMeanwhile(call, how), call, context, 10.0, lambda *what: told.append(what))
    return feed, told


@pytest.mark.parametrize(
    ("how", "kind"), [("cancelled", CallCancelledError), ("closed", ClientClosedError)]
)
def test_a_stream_that_was_ended_is_not_one_that_came_to_its_end(how, kind):
    """Also where the connection ends just then, which may be the end of a stream."""
    feed, told = fed(how)

    with pytest.raises(kind) as caught:
        feed.read()
    feed.close(caught.value)

    assert told == [(caught.value, False)]


def test_what_has_come_within_the_budget_is_given_out_before_its_end():
    feed, _ = fed("timeout")

    assert feed.read() == ([b"event"], 5)
    with pytest.raises(TransportTimeoutError):
        feed.read()
