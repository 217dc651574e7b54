"""What a hosted agent answers over A2A: its methods, one after the other."""

from __future__ import annotations

import pytest

from protolink_sync.models import AgentCard, Artifact, Message, Part
from protolink_sync.server import Agent
from tests.server.a2a_calling import A2ACaller, calling, message, model, said, state
from tests.server.hosting import LIMIT, Kitchen, card, in_background, text_task

PUSH = ["Create{}", "Get{}", "List{}s", "Delete{}"]


def test_a_message_is_answered_with_the_task():
    with calling(Kitchen()) as (caller, _):
        task = caller.send("echo hello", contextId="c1")

    assert state(task) == "COMPLETED"
    assert task["contextId"] == "c1"
    assert said(task) == "hello"
    assert [item["role"] for item in task["history"]] == ["ROLE_USER", "ROLE_AGENT"]
    assert task["history"][1] == task["status"]["message"]
    assert task["status"]["timestamp"].endswith("Z")


def test_text_asks_the_model():
    """Over A2A there is nothing else to ask it with; natively text is inert."""
    with calling(model()) as (caller, _):
        task = caller.send("good morning")
        native = caller.request("POST", "/tasks/", text_task("good morning").to_dict()).task()

    assert [part["text"] for a in task["artifacts"] for part in a["parts"]] == ["good morning"]
    assert native.artifacts == []


def test_contents_are_translated_both_ways():
    class Mirror(Agent):
        def handle_task(self, task):
            task.add_artifact(Artifact("a1", task.messages[-1].parts, {"n": 1}, name="mirror"))
            return task.add_artifact(Artifact("a2", [Part.tool_call("t", {"x": 1}, "c1")]))

    accepted = ["text/plain", "application/json", "image/png"]
    parts = [
        {"text": "one"},
        {"data": {"k": [1, None]}},
        {"data": None},
        {"raw": "aGk=", "filename": "f.png", "mediaType": "image/png", "metadata": {"m": 1}},
        {"url": "http://files.test/x"},
    ]
    with calling(Mirror(card(input_formats=accepted))) as (caller, _):
        task = caller.send("", parts=parts)

    # A task that the handler leaves as it was is done all the same.
    assert state(task) == "COMPLETED"
    assert task["artifacts"] == [
        {"artifactId": "a1", "name": "mirror", "metadata": {"n": 1}, "parts": parts},
        {
            "artifactId": "a2",
            "parts": [
                {
                    "data": {"tool_name": "t", "args": {"x": 1}, "call_id": "c1"},
                    "metadata": {"protolinkPartType": "tool_call"},
                }
            ],
        },
    ]


def test_the_handler_finds_where_the_task_came_from():
    class Clerk(Agent):
        def handle_task(self, task):
            wanted = ("a2a_context_id", "a2a_inbound", "a2a_tenant", "session_id")
            part = Part.json({name: task.metadata[name] for name in wanted})
            return task.add_artifact(Artifact(parts=[part]))

    with calling(Clerk(card())) as (caller, _):
        task = caller.send("x", contextId="c1", tenant="acme")

    assert task["artifacts"][0]["parts"][0]["data"] == {
        "a2a_context_id": "c1",
        "a2a_inbound": True,
        "a2a_tenant": "acme",
        "session_id": "c1",
    }


def test_an_agent_may_answer_with_a_message_in_place_of_a_task():
    class Terse(Agent):
        def handle_task(self, task):
            task.metadata["a2a_response_kind"] = "message"
            if task.messages[0].text == "fail":
                return task.add_message(Message.agent("nearly")).fail("no")
            return task.complete("hi")

    with calling(Terse(card())) as (caller, _):
        answer = caller.result("SendMessage", message("x"))
        failed = caller.result("SendMessage", message("fail"))

    assert list(answer) == ["message"]
    assert answer["message"]["parts"] == [{"text": "hi"}]
    # What failed must not look like an answer.
    assert state(failed["task"]) == "FAILED"
    assert said(failed["task"]) == "no"


@pytest.mark.parametrize("text", ["raise secret", "nothing", "bytes"])
def test_an_agent_that_raises_fails_the_task_and_tells_nothing(text):
    with calling(Kitchen()) as (caller, _):
        task = caller.send(text)
        again = caller.result("GetTask", {"id": task["id"]})

    assert state(task) == "FAILED"
    assert said(task) == "the agent failed; its log says why"
    assert len(task["history"]) == 1
    assert again == task


def test_a_task_that_fails_says_why():
    class Sorry(Agent):
        def handle_task(self, task):
            return task.fail("no flour left")

    with calling(Sorry(card())) as (caller, _):
        task = caller.send("bread")

    assert (state(task), said(task)) == ("FAILED", "no flour left")


def test_a_handler_cannot_answer_with_another_task():
    class Swap(Agent):
        def handle_task(self, task):
            other = text_task("mine").complete("of somebody else")
            return other.add_artifact(Artifact().add_text("of somebody else"))

    with calling(Swap(card())) as (caller, _):
        task = caller.send("x")

    assert state(task) == "FAILED"
    # Nor the artifacts that were told before anybody looked whose they are.
    assert "somebody" not in str(task)


def test_a_task_that_needs_input_goes_on_with_it():
    with calling(Kitchen()) as (caller, _):
        first = caller.send("need")
        assert (state(first), said(first)) == ("INPUT_REQUIRED", "which city?")
        wrong = message("x", taskId=first["id"], contextId="other")
        assert caller.code("SendMessage", wrong) == -32602
        second = caller.send("echo Athens", taskId=first["id"])
        assert caller.code("SendMessage", message("x", taskId=first["id"])) == -32004
        assert caller.code("SubscribeToTask", {"id": first["id"]}) == -32004

    assert (state(second), said(second)) == ("COMPLETED", "Athens")
    assert second["id"] == first["id"]
    assert second["contextId"] == first["contextId"]
    texts = ["".join(p["text"] for p in item["parts"]) for item in second["history"]]
    assert texts == ["need", "which city?", "echo Athens", "Athens"]


def test_a_send_need_not_wait_for_the_answer():
    agent = Kitchen()
    with calling(agent) as (caller, _):
        task = caller.start("wait")
        assert agent.started.acquire(timeout=LIMIT)
        running = caller.result("GetTask", {"id": task["id"]})
        assert state(running) == "WORKING"
        assert caller.code("SendMessage", message("x", taskId=task["id"])) == -32004

        with caller.stream("SubscribeToTask", {"id": task["id"]}) as events:
            agent.gate.set()
            assert state(list(events)[-1]["statusUpdate"]) == "COMPLETED"
        done = caller.result("GetTask", {"id": task["id"]})

    assert said(done) == "waited"


@pytest.mark.parametrize("word", ["wait", "stubborn"])
def test_a_canceled_task_is_canceled_at_once_and_its_handler_learns_it(word):
    agent = Kitchen()
    with calling(agent) as (caller, _):
        task = caller.start(word)
        assert agent.started.acquire(timeout=LIMIT)
        canceled = caller.result("CancelTask", {"id": task["id"], "metadata": {"reason": "enough"}})
        assert caller.code("CancelTask", {"id": task["id"]}) == -32002
        if word == "stubborn":
            agent.gate.set()
        assert agent.ended.acquire(timeout=LIMIT)
        later = caller.result("GetTask", {"id": task["id"]})

    assert (state(canceled), said(canceled)) == ("CANCELED", "enough")
    # Whatever the handler makes of it afterwards, the task stays as it was told.
    assert later == canceled


def test_cancelling_ends_a_send_that_waits():
    agent = Kitchen()
    with calling(agent) as (caller, server), A2ACaller(server.url) as other:
        sent = in_background(other.send, "wait")
        assert agent.started.acquire(timeout=LIMIT)
        (task,) = caller.result("ListTasks")["tasks"]
        caller.result("CancelTask", {"id": task["id"]})
        answer = sent()

    assert state(answer) == "CANCELED"
    assert said(answer) == "Canceled through A2A"


def test_the_native_route_cancels_an_a2a_task_too():
    agent = Kitchen()
    with calling(agent) as (caller, server), A2ACaller(server.url) as other:
        sent = in_background(other.send, "wait")
        assert agent.started.acquire(timeout=LIMIT)
        (task,) = caller.result("ListTasks")["tasks"]
        caller.request("POST", "/tasks/cancel", {"id": task["id"], "reason": "enough"}).task()
        answer = sent()

    assert state(answer) == "CANCELED"
    assert said(answer) == "enough"
    assert answer["artifacts"][0]["parts"] == [{"text": "cancelled: enough"}]


def test_a_task_that_waits_for_input_can_be_canceled():
    with calling(Kitchen()) as (caller, _):
        task = caller.send("need")
        canceled = caller.result("CancelTask", {"id": task["id"]})
        assert caller.code("SendMessage", message("x", taskId=task["id"])) == -32004

    assert state(canceled) == "CANCELED"
    assert len(canceled["history"]) == 2


@pytest.mark.parametrize(("length", "expected"), [(None, 2), (0, 0), (1, 1), (9, 2)])
def test_the_history_is_as_long_as_asked_for(length, expected):
    configuration = {} if length is None else {"historyLength": length}
    with calling(Kitchen()) as (caller, _):
        sent = caller.send("echo x", configuration=configuration)
        got = caller.result("GetTask", {"id": sent["id"], **configuration})

    assert sent == got
    assert len(got.get("history", [])) == expected
    assert all(item["role"] == "ROLE_AGENT" for item in got.get("history", [])[-1:])


def test_tasks_are_listed_in_pages_the_newest_first():
    with calling(Kitchen()) as (caller, _):
        tasks = [caller.send(f"echo {number}") for number in range(5)]
        first = caller.result("ListTasks", {"pageSize": 2})
        second = caller.result("ListTasks", {"pageSize": 2, "pageToken": first["nextPageToken"]})
        caller.send("echo later")
        third = caller.result("ListTasks", {"pageSize": 2, "pageToken": second["nextPageToken"]})

    pages = [[task["id"] for task in page["tasks"]] for page in (first, second, third)]
    assert [id for page in pages for id in page] == [task["id"] for task in reversed(tasks)]
    assert (first["totalSize"], first["pageSize"]) == (5, 2)
    assert third["nextPageToken"] == ""


def test_tasks_are_listed_by_what_is_asked_for():
    with calling(model()) as (caller, _):
        one, two = caller.send("x", contextId="one"), caller.send("y", contextId="two")
        since = two["status"]["timestamp"]

        def ids(**params):
            return [task["id"] for task in caller.result("ListTasks", params)["tasks"]]

        assert ids(contextId="one") == [one["id"]]
        assert ids(status="TASK_STATE_COMPLETED") == [two["id"], one["id"]]
        assert ids(status="TASK_STATE_WORKING") == []
        assert ids(status="TASK_STATE_UNSPECIFIED") == [two["id"], one["id"]]
        assert ids(statusTimestampAfter=since) == [two["id"]]
        assert ids(statusTimestampAfter=since[:-1] + "123+00:00") == [two["id"]]
        assert ids(statusTimestampAfter="2999-01-01T00:00:00Z") == []
        (listed,) = caller.result("ListTasks", {"contextId": "one"})["tasks"]
        wanted = {"contextId": "one", "includeArtifacts": True, "historyLength": 0}
        (whole,) = caller.result("ListTasks", wanted)["tasks"]

    assert "artifacts" not in listed
    assert len(listed["history"]) == 1
    assert whole["artifacts"] == one["artifacts"]
    assert "history" not in whole


def test_no_task_is_an_empty_page():
    with calling(Kitchen()) as (caller, _):
        page = caller.result("ListTasks")

    assert page == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


@pytest.mark.parametrize("method", ["GetTask", "CancelTask", "SubscribeToTask"])
def test_an_unknown_task_is_not_found(method):
    with calling(Kitchen()) as (caller, _):
        reply = caller.rpc(method, {"id": "ghost" * 1000})

    assert reply.error["code"] == -32001
    assert reply.error["data"][0]["reason"] == "TASK_NOT_FOUND"
    assert len(reply.body) < 500


def test_what_is_not_offered_says_so():
    push = {"taskPushNotificationConfig": {"url": "http://x.test"}}
    with calling(Kitchen()) as (caller, _):
        for name in PUSH:
            method = name.format("TaskPushNotificationConfig")
            assert caller.code(method, {"taskId": "x"}) == -32003, method
        sent = {**message("echo x"), "configuration": push}
        assert caller.code("SendMessage", sent) == -32003
        assert caller.code("GetExtendedAgentCard") == -32004
        assert caller.code("Nothing") == -32601
        assert caller.code("message/send", message("echo x")) == -32601
        assert caller.result("ListTasks")["totalSize"] == 0


def test_contents_that_the_card_does_not_name_are_refused():
    data = {"parts": [{"data": {"x": 1}}]}
    with calling(Kitchen()) as (caller, _):
        assert caller.code("SendMessage", message("", **data)) == -32005
        typed = {"parts": [{"text": "x", "mediaType": "text/html"}]}
        assert caller.code("SendMessage", message("", **typed)) == -32005
        plain = {"parts": [{"text": "echo x", "mediaType": "TEXT/plain; charset=utf-8"}]}
        assert state(caller.send("", **plain)) == "COMPLETED"
    with calling(Agent(card(input_formats=["application/*"]))) as (caller, _):
        assert state(caller.send("", **data)) == "COMPLETED"


def test_whoever_sends_is_the_user():
    """Otherwise what a caller says in the agent's role would count as the agent's answer."""
    with calling(Kitchen()) as (caller, _):
        task = caller.send("unknown word", role="ROLE_AGENT")

    assert "message" not in task["status"]
    assert task["history"][0]["role"] == "ROLE_USER"


def test_tools_that_fail_and_handlers_that_are_async_work_as_natively():
    agent = Agent(AgentCard("a", "b", "http://c.test"))

    @agent.infer
    async def answer(prompt):
        return {"asked": prompt}

    with calling(agent) as (caller, _):
        task = caller.send("why")

    assert task["artifacts"][0]["parts"] == [{"text": '{"asked": "why"}'}]
