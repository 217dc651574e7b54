"""What the sentences of ``expected`` ask for beyond the check keys, for the cases played here.

The sentences are what counts; the check keys hold only what is easy to write down.
"""

from __future__ import annotations

import asyncio
import errno
import json
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from protolink_sync import errors
from protolink_sync.models import Artifact, Message, TaskState
from protolink_sync.security import BearerToken
from tests.cases.checks import chain
from tests.cases.play import Play, new_task, reply, task_json
from tests.cases.server import ScriptedServer

_Expect = Callable[[Play], None]
EXPECTED: dict[str, list[_Expect]] = {}


def run_expected(play: Play) -> None:
    """Try what the case expects beyond its checks; the client still lives."""
    for expect in EXPECTED.get(play.case.id, ()):
        expect(play)


def expected(*ids: str) -> Callable[[_Expect], _Expect]:
    """Register what cases expect beyond their checks."""

    def register(function: _Expect) -> _Expect:
        for case_id in ids:
            EXPECTED.setdefault(case_id, []).append(function)
        return function

    return register


def _message(play: Play) -> str:
    return str(play.error)


# -- JSON, cards, tasks --------------------------------------------------------------------


@expected("C052")
def _the_type_that_came_is_named(play: Play) -> None:
    assert "str" in _message(play)


@expected("C056")
def _unknown_members_are_kept(play: Play) -> None:
    written = play.result.to_dict()
    assert written["futureThing"] == {"a": 1}
    assert written["capabilities"]["telepathy"] is True
    assert written["skills"][0]["cost"] == 3
    assert "application/x-new" in written["inputFormats"]


@expected("C080")
def _the_unknown_state_is_written_back(play: Play) -> None:
    assert play.result.state is TaskState.UNKNOWN
    assert play.result.to_dict()["state"] == "archived"
    assert not play.result.is_terminal


@expected("C084")
def _the_lists_can_be_added_to(play: Play) -> None:
    task = play.result
    task.add_artifact(Artifact())
    task.metadata["a"] = 1
    task.flow_state["b"] = 2
    assert len(task.artifacts) == 1


@expected("C087")
def _send_task_is_named_and_shows_the_artifact(play: Play) -> None:
    assert "send_task" in _message(play)
    task = play.client().send_task(play.base, new_task())
    assert task.artifacts[0].parts[0].content == "report"


@expected("C093")
def _nothing_was_sent(play: Play) -> None:
    assert not play.server.connections
    assert "score" in _message(play)


@expected("C095")
def _the_integers_survive_a_further_send(play: Play) -> None:
    assert play.result.metadata["neg"] == -9223372036854775809
    play.client().send_task(play.base, play.result)
    sent = play.server.requests[-1].json()["metadata"]
    assert {name: sent[name] for name in play.result.metadata} == {
        "snowflake": 9007199254740993,
        "big": 18446744073709551615123,
        "neg": -9223372036854775809,
    }


@expected("C101")
def _unknown_parts_and_roles_are_kept(play: Play) -> None:
    (message,) = play.result.to_dict()["messages"]
    assert message["role"] == "tool"
    assert message["parts"] == [{"type": "hologram", "content": {"x": 1}, "new": 2}]


@expected("C102")
def _the_graph_still_holds_here(play: Play) -> None:
    with pytest.raises(ValueError, match="completed"):
        play.result.update_state("working")


@expected("C104")
def _the_path_and_the_finding_are_named(play: Play) -> None:
    assert "messages[0].parts" in _message(play)
    assert "str" in _message(play) or "oops" in _message(play)


@expected("C059")
def _the_path_is_written_in_one_way(play: Play) -> None:
    assert [request.target for request in play.server.requests] == ["/tasks/", "/tasks/"]


# -- connections ---------------------------------------------------------------------------


@expected("C105")
def _the_second_call_has_a_connection_of_its_own(play: Play) -> None:
    assert [request.connection for request in play.server.requests] == [1, 2]


@expected("C106")
def _the_second_call_went_out_once_on_the_kept_connection(play: Play) -> None:
    assert [request.connection for request in play.server.requests] == [1, 1]


@expected("C108")
def _the_cause_is_kept_and_json_not_blamed(play: Play) -> None:
    assert play.error.__cause__ is not None
    assert "JSON" not in _message(play)


@expected("C109")
def _the_cut_is_named_not_the_json(play: Play) -> None:
    assert "JSON" not in _message(play)
    assert not any(isinstance(error, json.JSONDecodeError) for error in chain(play.error))


@expected("C115", "C116")
def _the_reply_is_called_empty(play: Play) -> None:
    assert "empty" in _message(play)


@expected("C117")
def _the_redirect_is_shown(play: Play) -> None:
    assert "307" in _message(play)
    assert play.error.status_code == 307
    assert f"{play.peers[0].base}/tasks/" in _message(play)


@expected("C118")
def _the_login_page_is_shown(play: Play) -> None:
    assert "302" in _message(play)
    assert "/login" in _message(play)
    assert [request.name for request in play.server.requests] == ["POST /tasks/"]


@expected("C120")
def _the_location_is_shown(play: Play) -> None:
    assert "/.well-known/agent.json" in _message(play)
    assert "302" in _message(play)


@expected("C125")
def _the_refusal_is_told_in_our_words(play: Play) -> None:
    assert play.base in _message(play)
    assert play.error.retryable is True
    assert "Max retries" not in _message(play)
    assert play.error.errno == errno.ECONNREFUSED


@expected("C126")
def _an_excerpt_of_what_came_is_shown(play: Play) -> None:
    assert "SSH-2.0" in _message(play)


@expected("C127")
def _the_ended_connection_is_not_used_again(play: Play) -> None:
    play.clients[0].send_task(play.base, new_task())
    assert [request.connection for request in play.server.requests] == [1, 2]


@expected("C128")
def _the_connection_is_closed_at_once(play: Play) -> None:
    assert play.server.wait_for_end(within=2.0) == "client"


# -- time and retries ----------------------------------------------------------------------


@expected("C133")
def _the_connect_limit_is_its_own(play: Play) -> None:
    (call,) = play.calls
    assert call.ended - call.began >= 0.9
    assert play.error.phase == "connect"
    assert play.error.retryable is True


@expected("C134")
def _the_budget_is_spent_while_reading(play: Play) -> None:
    assert play.error.phase == "read"
    assert play.error.retryable is False


@expected("C140")
def _odd_timeouts_are_refused_and_none_is_the_default(play: Play) -> None:
    for call in play.calls:
        if call.sent is None:
            assert call.value == 300
        else:
            assert isinstance(call.error, (ValueError, TypeError)), call


@expected("C145")
def _the_attempts_are_told(play: Play) -> None:
    assert "still busy" in _message(play)
    assert play.error.attempt_count == 3
    assert [error.status_code for error in play.error.attempts] == [503, 503]


@expected("C146")
def _the_pause_is_between_the_requests(play: Play) -> None:
    first, second = play.server.requests
    assert second.at - first.at >= 1.0


@expected("C143", "C149", "C151")
def _there_was_one_attempt(play: Play) -> None:
    assert play.error.attempt_count == 1
    assert not play.error.attempts


@expected("C150")
def _a_401_is_about_credentials(play: Play) -> None:
    assert isinstance(play.error, errors.AuthenticationError)
    assert play.error.attempt_count == 1


@expected("C159")
def _the_counters_tell_one_retry(play: Play) -> None:
    metrics = play.clients[0].transport.metrics
    assert metrics.retries == 1
    assert metrics.requests_started == metrics.requests_succeeded == 1
    assert metrics.requests_failed == 0


# -- threads, loops, ends ------------------------------------------------------------------


@expected("C174")
def _no_pool_ran_over(play: Play) -> None:
    assert not [record.getMessage() for record in play.log if record.name.startswith("urllib3")]
    assert len(play.server.connections) <= 32
    assert all(call.value.metadata["echo"] == call.sent.id for call in play.calls)


@expected("C175")
def _each_thread_had_one_connection(play: Play) -> None:
    assert len(play.server.connections) == 16


@expected("C182")
def _a_card_can_be_read_inside_a_loop_too(play: Play) -> None:
    body = json.dumps({"name": "n", "description": "d", "url": play.base})
    client = play.clients[0]

    async def main(base: str) -> Any:
        return client.get_agent_card(base)

    with ScriptedServer({"routes": {"GET /.well-known/agent.json": [[reply(body)]]}}) as other:
        assert asyncio.run(main(other.base)).name == "n"


@expected("C192")
def _both_calls_say_that_the_client_is_closed(play: Play) -> None:
    in_flight, later = play.calls
    for call in (in_flight, later):
        assert isinstance(call.error, errors.ClientClosedError), call.error
        assert "closed" in str(call.error)
    assert later.ended - later.began < 1
    assert len(play.server.requests) == 1


@expected("C219")
def _a_closed_client_says_so(play: Play) -> None:
    assert isinstance(play.error, errors.ClientClosedError)
    assert "closed" in _message(play)
    assert not play.server.connections


@expected("C213")
def _few_connections_serve_all(play: Play) -> None:
    assert len(play.server.connections) <= 2


@expected("C214")
def _each_fault_has_its_error_and_a_good_call_works(play: Play) -> None:
    kinds = [type(call.error) for call in play.calls]
    first = [
        errors.TransportRemoteError,
        errors.TransportProtocolError,
        errors.TransportConnectionError,
        errors.TransportTimeoutError,
    ]
    assert kinds[:4] == first
    assert set(kinds[4:]) == {errors.TransportProtocolError}
    with ScriptedServer({"routes": {"POST /tasks/": [[reply(task_json())]]}}) as other:
        assert play.clients[0].send_task(other.base, new_task()).state is TaskState.COMPLETED


# -- WebSocket -----------------------------------------------------------------------------


def _opcodes(play: Play, number: int) -> list[int]:
    """Return what the nth connection sent, as the opcodes of its frames."""
    return [frame.opcode for frame in play.server.connections[number - 1].frames]


@expected("C223")
def _the_close_is_answered_and_the_call_not_repeated(play: Play) -> None:
    assert play.server.wait_for_end() is not None
    assert _opcodes(play, 1) == [1, 8]
    assert len(play.server.connections) == 1
    assert play.error.attempt_count == 1


@expected("C224")
def _a_normal_closure_is_no_normal_end(play: Play) -> None:
    assert isinstance(play.error, errors.StreamInterruptedError)
    assert "1000" in _message(play)


@expected("C229")
def _the_connection_is_dropped_and_the_size_told(play: Play) -> None:
    assert isinstance(play.error, errors.TransportLimitError)
    assert "1099511627776" in _message(play)
    assert play.server.wait_for_end(within=2.0) == "client"


@expected("C231")
def _the_masked_frame_is_no_answer(play: Play) -> None:
    assert isinstance(play.error, errors.TransportProtocolError)
    assert "masked" in _message(play)


@expected("C232")
def _the_refusal_is_told_and_not_tried_again(play: Play) -> None:
    assert isinstance(play.error, errors.AuthenticationError)
    assert "no token" in _message(play)
    assert play.error.error_message == "no token"
    assert len(play.server.requests) == 1
    client = play.client("websocket", credentials=BearerToken("tok-123"))
    with pytest.raises(errors.AuthenticationError) as refused:
        client.send_task(play.server.ws_base, new_task())
    assert play.server.requests[-1].header("Authorization") == "Bearer tok-123"
    assert not any("tok-123" in f"{error} {error!r}" for error in chain(refused.value))


@expected("C233")
def _nothing_is_sent_to_who_does_not_know_the_key(play: Play) -> None:
    assert play.server.wait_for_end(within=2.0) == "client"
    assert not play.server.connections[0].frames
    assert b"messages" not in play.server.connections[0].received


@expected("C234")
def _close_does_not_wait_for_the_peer(play: Play) -> None:
    (call,) = play.calls
    assert call.ended - call.began < 1.5


@expected("C237")
def _the_cancel_had_its_own_connection_and_came_back_at_once(play: Play) -> None:
    (call,) = play.calls
    assert call.value.state is TaskState.CANCELED
    assert call.ended - call.began < 2


@expected("C238")
def _each_call_had_its_own_connection(play: Play) -> None:
    assert len(play.server.connections) == 2
    assert play.clients[0].transport.metrics.retries == 0


@expected("C240")
def _the_message_is_shown_and_the_connection_not_used_again(play: Play) -> None:
    assert "hello" in _message(play)
    assert play.server.wait_for_end(within=2.0) == "client"


# -- TLS and credentials -------------------------------------------------------------------


@expected("C200")
def _nothing_went_out_in_clear(play: Play) -> None:
    assert "http://" in _message(play)
    assert not any(b'"messages"' in connection.received for connection in play.server.connections)


@expected("C203")
def _the_line_break_is_named_before_any_connection(play: Play) -> None:
    assert "line break" in _message(play)
    assert not play.server.connections


@expected("C209")
def _the_position_is_named_not_the_token(play: Play) -> None:
    assert not isinstance(play.error, UnicodeError)
    assert "position 1" in _message(play)
    assert "\u00f6" not in _message(play)
    assert not play.server.connections


@expected("C210")
def _the_transports_values_win(play: Play) -> None:
    (request,) = play.server.requests
    assert request.header("Authorization") == "Bearer tok-123"
    assert request.header("Idempotency-Key") != "y"
    assert isinstance(play.result.messages[0], Message)


# -- streams -------------------------------------------------------------------------------


@expected("C022")
def _all_contents_and_the_status(play: Play) -> None:
    *contents, last = play.calls[-1].events or ()
    assert [event["content"] for event in contents] == [str(number) for number in range(200)]
    assert last["type"] == "task_status_update"


@expected("C031", "C136")
def _the_final_status_is_the_last(play: Play) -> None:
    events = play.calls[-1].events or []
    assert [event["type"] == "task_status_update" for event in events[-2:]] == [False, True]


@expected("C017", "C153")
def _the_stream_was_interrupted(play: Play) -> None:
    assert type(play.error) is errors.StreamInterruptedError
    assert play.error.events == len(play.calls[-1].events or ())


@expected("C162")
def _neither_thread_gets_an_error(play: Play) -> None:
    assert [call.error for call in play.calls] == [None, None]
    assert play.server.connections[0].closed_by == "client"


@expected("C170")
def _both_see_the_task_canceled(play: Play) -> None:
    cancelled, read = play.calls
    assert cancelled.value.state is TaskState.CANCELED
    assert read.events is not None
    assert read.events[-1]["new_state"] == "canceled"
    streamed, cancel = play.server.requests
    assert streamed.connection != cancel.connection
    assert cancel.json()["metadata"] == {"reason": "stop"}


@expected("C173")
def _the_error_has_its_cause_and_the_workers_frames(play: Play) -> None:
    assert type(play.error) is errors.StreamInterruptedError
    assert play.error.__cause__ is not None
    frames = [frame.name for frame in traceback.extract_tb(play.error.__traceback__)]
    assert "_pump" in frames
