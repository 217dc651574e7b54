"""AgentClient against a scripted transport: what each method sends, returns and refuses."""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
import threading
from typing import Any

import pytest

from protolink_sync import CancelToken, specs
from protolink_sync.client import AgentClient, SyncAgentClient
from protolink_sync.config import RetryPolicy, TransportConfig
from protolink_sync.errors import (
    CallCancelledError,
    ClientClosedError,
    NoResponseMessageError,
    TransportConnectionError,
    TransportProtocolError,
    TransportRemoteError,
    TransportTimeoutError,
)
from protolink_sync.models import (
    AgentCard,
    Artifact,
    HistoryCompactionResult,
    Message,
    Part,
    StateOperationResult,
    Task,
    TaskState,
)
from protolink_sync.testing import ScriptedTransport, reply, silence
from protolink_sync.testing.steps import Step
from protolink_sync.transport import HTTPTransport, RuntimeTransport

URL = "http://agent.test"

TASK = {"id": "t-1", "state": "completed"}
CARD = {"name": "a", "description": "d", "url": URL}
HISTORY = {"strategy": "recent", "before_messages": 3, "after_messages": 2}
STATE = {"operation": "describe", "session_id": None, "stores": []}


def client(*steps: Step, **settings: Any) -> tuple[AgentClient, ScriptedTransport]:
    transport = ScriptedTransport(*steps, **settings)
    return AgentClient(transport), transport


def body(transport: ScriptedTransport, number: int = -1) -> Any:
    return json.loads(transport.calls[number].body or b"null")


def answered(*messages: Message, artifacts: int = 0) -> Any:
    task = Task("t-1", TaskState.COMPLETED, list(messages))
    for _ in range(artifacts):
        task.add_artifact(Artifact(name="a").add_text("x"))
    return reply(task.to_dict())


# Every unary method: how it is called, what comes back, its spec and the type it returns.
METHODS: dict[str, tuple[Any, Any, Any, type]] = {
    "send_task": (
        lambda c, **more: c.send_task(URL, Task.create("hi"), **more),
        TASK,
        specs.TASK_REQUEST,
        Task,
    ),
    "send_infer_task": (
        lambda c, **more: c.send_infer_task("hi", URL, **more),
        TASK,
        specs.TASK_REQUEST,
        Task,
    ),
    "send_message": (
        lambda c, **more: c.send_message(URL, Message.user("hi"), **more),
        {**TASK, "messages": [Message.agent("yes").to_dict()]},
        specs.TASK_REQUEST,
        Message,
    ),
    "cancel_task": (
        lambda c, **more: c.cancel_task(URL, "t-1", **more),
        TASK,
        specs.TASK_CANCEL_REQUEST,
        Task,
    ),
    "compact_history": (
        lambda c, **more: c.compact_history(URL, **more),
        HISTORY,
        specs.COMPACT_HISTORY_REQUEST,
        HistoryCompactionResult,
    ),
    "describe_state": (
        lambda c, **more: c.describe_state(URL, **more),
        STATE,
        specs.DESCRIBE_STATE_REQUEST,
        StateOperationResult,
    ),
    "reset_state": (
        lambda c, **more: c.reset_state(URL, **more),
        {**STATE, "operation": "reset"},
        specs.RESET_STATE_REQUEST,
        StateOperationResult,
    ),
    "compact_state": (
        lambda c, **more: c.compact_state(URL, session_id="s", **more),
        {**STATE, "operation": "compact"},
        specs.COMPACT_STATE_REQUEST,
        StateOperationResult,
    ),
    "get_agent_card": (
        lambda c, **more: c.get_agent_card(URL, **more),
        CARD,
        specs.AGENT_CARD_REQUEST,
        AgentCard,
    ),
}
RETRIED = {"send_task", "send_infer_task", "send_message", "cancel_task", "describe_state"} | {
    "get_agent_card"
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_carries_out_its_operation(name):
    call, answer, spec, kind = METHODS[name]
    agent, transport = client(reply(answer))

    result = call(agent)

    assert isinstance(result, kind)
    (request,) = transport.calls
    assert (request.method, request.path) == (spec.method, spec.path)
    assert request.operation == spec.name
    assert request.url == URL
    assert (request.headers.get("Idempotency-Key") is not None) == spec.idempotent


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_a_budget_and_a_token(name):
    call = METHODS[name][0]
    agent, transport = client(reply(METHODS[name][1]), timeout=50)

    token = CancelToken()
    token.cancel("not wanted")
    with pytest.raises(CallCancelledError, match="not wanted"):
        call(agent, cancel=token)
    for wrong, error in ((0, ValueError), (-1, ValueError), ("5", TypeError), (True, TypeError)):
        with pytest.raises(error, match="timeout"):
            call(agent, timeout=wrong)
    assert transport.calls == []

    call(agent, timeout=7.0, cancel=CancelToken())

    assert len(transport.calls) == 1


@pytest.mark.parametrize("name", METHODS)
def test_an_answer_of_the_wrong_shape_is_a_protocol_error(name):
    for wrong in ([], "text", 5, None, {"messages": 5, "stores": 5, "name": 5, "strategy": []}):
        agent, _ = client(reply(wrong))

        with pytest.raises(TransportProtocolError) as caught:
            METHODS[name][0](agent)

        assert URL in str(caught.value)
        assert caught.value.request_id


@pytest.mark.parametrize("name", ["send_task", "cancel_task"])
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"error": "quota exceeded", "type": "QuotaError"},
        {"detail": "service unavailable"},
        {"ok": False, "error": {"message": "boom"}},
        {"id": "t-1", "error": {"message": "boom"}},
        {"id": "t-1", "state": None},
        CARD,
    ],
    ids=str,
)
def test_an_object_that_is_no_task_is_no_answer(name, told):
    """What a gateway says with status 200 must not look like a task that was submitted."""
    agent, _ = client(reply(told))

    with pytest.raises(TransportProtocolError, match="no task: it has no state"):
        METHODS[name][0](agent)


@pytest.mark.parametrize("name", METHODS)
def test_only_what_the_table_of_operations_allows_is_repeated(name):
    policy = TransportConfig(retry=RetryPolicy(max_attempts=3, initial_backoff=0, jitter=0))
    refused = TransportConnectionError("refused", retryable=True)
    agent, transport = client(refused, reply(METHODS[name][1]), config=policy)

    if name in RETRIED:
        METHODS[name][0](agent)
        first, second = transport.calls
        assert (second.body, second.headers) == (first.body, first.headers)
    else:
        with pytest.raises(TransportConnectionError):
            METHODS[name][0](agent)
        assert len(transport.calls) == 1


# --- tasks --------------------------------------------------------------------------------------


def test_a_task_is_sent_as_it_is_and_not_changed():
    agent, transport = client(reply(TASK))
    task = Task.create(Message.user("hi"))
    before = copy.deepcopy(task)

    result = agent.send_task(URL, task)

    assert body(transport) == task.to_dict()
    assert task == before
    assert result is not task


@pytest.mark.parametrize("state", ["failed", "canceled", "input-required", "working", "odd"])
def test_a_task_in_any_state_is_an_answer_and_no_error(state):
    agent, _ = client(reply({**TASK, "state": state}))

    task = agent.send_task(URL, Task.create("hi"))

    assert task.to_dict()["state"] == state


def test_the_same_task_has_the_same_key_and_a_continued_one_another():
    agent, transport = client(*[reply(TASK)] * 3)
    task = Task.create(Message.user("hi"))

    agent.send_task(URL, task)
    agent.send_task(URL, task)
    task.add_message(Message.user("and then?"))
    agent.send_task(URL, task)

    first, again, continued = (call.headers["Idempotency-Key"] for call in transport.calls)
    assert first == again
    assert first != continued
    assert {key.partition(":")[0] for key in (first, again, continued)} == {task.id}


@pytest.mark.parametrize("task_id", ["x" * 201, "ä", "a\nb", "", "\ud800", "tab\t"])
def test_an_id_that_fits_no_header_is_hashed(task_id):
    agent, transport = client(reply(TASK))

    agent.send_task(URL, Task(task_id))

    key = transport.calls[0].headers["Idempotency-Key"]
    identity, _, digest = key.partition(":")
    assert (len(identity), len(digest)) == (64, 32)
    assert key.isascii()


def test_a_key_of_the_callers_wins():
    agent, transport = client(reply(TASK), reply(TASK))

    agent.send_task(URL, Task.create("hi"), idempotency_key="order-5")
    agent.send_infer_task("hi", URL, idempotency_key="order-6")

    keys = [call.headers["Idempotency-Key"] for call in transport.calls]
    assert keys == ["order-5", "order-6"]


@pytest.mark.parametrize("key", ["", "a\nb", "ü"])
def test_a_key_that_cannot_be_sent_is_a_value_error(key):
    agent, transport = client(reply(TASK))

    with pytest.raises(ValueError, match="idempotency_key"):
        agent.send_task(URL, Task.create("hi"), idempotency_key=key)
    assert transport.calls == []


@pytest.mark.parametrize("task", [{"id": "t"}, "hi", None, Message.user("hi"), Task])
def test_what_is_no_task_is_a_type_error_before_anything_is_sent(task):
    agent, transport = client(reply(TASK))

    with pytest.raises(TypeError, match=r"must be a Task: Task\.create"):
        agent.send_task(URL, task)
    assert transport.calls == []


def test_a_task_that_holds_no_json_is_refused_with_the_path():
    agent, transport = client(reply(TASK))
    wrong = {TypeError: b"x", ValueError: math.nan}

    for error, value in wrong.items():
        with pytest.raises(error, match=r"metadata\.deep\[0\]"):
            agent.send_task(URL, Task("t", metadata={"deep": [value]}))
    assert transport.calls == []


def test_a_question_becomes_one_inference_part():
    agent, transport = client(reply(TASK))

    agent.send_infer_task(
        "total?", URL, user="me", output_schema={"type": "object"}, metadata={"document": 5}
    )

    (message,) = body(transport)["messages"]
    assert message["role"] == "user"
    assert message["parts"] == [
        {
            "type": "infer",
            "content": {
                "prompt": "total?",
                "user": "me",
                "output_schema": {"type": "object"},
                "metadata": {"document": 5},
            },
        }
    ]


def test_a_question_of_the_callers_own_falseness_is_sent():
    agent, transport = client(reply(TASK))

    agent.send_infer_task("", URL)

    assert body(transport)["messages"][0]["parts"][0]["content"] == {"prompt": ""}


# --- send_message -------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["agent", "assistant"])
def test_the_newest_message_of_the_agent_is_the_answer(role):
    agent, _ = client(
        answered(
            Message.user("hi"),
            Message.agent("old"),
            Message(role=role, parts=[Part.text("new")]),
            Message(role="system", parts=[Part.text("note")]),
            Message.user("echo"),
        )
    )

    assert agent.send_message(URL, Message.user("hi")).parts[0].content == "new"


T1, T2 = "2026-01-01T10:00:00.000000001Z", "2026-01-01T11:00:00.000000002+01:00"


@pytest.mark.parametrize(
    ("times", "newest"),
    [
        ([T1, T2], 1),
        ([T2, T1], 0),
        ([T1, T1], 1),
        ([T2, "yesterday"], 0),
        (["yesterday", T1], 1),
        ([T1, None, ""], 0),
        ([None, "", "soon"], 2),
    ],
)
def test_the_newest_message_is_so_by_its_moment(times, newest):
    """Not by its place: an agent may put its messages in any order."""
    said = [
        Message(role="agent", parts=[Part.text(str(place))], timestamp=time)
        for place, time in enumerate(times)
    ]
    agent, _ = client(answered(*said))

    assert agent.send_message(URL, Message.user("hi")).parts[0].content == str(newest)


@pytest.mark.parametrize("make", [Message.agent, Message.assistant])
def test_the_callers_own_message_is_no_answer(make):
    """protolink's client returns it: a failure shown as success."""
    mine = make("I ask as an agent")
    agent, _ = client(answered(mine))

    with pytest.raises(NoResponseMessageError):
        agent.send_message(URL, mine)

    agent, _ = client(answered(mine, Message.agent("yes"), mine))
    assert agent.send_message(URL, mine).parts[0].content == "yes"


@pytest.mark.parametrize("artifacts", [0, 2])
def test_a_task_without_an_answering_message_is_an_error_that_has_the_task(artifacts):
    agent, _ = client(answered(Message.user("hi"), artifacts=artifacts))

    with pytest.raises(NoResponseMessageError, match="Use send_task") as caught:
        agent.send_message(URL, Message.user("hi"))

    assert isinstance(caught.value, RuntimeError)
    assert len(caught.value.task.artifacts) == artifacts
    assert ("2 artifact(s)" in str(caught.value)) == bool(artifacts)


def test_a_message_is_sent_in_a_new_task_each_time():
    agent, transport = client(*[answered(Message.agent("yes"))] * 2)
    message = Message.user("hi")

    agent.send_message(URL, message)
    agent.send_message(URL, message)

    first, second = body(transport, 0), body(transport, 1)
    assert first["messages"] == second["messages"] == [message.to_dict()]
    assert first["id"] != second["id"]


@pytest.mark.parametrize("message", ["hi", {"role": "user"}, None, Task.create("hi")])
def test_what_is_no_message_is_a_type_error(message):
    agent, transport = client()

    with pytest.raises(TypeError, match=r"Message\.user"):
        agent.send_message(URL, message)
    assert transport.calls == []


# --- control ------------------------------------------------------------------------------------


def test_a_cancel_carries_reason_and_metadata():
    agent, transport = client(reply(TASK))

    agent.cancel_task(URL, "t-1", reason="stop", metadata={"source": "cli"})

    assert body(transport) == {"id": "t-1", "metadata": {"source": "cli", "reason": "stop"}}


def test_the_callers_metadata_is_not_changed():
    agent, _ = client(reply(TASK))
    metadata = {"source": "cli"}

    agent.cancel_task(URL, "t-1", reason="stop", metadata=metadata)

    assert metadata == {"source": "cli"}


@pytest.mark.parametrize("task_id", ["", "  ", None])
def test_a_cancel_needs_an_id(task_id):
    agent, transport = client()

    with pytest.raises((TypeError, ValueError), match="id"):
        agent.cancel_task(URL, task_id)
    assert transport.calls == []


def test_control_requests_carry_the_documented_defaults():
    agent, transport = client(reply(HISTORY), reply(STATE), reply(STATE), reply(STATE))

    agent.compact_history(URL)
    agent.describe_state(URL)
    agent.reset_state(URL)
    agent.compact_state(URL, session_id="s-1")

    history, describe, reset, compact = (body(transport, n) for n in range(4))
    sizes = {
        "max_messages": 20,
        "max_tokens": 4000,
        "preserve_recent": 6,
        "summary_max_tokens": 512,
    }
    state = {"session_id": None, "stores": [], "include_data": False, "strategy": "tokens"}
    assert history == {"strategy": "recent", **sizes, **rest(history, sizes, "strategy")}
    assert describe == reset == {**state, **sizes, "metadata": {}}
    assert compact == {**describe, "session_id": "s-1", "stores": ["conversation"]}


def rest(request: Any, *known: Any) -> Any:
    names = {name for group in known for name in ([group] if isinstance(group, str) else group)}
    more = {name: value for name, value in request.items() if name not in names}
    assert all(value in (None, {}) for value in more.values())
    return more


@pytest.mark.parametrize("stores", ["flow", ["flow"], ("flow",)])
def test_stores_are_one_name_or_several(stores):
    agent, transport = client(reply(STATE), reply(STATE))

    agent.describe_state(URL, stores=stores, include_data=True, session_id="s")
    agent.reset_state(URL, stores=stores)

    assert body(transport, 0)["stores"] == body(transport, 1)["stores"] == ["flow"]
    assert (body(transport, 0)["include_data"], body(transport, 0)["session_id"]) == (True, "s")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: c.compact_history(URL, strategy="all"),
        lambda c: c.compact_state(URL, session_id="s", strategy="all"),
        lambda c: c.compact_state(URL, session_id="s", preserve_recent=-1),
        lambda c: c.compact_state(URL),
        lambda c: c.describe_state(URL, "s"),
        lambda c: c.reset_state(URL, include_data=True),
    ],
)
def test_a_wrong_argument_is_the_callers_error_before_anything_is_sent(wrong):
    agent, transport = client()

    with pytest.raises((TypeError, ValueError)):
        wrong(agent)
    assert transport.calls == []


# --- streaming, protocol, addresses -------------------------------------------------------------


def test_streaming_on_a_transport_that_does_not_stream_fails_at_the_call():
    """Not at the first ``next()``: nobody may have called that yet."""
    with AgentClient("http") as agent:
        with pytest.raises(NotImplementedError, match="send_task") as caught:
            agent.send_task_streaming("http://127.0.0.1:9", Task.create("hi"))
        sent = agent.transport.metrics.streams_started

    assert caught.value.url == "http://127.0.0.1:9"  # type: ignore[attr-defined]
    assert sent == 0


PROTOCOL_METHODS = ["send_task", "send_infer_task", "send_message", "cancel_task"]


@pytest.mark.parametrize("name", PROTOCOL_METHODS)
def test_the_protocol_is_one_of_three(name):
    call, answer, _, _ = METHODS[name]
    agent, transport = client(*[reply(answer)] * 2)

    call(agent, protocol="auto")
    call(agent, protocol="protolink")

    for wrong in ("http", "A2A", "", None, 5, ["auto"]):
        with pytest.raises(ValueError, match="known: auto, protolink, a2a"):
            call(agent, protocol=wrong)
    with pytest.raises(RuntimeError, match="a2a"):
        call(agent, protocol="a2a")
    assert len(transport.calls) == 2


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("", ValueError),
        ("agent.test", ValueError),
        ("ftp://agent.test", ValueError),
        ("http://", ValueError),
        ("http://agent.test?x=1", ValueError),
        ("http://agent.test#x", ValueError),
        ("http://agent.test:x", ValueError),
        ("http://agent.test:0", ValueError),
        ("http://agent.test:99999", ValueError),
        ("http://user@agent.test", ValueError),
        ("http://agent.test/a b", ValueError),
        ("http://agent.test/\r\nX: y", ValueError),
        ("http://ägent.test", ValueError),
        (b"http://agent.test", TypeError),
        (5, TypeError),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_sent(url, error):
    agent, transport = client()

    with pytest.raises(error):
        agent.get_agent_card(url)
    assert transport.calls == []


def test_a_path_before_the_operations_is_kept_and_a_slash_at_its_end_is_none():
    agent, transport = client(*[reply(CARD)] * 3)

    for url in ("http://agent.test", "http://agent.test/", "http://agent.test/a/b/"):
        agent.get_agent_card(url)

    assert [call.url for call in transport.calls] == [
        "http://agent.test",
        "http://agent.test",
        "http://agent.test/a/b",
    ]


# --- errors -------------------------------------------------------------------------------------


def test_an_error_names_its_call():
    agent, _ = client(reply(status=500, body=b"Internal Server Error"))

    with pytest.raises(TransportRemoteError, match=f"send_task to {URL}") as caught:
        agent.send_task(URL, Task.create("hi"))

    error = caught.value
    assert (error.url, error.status_code, error.retryable) == (URL, 500, False)
    assert len(error.request_id or "") == 32
    assert error.attempt_count == 1
    assert error.elapsed is not None


def test_a_spent_budget_says_that_the_task_may_run():
    agent, _ = client(silence())

    with pytest.raises(TransportTimeoutError, match="cancel_task ends it") as caught:
        agent.send_task(URL, Task.create("hi"), timeout=0.02)

    assert isinstance(caught.value, TimeoutError)
    assert (caught.value.phase, caught.value.retryable) == ("wait", False)


def test_errors_of_a_transport_that_is_not_ours_pass_through():
    agent, _ = client(ZeroDivisionError("a bug"))

    with pytest.raises(ZeroDivisionError):
        agent.get_agent_card(URL)


# --- the client itself --------------------------------------------------------------------------


def test_the_synchronous_client_is_the_client():
    agent, _ = client()

    assert SyncAgentClient is AgentClient
    assert agent.sync is agent
    assert isinstance(agent.sync, SyncAgentClient)


def test_the_documented_parameters_are_there_in_the_documented_order():
    documented = {
        "__init__": ["transport", "url", "timeout"],
        "send_task": ["agent_url", "task", "protocol"],
        "send_infer_task": [
            "query",
            "agent_url",
            "user",
            "output_schema",
            "metadata",
            "protocol",
        ],
        "send_task_streaming": ["agent_url", "task"],
        "cancel_task": ["agent_url", "task_id", "reason", "metadata", "protocol"],
        "compact_history": [
            "agent_url",
            "strategy",
            "max_messages",
            "max_tokens",
            "preserve_recent",
            "summary_max_tokens",
            "session_id",
            "metadata",
        ],
        "describe_state": ["agent_url", "session_id", "stores", "include_data", "metadata"],
        "reset_state": ["agent_url", "session_id", "stores", "metadata"],
        "compact_state": [
            "agent_url",
            "session_id",
            "strategy",
            "max_messages",
            "max_tokens",
            "preserve_recent",
            "summary_max_tokens",
            "metadata",
        ],
        "send_message": ["agent_url", "message", "protocol"],
        "get_agent_card": ["agent_url"],
    }

    for name, expected in documented.items():
        parameters = list(inspect.signature(getattr(AgentClient, name)).parameters)[1:]
        assert parameters[: len(expected)] == expected, name


def test_the_class_has_the_documented_specs():
    for name in (
        "TASK_REQUEST",
        "TASK_STREAM_REQUEST",
        "TASK_CANCEL_REQUEST",
        "COMPACT_HISTORY_REQUEST",
        "DESCRIBE_STATE_REQUEST",
        "RESET_STATE_REQUEST",
        "COMPACT_STATE_REQUEST",
        "AGENT_CARD_REQUEST",
    ):
        assert getattr(AgentClient, name) is getattr(specs, name)


def test_a_transport_is_made_from_its_name():
    for name, kind in (
        ("http", HTTPTransport),
        ("HTTP", HTTPTransport),
        ("runtime", RuntimeTransport),
    ):
        with AgentClient(name, timeout=7) as agent:
            assert type(agent.transport) is kind
            assert agent.transport.timeout == 7
    assert AgentClient("http", "http://h:1/").transport.url == "http://h:1"
    assert AgentClient(transport="http", url="http://h:1").transport.timeout == 300


def test_a_name_without_an_address_is_accepted():
    agent = AgentClient("http")

    assert agent.transport.url is None
    with pytest.raises(ValueError, match="has no url"):
        agent.get_agent_card(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("htpp",), ValueError, "known: .*http.*runtime"),
        (("",), ValueError, "known: "),
        (("ws",), ValueError, "known: "),
        ((5,), TypeError, "must be a Transport"),
        ((None,), TypeError, "must be a Transport"),
        (("http", "no url"), ValueError, "no url"),
        (("http", "runtime://x"), ValueError, "http"),
        (("http", None, 0), ValueError, "timeout"),
        (("http", None, "5"), TypeError, "timeout"),
        ((HTTPTransport,), TypeError, "must be a Transport"),
    ],
)
def test_a_wrong_argument_of_the_constructor_says_what_is_possible(arguments, error, words):
    with pytest.raises(error, match=words):
        AgentClient(*arguments)


def test_with_a_transport_object_address_and_budget_are_ignored():
    """As documented: the object's own settings stay."""
    transport = ScriptedTransport(url=URL, timeout=5)

    agent = AgentClient(transport, "http://other.test", 99)

    assert agent.transport is transport
    assert (transport.url, transport.timeout) == (URL, 5)


def test_a_given_transport_stays_open_and_a_made_one_is_closed():
    transport = ScriptedTransport(reply(CARD))
    with AgentClient(transport) as agent:
        pass
    agent.close()
    assert agent.get_agent_card(URL).name == "a"

    with AgentClient("http", "http://127.0.0.1:9") as made:
        pass
    made.close()
    with pytest.raises(ClientClosedError):
        made.get_agent_card("http://127.0.0.1:9")
    assert made.transport.health()["status"] == "stopped"


def test_with_closes_also_when_the_block_fails():
    agent = AgentClient("http")

    with pytest.raises(ZeroDivisionError), agent:
        raise ZeroDivisionError

    with pytest.raises(ClientClosedError):
        agent.get_agent_card("http://127.0.0.1:9")


def test_transport_and_a2a_are_read_only():
    agent, _ = client()

    for name in ("transport", "a2a", "sync"):
        with pytest.raises(AttributeError):
            setattr(agent, name, None)
    assert agent.a2a is False


def test_a_client_is_pickled_with_its_settings():
    agent = AgentClient(
        HTTPTransport("http://h:1", 7, headers={"X-A": "1"}, trust_env=False), timeout=9
    )

    for again in (pickle.loads(pickle.dumps(agent)), pickle.loads(pickle.dumps(agent.sync))):
        assert again.transport is not agent.transport
        assert (again.transport.url, again.transport.timeout) == ("http://h:1", 7)
        again.close()
        assert again.transport.health()["ready"], "a given transport is not the copy's to close"

    made = pickle.loads(pickle.dumps(AgentClient("http")))
    made.close()
    assert not made.transport.health()["ready"]


def test_a_client_shows_its_transport():
    assert "http://h:1" in repr(AgentClient("http", "http://h:1"))


def test_threads_share_a_client():
    agent, transport = client(*[lambda call: reply(call.data)] * 80)
    wrong: list[Any] = []

    def work(number):
        for step in range(10):
            task = Task(f"t-{number}-{step}")
            if agent.send_task(URL, task).id != task.id:
                wrong.append(task.id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert wrong == []
    assert transport.metrics.requests_succeeded == 80
