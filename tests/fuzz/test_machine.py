"""A client and a peer, and whatever may happen between them, in any order that hypothesis finds."""

from __future__ import annotations

import threading
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protolink_sync import CancelToken, Message, Task
from protolink_sync.config import TransportConfig, TransportLimits
from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    ProtoLinkError,
    StreamInterruptedError,
    TransportConnectionError,
    TransportError,
    TransportLimitError,
    TransportProtocolError,
    TransportTimeoutError,
)
from protolink_sync.transport import SSEJSONRPCTransport, WebSocketTransport
from tests.fuzz.scripted import Peer
from tests.transport.matrix_peer import ASK

LIMIT = 20.0
SHORT = 0.05

# What a peer's way of answering may bring; None stands for the answer itself.
EXPECTED: dict[str, tuple[type[ProtoLinkError] | None, ...]] = {
    "answer": (None,),
    "cut": (TransportConnectionError,),
    "cut-inside": (TransportConnectionError,),
    "garbage": (TransportProtocolError,),
    "other-id": (TransportProtocolError,),
    "large": (TransportLimitError,),
    "silent": (TransportTimeoutError,),
    "answer-and-close": (None,),
    "answer-and-more": (None,),
}


class ClientAndPeer(RuleBasedStateMachine):
    """Calls and streams, cancelled, cut, left and closed.

    Every call ends once, with the answer to its question or with what its peer's doing allows;
    the counters add up whenever nothing is under way.
    """

    kind: type[Any] = SSEJSONRPCTransport
    scheme = "http"

    @initialize()
    def meet(self) -> None:
        self.peer = Peer(self.scheme)
        limits = TransportLimits(max_response_bytes=20_000, max_event_bytes=20_000)
        self.client = self.kind(config=TransportConfig(limits=limits), trust_env=False)
        self.asked = 0
        self.streams: list[tuple[Any, list[str]]] = []
        self.ended = {"succeeded": 0, "failed": 0, "cancelled": 0}
        self.closed = False

    def teardown(self) -> None:
        if hasattr(self, "client"):
            for stream, _ in self.streams:
                stream.close()
            self.client.close()
            self.peer.stop()

    # ---- calls ---------------------------------------------------------------------------------

    def _ask(self, doing: str, **words: Any) -> Any:
        self.asked += 1
        question = {"n": self.asked, "do": doing}
        try:
            answer = self.client.send(ASK, self.peer.url, question, **words)
        except ProtoLinkError as error:
            return question, error
        return question, answer

    @precondition(lambda self: not self.closed)
    @rule(doing=st.sampled_from(sorted(EXPECTED)))
    def call(self, doing: str) -> None:
        timeout = SHORT if doing == "silent" else LIMIT
        closed = self.peer.heard(doing) if doing == "answer-and-close" else None
        question, came = self._ask(doing, timeout=timeout)

        self._check(doing, question, came)
        # Nobody can know of a connection's end before it has come.
        assert closed is None or closed.wait(LIMIT)

    def _check(self, doing: str, question: Any, came: Any) -> None:
        if isinstance(came, ProtoLinkError):
            self.ended["failed"] += 1
            assert isinstance(came, tuple(k for k in EXPECTED[doing] if k)), (doing, came)
        else:
            self.ended["succeeded"] += 1
            assert None in EXPECTED[doing], (doing, came)
            assert came == {"question": question}

    @precondition(lambda self: not self.closed)
    @rule()
    def call_with_a_cancelled_token(self) -> None:
        token = CancelToken()
        token.cancel("before")

        _, came = self._ask("answer", cancel=token)

        assert isinstance(came, CallCancelledError)
        self.ended["cancelled"] += 1

    @precondition(lambda self: not self.closed)
    @rule()
    def cancel_a_call_under_way(self) -> None:
        token = CancelToken()
        heard = self.peer.heard("silent")
        outcome: list[Any] = []
        thread = threading.Thread(
            target=lambda: outcome.append(self._ask("silent", cancel=token, timeout=LIMIT)[1])
        )
        thread.start()
        assert heard.wait(LIMIT), outcome

        token.cancel()
        thread.join(LIMIT)

        assert isinstance(outcome[0], CallCancelledError), outcome
        self.ended["cancelled"] += 1

    @precondition(lambda self: not self.closed)
    @rule(doings=st.lists(st.sampled_from(["answer", "cut", "garbage", "other-id"]), max_size=6))
    def calls_at_the_same_time(self, doings: list[str]) -> None:
        outcomes: list[Any] = [None] * len(doings)

        def one(number: int, doing: str, question: Any) -> None:
            try:
                outcomes[number] = self.client.send(ASK, self.peer.url, question, timeout=LIMIT)
            except ProtoLinkError as error:
                outcomes[number] = error

        questions = [{"n": f"{self.asked}-{n}", "do": doing} for n, doing in enumerate(doings)]
        threads = [
            threading.Thread(target=one, args=(n, doing, questions[n]))
            for n, doing in enumerate(doings)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)

        for doing, question, came in zip(doings, questions, outcomes, strict=True):
            self._check(doing, question, came)

    # ---- streams -------------------------------------------------------------------------------

    @precondition(lambda self: not self.closed and len(self.streams) < 4)
    @rule(
        doings=st.lists(st.sampled_from(["event", "beat"]), max_size=5),
        end=st.sampled_from(["final", "cut", "cut-inside", "garbage", "other-id", "silent"]),
    )
    def open_a_stream(self, doings: list[str], end: str) -> None:
        script = [*doings, end]
        task = Task.create(Message.user(" ".join(script)))
        stream = self.client.subscribe(self.peer.url, task, idle_timeout=LIMIT)
        self.streams.append((stream, script))

    @precondition(lambda self: any(s[1][-1] != "silent" for s in self.streams))
    @rule()
    def read_a_stream_to_its_end(self) -> None:
        at = next(n for n, s in enumerate(self.streams) if s[1][-1] != "silent")
        stream, script = self.streams.pop(at)
        events: list[Any] = []
        ended: Exception | None = None
        try:
            for event in stream:
                events.append(event)
        except TransportError as error:
            ended = error
        except ClientClosedError as error:
            ended = error

        stream.close()
        if self.closed:
            assert ended is None or isinstance(ended, (ClientClosedError, TransportError))
            return
        self._check_stream(script, events, ended)

    def _check_stream(self, script: list[str], events: list[Any], ended: Any) -> None:
        told = [event["n"] for event in events if event["type"] == "task_progress"]
        assert told == list(range(script.count("event"))), (script, events)
        if script[-1] == "final":
            assert ended is None, ended
            assert events[-1]["new_state"] == "completed"
        else:
            wrong = TransportProtocolError if script[-1] in ("garbage", "other-id") else None
            assert isinstance(ended, wrong or StreamInterruptedError), (script, ended)

    @precondition(lambda self: self.streams and not self.closed)
    @rule(how=st.sampled_from(["close", "drop", "after one"]))
    def leave_a_stream(self, how: str) -> None:
        stream, script = self.streams.pop()
        if how == "after one" and script[0] == "event":
            assert next(stream)["n"] == 0
        if how != "drop":
            stream.close()
            with pytest.raises(StopIteration):
                next(stream)

    # ---- the end -------------------------------------------------------------------------------

    @precondition(lambda self: not self.closed)
    @rule()
    def close(self) -> None:
        self.client.close()
        self.closed = True

    @precondition(lambda self: self.closed)
    @rule()
    def call_after_the_end(self) -> None:
        _, came = self._ask("answer")

        assert isinstance(came, ClientClosedError)

    @invariant()
    def counters_add_up(self) -> None:
        if not hasattr(self, "client"):
            return
        counted = self.client.metrics
        assert counted.active_requests == 0
        assert {
            "succeeded": counted.requests_succeeded,
            "failed": counted.requests_failed,
            "cancelled": counted.requests_cancelled,
        } == self.ended
        assert counted.requests_started == sum(self.ended.values())
        assert counted.streams_started == (
            counted.streams_completed
            + counted.streams_failed
            + counted.streams_cancelled
            + counted.active_streams
        )


class OverWebSocket(ClientAndPeer):
    """The same over WebSocket."""

    kind = WebSocketTransport
    scheme = "ws"


_SETTINGS = settings(max_examples=40, stateful_step_count=25, deadline=None, derandomize=True)

TestOverHTTP = ClientAndPeer.TestCase
TestOverHTTP.settings = _SETTINGS
TestOverWebSocket = OverWebSocket.TestCase
TestOverWebSocket.settings = _SETTINGS


def test_what_came_before_a_peers_end_is_told_when_its_pings_cannot_be_answered_any_more():
    """Found by the machine: to answer a ping of a peer that has gone fails, the event remains."""
    peer = Peer("ws")
    try:
        with WebSocketTransport(trust_env=False) as client:
            task = Task.create(Message.user("hold " + "beat " * 30 + "event go cut"))
            stream = client.subscribe(peer.url, task, idle_timeout=LIMIT)

            assert next(stream) == {"type": "task_progress", "n": 0}
            with pytest.raises(StreamInterruptedError):
                next(stream)
    finally:
        peer.stop()


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_a_stream_left_when_its_last_event_has_come_leaves_no_connection(scheme):
    """Found by the machine: the fixture of all tests sees the descriptors, warnings are errors."""
    peer = Peer(scheme)
    kind = {"http": SSEJSONRPCTransport, "ws": WebSocketTransport}[scheme]
    try:
        with kind(trust_env=False) as client:
            for _ in range(20):
                task = Task.create(Message.user("event final"))
                client.subscribe(peer.url, task, idle_timeout=LIMIT).close()
    finally:
        peer.stop()
