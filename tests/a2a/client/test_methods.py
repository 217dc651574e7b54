"""Methods: what is sent for each operation, and what comes back."""

from __future__ import annotations

import itertools

import pytest

from protolink_sync.a2a import (
    A2AClient,
    A2AClientError,
    A2AInvalidParamsError,
    A2ATaskNotFoundError,
    A2AUnsupportedOperationError,
    Message,
    MessageSendParams,
    PushNotificationConfig,
    SendConfiguration,
    TaskState,
)
from protolink_sync.errors import (
    StreamingNotSupportedError,
    TransportProtocolError,
    TransportTimeoutError,
)
from tests.a2a.client.scenes import outcome
from tests.a2a.scripted import (
    card,
    done,
    error,
    message,
    old_card,
    reply,
    result,
    stream,
    task,
)

OLD = {"card": old_card()}
NOTHING = {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


def params_of(agent):
    (call,) = agent.calls
    return call.params


@pytest.mark.parametrize(("immediately", "blocking"), [(True, False), (False, True)])
def test_b20_waiting_or_not_is_said_in_the_words_of_the_dialect(immediately, blocking, meet):
    configuration = SendConfiguration(return_immediately=immediately)
    new, client = meet(done())
    client.send_message("hi", configuration=configuration)
    old, client = meet(done(old=True), **OLD)
    client.send_message("hi", configuration=configuration)

    told = params_of(new)["configuration"]
    assert told.get("returnImmediately", False) is immediately
    assert "blocking" not in told
    assert params_of(old)["configuration"]["blocking"] is blocking
    assert "returnImmediately" not in params_of(old)["configuration"]


def test_b20_a_0_3_configuration_always_says_whether_to_wait(meet):
    """Some 0.3 servers read one without it as not to wait."""
    agent, client = meet(done(old=True), **OLD)

    client.send_message("hi", configuration=SendConfiguration(history_length=3))

    assert params_of(agent)["configuration"] == {"blocking": True, "historyLength": 3}


def test_b20_the_rest_of_a_configuration_has_the_names_of_the_dialect(meet):
    configuration = SendConfiguration(
        accepted_output_modes=["text/plain"],
        history_length=0,
        push_config=PushNotificationConfig(url="http://127.0.0.1:9/hook", token="tok"),
    )
    new, client = meet(done())
    client.send_message("hi", configuration=configuration)
    old, client = meet(done(old=True), **OLD)
    client.send_message("hi", configuration=configuration)

    hook = {"url": "http://127.0.0.1:9/hook", "token": "tok"}
    told = params_of(new)["configuration"]
    assert told["acceptedOutputModes"] == ["text/plain"]
    assert told["historyLength"] == 0
    assert told["taskPushNotificationConfig"] == hook
    told = params_of(old)["configuration"]
    assert told["acceptedOutputModes"] == ["text/plain"]
    assert told["pushNotificationConfig"] == hook


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
def test_b21_no_configuration_is_no_member(operation, old, meet):
    answers = {
        "SendMessage": done(),
        "message/send": done(old=True),
        "SendStreamingMessage": stream({"message": message("x")}),
        "message/stream": stream(message("x", old=True)),
    }
    agent, client = meet(methods=answers, card=old_card() if old else card())

    outcome(getattr(client, operation)("hi"))

    assert set(params_of(agent)) == {"message"}


@pytest.mark.parametrize(("length", "members"), [(None, {}), (0, {"historyLength": 0}), (2, 2)])
def test_b22_a_history_of_0_is_asked_for_as_0(length, members, meet):
    agent, client = meet(result(task()))

    client.get_task("t1", history_length=length)

    expected = {"historyLength": members} if isinstance(members, int) else members
    assert params_of(agent) == {"id": "t1", **expected}


@pytest.mark.parametrize(
    ("length", "kept"), [(0, []), (2, ["m2", "m3"]), (None, ["m1", "m2", "m3"])]
)
def test_b22_what_a_0_3_agent_sends_too_much_is_cut(length, kept, meet):
    """There 0 means all of it."""
    history = [message(f"text {n}", old=True, number=n) for n in (1, 2, 3)]
    _, client = meet(result(task(old=True, history=history)), **OLD)

    received = client.get_task("t1", history_length=length)

    assert [one.message_id for one in received.history] == kept


def test_b22_a_negative_history_is_refused(meet):
    agent, client = meet(error(-32602))

    with pytest.raises((A2AInvalidParamsError, ValueError)):
        client.get_task("t1", history_length=-1)

    assert len(agent.calls) <= 1


def page(*ids, token=""):
    tasks = [{**task(), "id": one} for one in ids]
    return result({"tasks": tasks, "nextPageToken": token, "pageSize": 2, "totalSize": 3})


def test_b23_a_list_goes_over_all_pages(meet):
    agent, client = meet(page("t1", "t2", token="more"), page("t3"))

    listed = [one.id for one in client.list_tasks(page_size=2)]

    assert listed == ["t1", "t2", "t3"]
    assert [call.params for call in agent.calls] == [
        {"pageSize": 2},
        {"pageSize": 2, "pageToken": "more"},
    ]


def test_b23_a_page_is_asked_for_when_it_is_needed(meet):
    agent, client = meet(page("t1", "t2", token="more"), page("t3"))

    assert next(iter(client.list_tasks())).id == "t1"

    assert len(agent.calls) == 1


def test_b23_filters_go_out_as_given(meet):
    agent, client = meet(result(NOTHING))

    assert (
        list(
            client.list_tasks(
                context_id="c1",
                status=TaskState.WORKING,
                history_length=0,
                status_timestamp_after="2026-01-01T00:00:00Z",
                include_artifacts=True,
            )
        )
        == []
    )

    assert params_of(agent) == {
        "contextId": "c1",
        "status": "TASK_STATE_WORKING",
        "historyLength": 0,
        "statusTimestampAfter": "2026-01-01T00:00:00Z",
        "includeArtifacts": True,
    }


def test_b23_a_page_size_beyond_the_allowed_is_refused(meet):
    agent, client = meet(error(-32602, "pageSize"))

    with pytest.raises((A2AInvalidParamsError, ValueError)):
        list(client.list_tasks(page_size=101))

    assert len(agent.calls) <= 1


def test_b23_a_page_that_repeats_for_ever_ends_with_an_error(meet):
    """An agent that gives the same token again would be asked without end."""
    _, client = meet(page("t1", token="again"))

    with pytest.raises(TransportProtocolError, match="again"):
        list(itertools.islice(client.list_tasks(), 10))


def test_b23_the_0_3_dialect_has_no_list(meet):
    agent, client = meet(error(-32601), **OLD)

    with pytest.raises(A2AClientError):
        list(client.list_tasks())

    assert "ListTasks" not in agent.methods


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (-32004, A2AUnsupportedOperationError),
        (-32602, A2AInvalidParamsError),
        (-32001, A2ATaskNotFoundError),
    ],
)
def test_b24_what_a_task_cannot_take_is_an_error_of_its_kind(code, kind, meet):
    agent, client = meet(error(code))

    with pytest.raises(kind):
        client.send_message("more", task_id="t1", context_id="c1")

    assert len(agent.calls) == 1


def test_b24_the_id_of_a_task_is_enough_to_continue(meet):
    agent, client = meet(done())

    client.send_message("more", task_id="t1")
    client.send_message(Message.user("more", task_id="t1"))

    for call in agent.calls:
        assert call.params["message"]["taskId"] == "t1"
        assert "contextId" not in call.params["message"]


def test_b24_ids_given_beside_a_message_go_into_it_and_not_into_the_callers(meet):
    agent, client = meet(done())
    mine = Message.user("more")

    client.send_message(mine, task_id="t1", context_id="c1")

    told = agent.calls[0].params["message"]
    assert (told["taskId"], told["contextId"]) == ("t1", "c1")
    assert not mine.task_id
    assert not mine.context_id


def test_b24_params_go_out_as_given(meet):
    agent, client = meet(done())
    asked = MessageSendParams(Message.user("hi", context_id="mine"), metadata={"k": [1]})

    client.send_message(asked)

    assert params_of(agent)["metadata"] == {"k": [1]}
    assert params_of(agent)["message"]["contextId"] == "mine"
    assert params_of(agent)["message"]["messageId"] == asked.message.message_id


MISTAKES = {
    "no text and no message": (5, {}),
    "a message without parts": (Message.user([]), {}),
    "NaN in the metadata": ("hi", {"metadata": {"score": float("nan")}}),
    "bytes in the metadata": ("hi", {"metadata": {"raw": b"1"}}),
    "an odd value in the metadata": ("hi", {"metadata": {"any": object()}}),
    "ids beside whole parameters": (MessageSendParams(Message.user("hi")), {"task_id": "t1"}),
}


@pytest.mark.parametrize("operation", ["send_message", "stream_message"])
@pytest.mark.parametrize("what", MISTAKES)
def test_b24_a_mistake_of_the_caller_is_told_before_anything_is_sent(what, operation, meet):
    """Also before the card is asked for."""
    given, words = MISTAKES[what]
    agent, client = meet(done())

    with pytest.raises((ValueError, TypeError)):
        getattr(client, operation)(given, **words)

    assert agent.connections == []


UNABLE = {
    "streaming": lambda c: c.stream_message("hi"),
    "streaming, by callback": lambda c: c.send_message_streaming("hi", lambda event: True),
    "streaming, of a task": lambda c: c.subscribe("t1"),
    "pushNotifications": lambda c: c.list_push_configs("t1"),
    "pushNotifications, at the send": lambda c: c.send_message(
        "hi",
        configuration=SendConfiguration(
            push_config=PushNotificationConfig(url="http://127.0.0.1:9/hook")
        ),
    ),
    "extendedAgentCard": lambda c: c.get_extended_card(),
}


@pytest.mark.parametrize("what", UNABLE)
def test_b25_what_the_card_does_not_offer_is_not_asked_for(what, meet):
    agent, client = meet(error(-32004), card=card(capabilities={}))

    with pytest.raises((A2AClientError, StreamingNotSupportedError)):
        UNABLE[what](client)

    assert agent.calls == []


@pytest.mark.parametrize("what", UNABLE)
def test_b25_strict_false_asks_anyway(what, meet):
    agent, client = meet(error(-32004), card=card(capabilities={}), client={"strict": False})

    with pytest.raises(A2AUnsupportedOperationError):
        outcome(UNABLE[what](client))

    assert len(agent.calls) == 1


def test_b25_without_a_card_nothing_is_known_to_be_missing(meet):
    agent, client = meet(stream({"message": message("x")}), card=None)

    assert client.stream_message("hi").result().text == "x"

    assert len(agent.calls) == 1


def test_b25_the_extended_card_of_0_3_is_told_by_its_own_member(meet):
    offered = old_card()
    del offered["supportsAuthenticatedExtendedCard"]
    agent, client = meet(error(-32601), card=offered)

    with pytest.raises(A2AClientError):
        client.get_extended_card()

    assert agent.calls == []


def test_b100_cancelling_says_why_and_gives_the_task_as_it_stands(meet):
    agent, client = meet(result(task("working")))

    stands = client.cancel_task("t1", metadata={"reason": "enough"})

    assert stands.status.state is TaskState.WORKING
    assert params_of(agent) == {"id": "t1", "metadata": {"reason": "enough"}}


def test_waiting_for_a_task_asks_until_it_is_over(meet):
    agent, client = meet(result(task("working")), result(task("working")), result(task(text="so")))

    over = client.wait("t1", timeout=10, poll_interval=0.01)

    assert over.text == "so"
    assert agent.methods == ["GetTask"] * 3


def test_waiting_for_a_task_ends_with_its_time(meet):
    _, client = meet(result(task("working")))

    with pytest.raises(TransportTimeoutError):
        client.wait("t1", timeout=0.2, poll_interval=0.01)


# ---- what was not asked for --------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get_task("another"),
        lambda client: client.cancel_task("another"),
        lambda client: client.wait("another"),
    ],
    ids=["get_task", "cancel_task", "wait"],
)
def test_a_task_that_was_not_asked_for_is_refused(ask, meet):
    """It would be a wrong answer given to somebody."""
    _, client = meet(result(task("completed")))

    with pytest.raises(TransportProtocolError, match="'t1'"):
        ask(client)


def test_a_push_config_of_another_task_is_refused(meet):
    config = {"taskId": "t2", "id": "c", "url": "http://127.0.0.1/"}
    _, client = meet(result(config), card=card(capabilities={"pushNotifications": True}))

    with pytest.raises(TransportProtocolError, match="'t2'"):
        client.get_push_config("t1", "c")


@pytest.mark.parametrize("name", ["A2A-Version", "content-type", "Accept", "A2A-Extensions"])
def test_headers_that_a2a_has_of_its_own_are_refused(name):
    with pytest.raises(ValueError, match=name):
        A2AClient("http://127.0.0.1:1", headers={name: "x"})


def test_only_a_0_3_agent_may_answer_a_delete_with_nothing(meet):
    """Q1 is a quirk of 0.3; in 1.0 an answer without result is none."""
    config = card(capabilities={"pushNotifications": True})
    _, client = meet(reply({"jsonrpc": "2.0", "id": 1}), card=config)

    with pytest.raises(TransportProtocolError):
        client.delete_push_config("t1", "c")
