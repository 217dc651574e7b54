"""Cancelling: of the task at the agent, and of the call here; stopping a stream early."""

from __future__ import annotations

import time

import pytest

from protolink_sync import CancelToken
from protolink_sync.a2a import (
    A2ATaskNotCancelableError,
    A2ATaskNotFoundError,
    SendConfiguration,
    TaskState,
)
from protolink_sync.errors import CallCancelledError
from tests.a2a.client.scenes import Running, stream_workers
from tests.a2a.client.test_selection import NEW, OPERATIONS
from tests.a2a.scripted import (
    HOLD,
    artifact_update,
    card,
    done,
    error,
    old_card,
    reply,
    result,
    sent,
    status_update,
    stream,
    task,
)
from tests.cases.play import eventually
from tests.cases.server import ScriptedServer
from tests.transport.scenes import at_once


@pytest.mark.parametrize("old", [False, True])
def test_b100_cancelling_a_task_gives_it_back(old, meet):
    agent, client = meet(result(task("canceled", old=old)), card=old_card() if old else card())

    canceled = client.cancel_task("t1", metadata={"reason": "enough"})

    assert canceled.status.state is TaskState.CANCELED
    assert agent.methods == ["tasks/cancel" if old else "CancelTask"]
    assert agent.calls[0].params == {"id": "t1", "metadata": {"reason": "enough"}}


@pytest.mark.parametrize(
    ("code", "kind"), [(-32002, A2ATaskNotCancelableError), (-32001, A2ATaskNotFoundError)]
)
def test_b100_what_cannot_be_cancelled_says_why(code, kind, meet):
    _, client = meet(error(code))

    with pytest.raises(kind):
        client.cancel_task("t1")


def test_b100_a_cancel_without_a_reason_sends_none(meet):
    agent, client = meet(result(task("canceled")))

    client.cancel_task("t1")

    assert agent.calls[0].params == {"id": "t1"}


@pytest.mark.parametrize("operation", ["send_message", "stream"])
def test_b101_a_cancel_waits_for_no_other_call(operation, meet):
    answers = {
        "SendMessage": [{"op": "wait", "event": "go", "s": 10}, done()],
        "SendStreamingMessage": stream(
            sent(task("working")), {"op": "wait", "event": "go", "s": 10}, status_update("canceled")
        ),
        "CancelTask": result(task("canceled")),
    }
    agent, client = meet(methods=answers)
    work = (
        (lambda: client.send_message("hi"))
        if operation == "send_message"
        else (lambda: client.stream_message("hi").result())
    )
    running = Running(work)
    agent.wait_for_requests(2)

    assert client.cancel_task("t1").status.state is TaskState.CANCELED

    assert running.alive
    first, second = (call.request.connection for call in agent.calls)
    assert first != second
    agent.fire("go")
    assert running.end().error is None


def test_b102_a_send_that_does_not_wait_tells_the_id_of_its_task(meet):
    agent, client = meet(
        methods={
            "SendMessage": result(sent(task("submitted"))),
            "CancelTask": result(task("canceled")),
        }
    )

    begun = client.send_message("hi", configuration=SendConfiguration(return_immediately=True))
    client.cancel_task(begun.id)

    assert agent.calls[1].params["id"] == begun.id == "t1"


def test_b102_the_first_event_of_a_stream_tells_it_too(meet):
    _agent, client = meet(stream(sent(task("submitted")), end=(HOLD,)))

    with client.stream_message("hi") as stream_:
        first = next(stream_)

    assert (first.task_id, first.context_id) == ("t1", "c1")


# ---- a token -----------------------------------------------------------------------------------

SILENT = {
    "while the card is read": {"card": [[HOLD]]},
    "while the card drips": {
        "card": [
            [
                {"op": "head", "headers": {"Content-Length": "900"}},
                {"op": "drip", "data": "{" + " " * 800, "every_s": 0.02},
                HOLD,
            ]
        ]
    },
    "while an answer is waited for": {"methods": {"SendMessage": [HOLD]}},
    "while an answer is read": {
        "methods": {"SendMessage": [{"op": "send", "data": "HTTP/1.1 200 OK\r\nContent-"}, HOLD]}
    },
    "while a probe waits": {"card": None, "methods": {"SendMessage": [HOLD]}},
    "while the second probe waits": {
        "card": None,
        "methods": {"SendMessage": error(-32601), "message/send": [HOLD]},
    },
}


# How many requests have come at that moment.
MOMENT = dict(zip(SILENT, (1, 1, 2, 2, 2, 3), strict=True))


@pytest.mark.parametrize("moment", SILENT)
def test_b103_a_token_ends_a_send_at_once(moment, meet):
    agent, client = meet(**SILENT[moment])
    token = CancelToken()
    running = Running(lambda: client.send_message("hi", cancel=token))
    agent.wait_for_requests(MOMENT[moment])

    cancelled = time.monotonic()
    token.cancel("enough")
    running.end(5)

    assert isinstance(running.error, CallCancelledError)
    assert running.error.reason == "enough"
    assert running.ended_at - cancelled < at_once()
    connection = agent.requests[-1].connection
    assert agent.wait_for_end(connection, 2) == "client"
    assert agent.connections[connection - 1].closed_at - cancelled < at_once()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_b103_every_operation_takes_a_token(operation, meet):
    """A token that is cancelled already sends nothing at all."""
    method, answer = NEW[operation]
    agent, client = meet(methods={method: answer})
    token = CancelToken()
    token.cancel()
    with_token = {
        "send": lambda: client.send_message("hi", cancel=token),
        "stream": lambda: client.stream_message("hi", cancel=token).result(),
        "get": lambda: client.get_task("t1", cancel=token),
        "cancel": lambda: client.cancel_task("t1", cancel=token),
        "list": lambda: list(client.list_tasks(cancel=token)),
        "subscribe": lambda: client.subscribe("t1", cancel=token).result(),
        "push create": lambda: client.get_push_config("t1", "p1", cancel=token),
        "push get": lambda: client.get_push_config("t1", "p1", cancel=token),
        "push list": lambda: client.list_push_configs("t1", cancel=token),
        "push delete": lambda: client.delete_push_config("t1", "p1", cancel=token),
        "extended card": lambda: client.get_extended_card(cancel=token),
    }

    with pytest.raises(CallCancelledError):
        with_token[operation]()

    assert agent.connections == []


@pytest.mark.parametrize("more", ["fetch_agent_card", "rpc_call", "wait", "send_message_streaming"])
def test_b103_so_do_the_other_calls(more, meet):
    agent, client = meet(done())
    token = CancelToken()
    token.cancel()
    calls = {
        "fetch_agent_card": lambda: client.fetch_agent_card(cancel=token),
        "rpc_call": lambda: client.rpc_call("Own", {}, cancel=token),
        "wait": lambda: client.wait("t1", cancel=token),
        "send_message_streaming": lambda: client.send_message_streaming(
            "hi", lambda event: True, cancel=token
        ),
    }

    with pytest.raises(CallCancelledError):
        calls[more]()

    assert agent.connections == []


def test_b103_waiting_for_a_task_ends_with_the_token_too(meet):
    agent, client = meet(result(task("working")))
    token = CancelToken()
    running = Running(lambda: client.wait("t1", poll_interval=30, cancel=token))
    agent.wait_for_requests(2)

    cancelled = time.monotonic()
    token.cancel()

    assert isinstance(running.end(5).error, CallCancelledError)
    assert running.ended_at - cancelled < at_once()


def test_b103_a_token_ends_only_its_own_calls(meet):
    """Nine threads share a client; the token of one of them says nothing to the others."""
    agent, client = meet(methods={"SendMessage": [{"op": "wait", "event": "go", "s": 10}, done()]})
    token = CancelToken()
    others = [Running(lambda: client.send_message("hi")) for _ in range(8)]
    mine = Running(lambda: client.send_message("hi", cancel=token))
    agent.wait_for_requests(10)

    token.cancel()
    mine.end(5)
    agent.fire("go")

    assert isinstance(mine.error, CallCancelledError)
    assert [other.end().error for other in others] == [None] * 8
    assert client.send_message("hi").text == "done"


def test_b103_a_waiter_for_the_card_may_leave_without_the_others(meet):
    """The fetch of a thread that gives up is still the fetch of those that wait with it."""
    agent, client = meet(done(), card=[[{"op": "wait", "event": "go", "s": 10}, reply(card())]])
    token = CancelToken()
    leaving = Running(lambda: client.send_message("hi", cancel=token))
    agent.wait_for_requests(1)
    staying = Running(lambda: client.send_message("hi"))

    cancelled = time.monotonic()
    token.cancel()
    leaving.end(5)
    assert isinstance(leaving.error, CallCancelledError)
    assert leaving.ended_at - cancelled < at_once()

    agent.fire("go")
    assert staying.end().error is None
    assert staying.value.text == "done"


def test_b103_the_task_goes_on(meet):
    agent, client = meet(methods={"SendMessage": [HOLD]})
    token = CancelToken()
    running = Running(lambda: client.send_message("hi", cancel=token))
    agent.wait_for_requests(2)

    token.cancel()
    running.end()

    assert agent.methods == ["SendMessage"]


# ---- early stops -------------------------------------------------------------------------------

LONG = stream(
    sent(task("submitted")),
    artifact_update("one"),
    {"op": "wait", "event": "never", "s": 10},
    artifact_update("two", append=True),
    end=(HOLD,),
)


def test_b104_a_callback_that_says_no_ends_the_call_at_once(meet):
    agent, client = meet(LONG)
    seen = []

    stopped = client.send_message_streaming("hi", lambda event: seen.append(event) or len(seen) < 2)
    returned = time.monotonic()

    assert len(seen) == 2
    assert (stopped.id, stopped.artifacts[0].text) == ("t1", "one")
    connection = agent.calls[0].request.connection
    assert agent.wait_for_end(connection, 2) == "client"
    assert agent.connections[connection - 1].closed_at - returned < at_once()


@pytest.mark.parametrize("answer", [None, 0, "", True, 1])
def test_b104_only_false_stops(answer, meet):
    """A callback without a return statement reads on: nothing is lost by forgetting it."""
    _, client = meet(stream(sent(task("submitted")), status_update("completed")))
    seen = []

    def see(event):
        seen.append(event)
        return answer

    client.send_message_streaming("hi", see)

    assert len(seen) == 2


def test_b104_leaving_a_loop_closes_the_connection(meet):
    agent, client = meet(LONG)

    for _ in client.stream_message("hi"):
        break

    connection = agent.calls[0].request.connection
    assert agent.wait_for_end(connection, 2) == "client"
    assert eventually(lambda: not stream_workers())


def test_b105_an_exception_of_a_callback_ends_the_call_and_is_raised(meet):
    agent, client = meet(LONG)

    def fail(event):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        client.send_message_streaming("hi", fail)
    raised = time.monotonic()

    connection = agent.calls[0].request.connection
    assert agent.wait_for_end(connection, 2) == "client"
    assert agent.connections[connection - 1].closed_at - raised < at_once()
    assert eventually(lambda: not stream_workers())


def test_b105_a_callback_may_use_the_client(meet):
    agent, client = meet(
        methods={"SendStreamingMessage": stream(sent(task("completed"))), "GetTask": result(task())}
    )

    client.send_message_streaming("hi", lambda event: client.get_task(event.task_id) and True)

    assert agent.methods == ["SendStreamingMessage", "GetTask"]


def test_b103_a_connection_that_is_not_made_is_left(client_of):
    """Nobody answers: the token ends connecting too."""
    with ScriptedServer({"listen": "blackhole"}) as silent:
        client = client_of(silent.base, connect_timeout=60)
        token = CancelToken()
        running = Running(lambda: client.send_message("hi", cancel=token))
        assert eventually(lambda: client.transport.metrics.requests_started)

        cancelled = time.monotonic()
        token.cancel()

        assert isinstance(running.end(5).error, CallCancelledError)
        assert running.ended_at - cancelled < at_once()
