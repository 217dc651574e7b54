"""What the sentences of ``expected`` ask for beyond the check keys, for the cases of A2A."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protolink_sync import errors
from protolink_sync.models import Message, TaskState
from protolink_sync.security import BearerToken
from tests.a2a.scripted import (
    HOLD,
    RST,
    ScriptedAgent,
    card,
    interface,
    result,
    sent,
    status_update,
    stream,
    task,
)
from tests.cases.calls import a2a_client
from tests.cases.checks import last_text
from tests.cases.expected import expected
from tests.cases.play import Play, new_task


def message_of(play: Play) -> str:
    """Return the text of the last call's error."""
    return str(play.error)


def ask(agent: ScriptedAgent, play: Play, **settings: Any) -> Any:
    """Send a task to another agent of the same words."""
    return play.client(a2a=True, **settings).send_task(agent.base, new_task(), protocol="a2a")


# -- JSON-RPC ------------------------------------------------------------------------------


@expected("C035")
def _the_mismatch_is_named(play: Play) -> None:
    assert "12345" in message_of(play)
    assert "id" in message_of(play)


@expected("C036")
def _the_agents_words_are_shown(play: Play) -> None:
    assert "Parse error" in message_of(play)
    assert isinstance(play.error, errors.A2AParseError)


@expected("C040")
def _what_was_received_is_said(play: Play) -> None:
    assert "1.0" in message_of(play)
    assert "2.0" in message_of(play)


@expected("C042")
def _each_data_is_the_decoded_value(play: Play) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND"}
    assert [call.error.data for call in play.calls] == [[info], "text", 7, None, None]
    assert play.calls[0].error.reason == "TASK_NOT_FOUND"


@expected("C044")
def _the_text_of_the_error_is_readable_too(play: Play) -> None:
    assert "no such task" in message_of(play)


@expected("C045")
def _the_bare_task_has_its_state_and_text(play: Play) -> None:
    assert play.result.state is TaskState.COMPLETED
    assert last_text(play.result) == "done"


@expected("C048")
def _the_method_and_the_version_are_shown(play: Play) -> None:
    for words in ("-32601", "SendMessage", "1.0"):
        assert words in message_of(play)


@expected("C049")
def _an_excerpt_is_shown(play: Play) -> None:
    assert "JSON" in message_of(play)
    assert "jsonrpc" in message_of(play)
    assert len(message_of(play)) < 1000


# -- cards ---------------------------------------------------------------------------------


@expected("C053", "C054")
def _the_card_is_given_as_it_was_read(play: Play) -> None:
    assert play.result["name"] == "n"
    assert not play.result.get("skills")


@expected("C063")
def _one_of_each_in_this_order(play: Play) -> None:
    assert [request.name for request in play.server.requests] == [
        "GET /.well-known/agent.json",
        "GET /.well-known/agent-card.json",
        "POST /rpc",
    ]


@expected("C065")
def _the_card_is_called_html(play: Play) -> None:
    assert "html" in message_of(play).lower()


@expected("C071")
def _both_origins_and_the_switch_are_named(play: Play) -> None:
    assert play.server.address in message_of(play)
    assert "a2a_allow_cross_origin" in message_of(play)


@expected("C072")
def _with_the_switch_it_goes_there_once_without_credentials(play: Play) -> None:
    with ScriptedAgent(result(sent(task(text="there")))) as stranger:
        offered = card(interface("{{base:0}}/rpc"))
        with ScriptedAgent(card=[offered], peers=[stranger]) as agent:
            answer = ask(
                agent,
                play,
                a2a_allow_cross_origin=True,
                credentials=BearerToken("tok-123"),
            )
            assert agent.calls == []
            assert agent.gets[-1].header("Authorization") == "Bearer tok-123"
        assert last_text(answer) == "there"
        assert len(stranger.calls) == 1
        heard = b"".join(bytes(c.received) for c in stranger.connections)
        assert b"tok-123" not in heard


@expected("C074")
def _nothing_of_a_file_shows(play: Play) -> None:
    assert {request.method for request in play.server.requests} == {"GET"}


@expected("C078")
def _the_body_is_called_json(play: Play) -> None:
    (post,) = [request for request in play.server.requests if request.method == "POST"]
    assert post.all("Content-Type") == ["application/json"]


# -- tasks ---------------------------------------------------------------------------------


@expected("C080")
def _the_a2a_form_is_unknown_too(play: Play) -> None:
    odd = {**task(), "status": {"state": "TASK_STATE_PAUSED"}}
    with ScriptedAgent(result(sent(odd))) as agent:
        received = ask(agent, play)

    assert received.state is TaskState.UNKNOWN
    assert received.metadata["a2a_remote_state"] == "TASK_STATE_PAUSED"
    assert not received.is_terminal


@expected("C081")
def _the_remote_states_stay_readable(play: Play) -> None:
    rejected, waiting = (call.value for call in play.calls)
    assert rejected.state is TaskState.FAILED
    assert rejected.metadata["a2a_remote_state"] == "TASK_STATE_REJECTED"
    assert waiting.state is TaskState.INPUT_REQUIRED
    assert not waiting.is_terminal
    assert waiting.metadata["a2a_remote_state"] == "TASK_STATE_AUTH_REQUIRED"


@expected("C083")
def _the_lists_are_empty(play: Play) -> None:
    assert play.result.artifacts == []


@expected("C085")
def _send_task_gives_a_task_with_the_same_text(play: Play) -> None:
    assert isinstance(play.result, Message)
    answer = play.clients[0].send_task(play.base, new_task(), protocol="a2a")
    assert last_text(answer) == "pong"
    assert answer.state is TaskState.COMPLETED


@expected("C086")
def _it_is_the_message_of_the_agent(play: Play) -> None:
    assert play.result.role == "agent"


@expected("C090")
def _the_timestamps_are_kept_as_they_were_written(play: Play) -> None:
    told = [call.value.metadata["a2a_remote_status_timestamp"] for call in play.calls]
    assert told == [
        "2025-11-09T10:30:00Z",
        "2025-11-09T10:30:00.123456789Z",
        "2025-11-09T10:30:00.5Z",
    ]


@expected("C098")
def _name_and_type_are_kept_and_the_url_is_not_fetched(play: Play) -> None:
    (artifact,) = play.result.artifacts
    written = json.dumps([part.to_dict() for part in artifact.parts])
    for words in ("b.bin", "application/octet-stream", "https://x.invalid/f.pdf"):
        assert words in written


# -- calls ---------------------------------------------------------------------------------


@expected("C152")
def _a_reset_and_a_time_out_are_no_reason_to_send_again(play: Play) -> None:
    faults = {
        errors.TransportConnectionError: [RST],
        errors.TransportTimeoutError: [HOLD],
    }
    for kind, steps in faults.items():
        with ScriptedAgent(steps) as agent:
            client = play.client(**play.settings, timeout=0.5)
            with pytest.raises(kind):
                client.send_task(agent.base, new_task(), protocol="a2a")
            assert len(agent.calls) == 1


@expected("C034")
def _the_task_so_far_is_with_the_error_and_other_ends_are_ends(play: Play) -> None:
    assert play.error.task_id == "r1"
    for state in ("completed", "input-required"):
        events = stream(sent(task("submitted")), status_update(state))
        with ScriptedAgent(events) as agent, a2a_client(agent.base) as client:
            assert len(list(client.stream_message("hi"))) == 2


@expected("C088")
def _the_parts_are_kept_in_order(play: Play) -> None:
    (artifact,) = play.result.artifacts
    assert artifact.artifact_id == "a1"
    assert [part.text for part in artifact.parts] == ["Hel", "lo, wor", "ld!"]
