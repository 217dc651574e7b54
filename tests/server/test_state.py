"""What state and history endpoints tell and do. Shapes: wire/protolink.md 14."""

from __future__ import annotations

import pytest

from protolink_sync.models import HistoryCompactionResult, StateOperationResult, Task
from protolink_sync.server import Agent
from tests.server.hosting import calling, card


@pytest.fixture
def caller():
    agent = Agent(card(), authenticate=lambda environ: environ.get("HTTP_AUTHORIZATION", "me"))
    agent.infer(lambda prompt: f"you said {prompt}")
    with calling(agent) as (caller, _):
        yield caller


def talk(caller, session_id, count=3, **headers):
    for number in range(count):
        caller.send(Task.create_infer(f"turn {number}", session_id=session_id), **headers)


def state(caller, operation, body, **headers):
    reply = caller.request("POST", f"/state/{operation}", body, **headers)
    assert reply.status == 200
    return StateOperationResult.from_dict(reply.json())


def test_describe_counts_the_messages_of_a_session(caller):
    talk(caller, "s")

    result = state(caller, "describe", {"session_id": "s"})

    (store,) = result.stores
    assert (result.operation, result.session_id, result.missing) == ("describe", "s", ())
    assert (store.name, store.enabled, store.exists) == ("conversation", True, True)
    assert (store.item_count, store.message_count, store.data) == (6, 6, None)
    assert store.metadata == {"session_scoped": True}


def test_describe_shows_the_messages_if_asked(caller):
    talk(caller, "s", 1)

    (store,) = state(caller, "describe", {"session_id": "s", "include_data": True}).stores

    assert [(m["role"], m["content"]) for m in store.data] == [
        ("user", "turn 0"),
        ("assistant", "you said turn 0"),
    ]


def test_describe_names_what_is_not_kept(caller):
    result = state(caller, "describe", {"stores": ["conversation", "flow"]})

    assert result.missing == ("flow",)
    assert result.stores[1].error == "state store is not enabled"


def test_an_unknown_session_does_not_exist(caller):
    (store,) = state(caller, "describe", {"session_id": "ghost"}).stores

    assert (store.enabled, store.exists, store.message_count) == (True, False, None)


def test_reset_forgets_one_session(caller):
    """Source: capture http_reset_state."""
    talk(caller, "s")
    talk(caller, "t")

    result = state(caller, "reset", {"session_id": "s"})

    (store,) = result.stores
    assert result.cleared == ("conversation",)
    assert (store.cleared, store.exists) == (True, False)
    assert store.metadata["before"]["message_count"] == 6
    (other,) = state(caller, "describe", {"session_id": "t"}).stores
    assert other.message_count == 6


def test_reset_without_a_session_forgets_all(caller):
    talk(caller, "s")
    talk(caller, "t")

    state(caller, "reset", {})

    (store,) = state(caller, "describe", {}).stores
    assert not store.exists


def test_compact_shortens_a_session(caller):
    """Source: capture http_compact_state."""
    talk(caller, "s", 4)

    request = {"session_id": "s", "strategy": "recent", "max_messages": 3}
    result = state(caller, "compact", request)

    (store,) = result.stores
    assert result.compacted == ("conversation",)
    assert (store.compacted, store.message_count) == (True, 3)
    compaction = store.metadata["compaction"]
    assert (compaction["before_messages"], compaction["removed_messages"]) == (8, 5)
    assert compaction["changed"] is True


def test_compact_of_an_unknown_session_is_missing(caller):
    """Source: capture http_compact_state_missing_session."""
    result = state(caller, "compact", {"session_id": "ghost"})

    assert result.missing == ("conversation",)
    assert result.stores[0].error == "conversation session not found"


@pytest.mark.parametrize(
    ("request_", "words"),
    [({}, "requires session_id"), ({"session_id": "s", "strategy": "summary"}, "recent or tokens")],
)
def test_what_cannot_be_compacted_is_an_error_inside(caller, request_, words):
    talk(caller, "s")

    result = state(caller, "compact", request_)

    assert words in result.errors[0]["message"]
    assert result.errors[0]["store"] == "conversation"


def test_history_is_compacted_by_tokens_but_the_newest_stay(caller):
    talk(caller, "s", 5)
    body = {"strategy": "tokens", "max_tokens": 1, "preserve_recent": 4, "session_id": "s"}

    result = HistoryCompactionResult.from_dict(
        caller.request("POST", "/llm/history/compact", body).json()
    )

    assert (result.before_messages, result.after_messages) == (10, 4)
    assert 0 < result.after_tokens < result.before_tokens


def test_history_without_a_session_is_the_newest(caller):
    talk(caller, "s", 1)
    talk(caller, "t", 2)

    body = {"max_messages": 2}
    result = caller.request("POST", "/llm/history/compact", body).json()

    assert (result["before_messages"], result["after_messages"]) == (4, 2)


@pytest.mark.parametrize("body", [{"strategy": "all"}, {"max_messages": "many"}])
def test_a_bad_request_is_a_400(caller, body):
    assert caller.request("POST", "/llm/history/compact", body).status == 400
    assert caller.request("POST", "/state/compact", body).status == 400


def test_a_session_is_its_principals_own(caller):
    talk(caller, "s", Authorization="ann")

    (bobs,) = state(
        caller, "describe", {"session_id": "s", "include_data": True}, Authorization="bob"
    ).stores

    assert (bobs.exists, bobs.data) == (False, None)


def test_an_agent_without_a_model_keeps_nothing():
    with calling(Agent(card())) as (caller, _):
        assert state(caller, "describe", {}).stores == ()
        assert state(caller, "describe", {"stores": ["conversation"]}).missing == ("conversation",)
        assert state(caller, "reset", None).cleared == ()
        assert state(caller, "compact", {"session_id": "s"}).missing == ("conversation",)
        reply = caller.request("POST", "/llm/history/compact", {})

    assert reply.status == 501
    assert "no LLM" in reply.error


def test_memory_is_bounded(caller):
    """A session that nobody names is made for every task."""
    talk(caller, "long", 120)
    for _ in range(300):
        caller.send(Task.create_infer("hi"))

    (store,) = state(caller, "describe", {}).stores
    (gone,) = state(caller, "describe", {"session_id": "long"}).stores

    assert store.item_count == 256
    assert not gone.exists
    talk(caller, "long", 120)
    (kept,) = state(caller, "describe", {"session_id": "long"}).stores
    assert kept.message_count == 200
