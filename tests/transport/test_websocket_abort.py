"""A call over WebSocket can be ended at any moment, and nothing of it is left."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from protolink_sync import CancelToken
from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    TransportTimeoutError,
)
from tests.transport.scenes import (
    ASK,
    ASK_ONCE,
    HOLD,
    LIMIT,
    RECV,
    Calling,
    serving,
    wait_until,
)
from tests.transport.ws_scenes import (
    BEGIN,
    TEXT,
    UPGRADE,
    answer,
    frame,
    transport,
)

PARTIAL = frame(TEXT, "x", declared_len=5000)
# What the peer does, and the phase in which the call is when it is ended.
ENDS: dict[str, tuple[list[Any], str, Any]] = {
    "tls": ([HOLD], "tls", {}),
    "upgrade": ([RECV, HOLD], "connect", {}),
    "send": ([*UPGRADE, HOLD], "send", {"q": "x" * 12_000_000}),
    "wait": ([*BEGIN, HOLD], "wait", {}),
    "read": ([*BEGIN, PARTIAL, HOLD], "read", {}),
    "large": ([*BEGIN, frame(TEXT, "x", declared_len=500_000), HOLD], "read", {}),
    "fragments": ([*BEGIN, frame(TEXT, "{", fin=False), HOLD], "read", {}),
}


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("moment", ENDS)
@pytest.mark.parametrize("how", ["token", "close", "budget"])
def test_a_call_ends_at_once(moment, encrypted, how, tls_server, tls_client):
    steps, phase, data = ENDS[moment]
    if moment == "tls" and not encrypted:
        pytest.skip("without TLS there is no such phase")
    # A peer that is to be silent in the handshake serves no TLS at all.
    words = {"tls": tls_server} if encrypted and moment != "tls" else {}
    token = CancelToken()
    with serving(steps, **words) as server, transport(tls=tls_client) as client:
        url = f"ws{'s' if encrypted else ''}://{server.address}"
        timeout = 0.4 if how == "budget" else LIMIT
        call = Calling(client.send, ASK_ONCE, url, data, timeout=timeout, cancel=token)
        assert wait_until(lambda: any(c.phase == phase for c in client._slots.calls()))
        if how == "token":
            token.cancel("enough")
        elif how == "close":
            client.close()

        expected = {
            "token": CallCancelledError,
            "close": ClientClosedError,
            "budget": TransportTimeoutError,
        }
        with pytest.raises(expected[how]) as caught:
            call.result(2.0)
        if how == "budget":
            assert caught.value.phase == phase
        assert server.wait_for_end(within=2.0) == "client"


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("moment", ["upgrade", "send", "wait", "large"])
def test_an_interrupt_ends_a_call(moment, encrypted, tls_server, tls_client):
    steps, phase, data = ENDS[moment]
    words = {"tls": tls_server} if encrypted else {}
    with serving(steps, **words) as server, transport(server, tls=tls_client) as client:

        def interrupt() -> None:
            wait_until(lambda: any(c.phase == phase for c in client._slots.calls()))
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        helper = threading.Thread(target=interrupt, daemon=True)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            client.send(ASK_ONCE, data=data)
        helper.join(LIMIT)
        assert moment == "send" or server.wait_for_end(within=2.0) == "client"
        assert not client._slots.calls()


def test_an_ended_call_leaves_the_next_ones_alone():
    token = CancelToken()
    with serving([*BEGIN, HOLD], [*BEGIN, answer()]) as server, transport(server) as client:
        call = Calling(client.send, ASK, None, {}, cancel=token)
        server.wait_for_requests(1)
        token.cancel()
        with pytest.raises(CallCancelledError):
            call.result()

        assert client.send(ASK, data={}) == "done"
