"""Selection: which of the interfaces on a card is called, in which dialect."""

from __future__ import annotations

import pytest

from protolink_sync.a2a import A2AClientError, PushNotificationConfig, WireDialect
from tests.a2a.client.scenes import heard
from tests.a2a.scripted import (
    card,
    done,
    frame,
    interface,
    message,
    old_card,
    result,
    sent,
    stream,
    task,
)

ANSWERS = {"SendMessage": done(), "message/send": done(old=True)}


def chosen(agent, client):
    """Send one message; return where it went and how."""
    client.send_message("hi")
    (call,) = agent.calls
    return call.path, call.method


def test_b10_a_legacy_card_is_a_list_with_its_url_first(meet):
    agent, client = meet(card=old_card("{{base}}/first"), methods=ANSWERS)

    assert chosen(agent, client) == ("/first", "message/send")


def test_b10_further_interfaces_of_a_legacy_card_come_next(meet):
    offered = old_card(
        "{{base}}/grpc",
        preferredTransport="GRPC",
        additionalInterfaces=[
            {"url": "{{base}}/rest", "transport": "HTTP+JSON"},
            {"url": "{{base}}/rpc", "transport": "JSONRPC"},
        ],
    )
    agent, client = meet(card=offered, methods=ANSWERS)

    assert chosen(agent, client) == ("/rpc", "message/send")


def test_b10_no_preferred_transport_means_json_rpc(meet):
    offered = old_card("{{base}}/first")
    del offered["preferredTransport"]
    agent, client = meet(card=offered, methods=ANSWERS)

    assert chosen(agent, client) == ("/first", "message/send")


def test_b11_the_old_members_of_a_hybrid_card_are_not_used(meet):
    offered = {**old_card("{{base}}/old"), **card(interface("{{base}}/new"))}
    agent, client = meet(card=offered, methods=ANSWERS)

    assert chosen(agent, client) == ("/new", "SendMessage")


def test_b11_an_empty_list_of_interfaces_leaves_the_old_members(meet):
    offered = {**old_card("{{base}}/old"), "supportedInterfaces": []}
    agent, client = meet(card=offered, methods=ANSWERS)

    assert chosen(agent, client) == ("/old", "message/send")


@pytest.mark.parametrize("binding", ["JSONRPC", "jsonrpc", "JsonRpc"])
@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ("1.0", WireDialect.V1_0),
        ("1.7", WireDialect.V1_0),
        ("1.0.3", WireDialect.V1_0),
        ("1", WireDialect.V1_0),
        ("0.3", WireDialect.V0_3),
        ("0.2.5", WireDialect.V0_3),
    ],
)
def test_b12_json_rpc_of_a_known_major_version_is_a_candidate(version, dialect, binding, meet):
    agent, client = meet(card=card(interface(version=version, binding=binding)), methods=ANSWERS)

    client.send_message("hi")

    assert client.wire_dialect is dialect
    assert agent.methods == ["SendMessage" if dialect is WireDialect.V1_0 else "message/send"]


@pytest.mark.parametrize(
    "other",
    [
        interface("{{base}}/x", "2.0"),
        interface("{{base}}/x", "10.0"),
        interface("{{base}}/x", "later"),
        interface("{{base}}/x", binding="HTTP+JSON"),
        interface("127.0.0.1:9", binding="GRPC"),
        interface("{{base}}/x", binding="urn:custom"),
    ],
)
def test_b12_anything_else_is_passed_over(other, meet):
    agent, client = meet(card=card(other, interface("{{base}}/rpc")), methods=ANSWERS)

    assert chosen(agent, client) == ("/rpc", "SendMessage")


@pytest.mark.parametrize("slash", ["", "/"])
def test_b13_the_interface_at_the_base_url_wins(slash, meet):
    """An earlier 0.3 entry elsewhere loses to a later 1.0 entry at ``base_url``."""
    offered = card(interface("{{base}}/old", "0.3"), interface("{{base}}" + slash))
    agent, client = meet(card=offered, methods=ANSWERS)

    path, method = chosen(agent, client)

    assert (path.rstrip("/"), method) == ("", "SendMessage")


def test_b13_else_the_earliest_wins(meet):
    offered = card(interface("{{base}}/a", "0.3"), interface("{{base}}/b", "1.0"))
    agent, client = meet(card=offered, methods=ANSWERS)

    assert chosen(agent, client) == ("/a", "message/send")


@pytest.mark.parametrize("version", [None, ""])
def test_b14_no_version_means_0_3(version, meet):
    agent, client = meet(card=card(interface(version=version)), methods=ANSWERS)

    assert chosen(agent, client) == ("/rpc", "message/send")


@pytest.mark.parametrize("version", [None, ""])
def test_b14_no_version_of_a_legacy_card_means_0_3(version, meet):
    offered = old_card(protocolVersion=version)
    agent, client = meet(card=offered, methods=ANSWERS)

    assert chosen(agent, client) == ("/rpc", "message/send")


@pytest.mark.parametrize("operation", ["send_message", "stream_message", "get_task"])
def test_b15_no_candidate_raises_before_anything_is_sent(operation, meet):
    offered = card(interface("h:7", binding="GRPC"), interface("{{base}}/two", "2.0"))
    agent, client = meet(done(), card=offered)

    with pytest.raises(A2AClientError) as caught:
        getattr(client, operation)("x")

    assert "GRPC 1.0 @ h:7" in str(caught.value)
    assert f"JSONRPC 2.0 @ {agent.base}/two" in str(caught.value)
    assert agent.calls == []


FLAT = {"taskId": "t1", "id": "p1", "url": "http://127.0.0.1:9/hook"}
NESTED = {"taskId": "t1", "pushNotificationConfig": {"id": "p1", "url": "http://127.0.0.1:9/hook"}}

OPERATIONS = {
    "send": lambda c: c.send_message("hi"),
    "stream": lambda c: c.stream_message("hi").result(),
    "get": lambda c: c.get_task("t1"),
    "cancel": lambda c: c.cancel_task("t1"),
    "list": lambda c: list(c.list_tasks()),
    "subscribe": lambda c: c.subscribe("t1").result(),
    "push create": lambda c: c.create_push_config("t1", PushNotificationConfig(url=FLAT["url"])),
    "push get": lambda c: c.get_push_config("t1", "p1"),
    "push list": lambda c: c.list_push_configs("t1"),
    "push delete": lambda c: c.delete_push_config("t1", "p1"),
    "extended card": lambda c: c.get_extended_card(),
}
NEW = {
    "send": ("SendMessage", done()),
    "stream": ("SendStreamingMessage", stream({"message": message("hi")})),
    "get": ("GetTask", result(task())),
    "cancel": ("CancelTask", result(task("canceled"))),
    "list": (
        "ListTasks",
        result({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}),
    ),
    "subscribe": ("SubscribeToTask", stream(sent(task()))),
    "push create": ("CreateTaskPushNotificationConfig", result(FLAT)),
    "push get": ("GetTaskPushNotificationConfig", result(FLAT)),
    "push list": (
        "ListTaskPushNotificationConfigs",
        result({"configs": [FLAT], "nextPageToken": ""}),
    ),
    "push delete": ("DeleteTaskPushNotificationConfig", result(None)),
    "extended card": ("GetExtendedAgentCard", result(card(name="extended"))),
}
OLD = {
    "send": ("message/send", done(old=True)),
    "stream": ("message/stream", stream(message("hi", old=True))),
    "get": ("tasks/get", result(task(old=True))),
    "cancel": ("tasks/cancel", result(task("canceled", old=True))),
    "subscribe": (
        "tasks/resubscribe",
        stream(frame(task("working", old=True)), frame(task(old=True))),
    ),
    "push create": ("tasks/pushNotificationConfig/set", result(NESTED)),
    "push get": ("tasks/pushNotificationConfig/get", result(NESTED)),
    "push list": ("tasks/pushNotificationConfig/list", result([NESTED])),
    "push delete": ("tasks/pushNotificationConfig/delete", result(None)),
    "extended card": (
        "agent/getAuthenticatedExtendedCard",
        result(old_card("http://127.0.0.1:9", name="extended")),
    ),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_b16_the_tenant_of_the_interface_goes_with_every_request(operation, meet):
    method, answer = NEW[operation]
    agent, client = meet(card=card(interface(tenant="acme")), methods={method: answer})

    OPERATIONS[operation](client)

    (call,) = agent.calls
    assert call.method == method
    assert call.params["tenant"] == "acme"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_b16_no_tenant_is_no_member(operation, meet):
    method, answer = NEW[operation]
    agent, client = meet(methods={method: answer})

    OPERATIONS[operation](client)

    assert "tenant" not in agent.calls[0].body.get("params", {})


@pytest.mark.parametrize("operation", OLD)
def test_b16_the_0_3_dialect_knows_no_tenant(operation, meet):
    method, answer = OLD[operation]
    agent, client = meet(
        card=card(interface(version="0.3", tenant="acme")), methods={method: answer}
    )

    OPERATIONS[operation](client)

    (call,) = agent.calls
    assert call.method == method
    assert "acme" not in call.request.body.decode()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_b17_the_card_comes_before_the_first_rpc(operation, meet):
    """So a 1.0-only agent never sees a 0.3 request, and the other way round."""
    method, answer = NEW[operation]
    agent, client = meet(methods={method: answer})

    OPERATIONS[operation](client)

    assert [r.method for r in agent.requests] == ["GET", "POST"]


def test_b18_dialect_and_endpoint_are_known_from_the_selection_on(meet):
    agent, client = meet(done())
    assert (client.wire_dialect, client.endpoint_url) == (None, agent.base)

    client.send_message("hi")
    assert client.wire_dialect is WireDialect.V1_0
    assert client.endpoint_url == agent.base + "/rpc"

    client.fetch_agent_card(force=True)
    assert (client.wire_dialect, client.endpoint_url) == (None, agent.base)
    assert client.base_url == agent.base


@pytest.mark.parametrize("first", ["1.0", "0.3"])
def test_b19_the_order_of_the_card_decides_between_two_versions(first, meet):
    versions = [first, "0.3" if first == "1.0" else "1.0"]
    offered = card(*(interface(version=version) for version in versions))
    _agent, client = meet(card=offered, methods=ANSWERS)

    client.send_message("hi")

    assert client.wire_dialect is WireDialect(first)


def test_b19_a_caller_may_pin_the_dialect(meet):
    offered = card(interface(), interface("{{base}}/old", "0.3"))
    agent, client = meet(card=offered, methods=ANSWERS, client={"dialect": WireDialect.V0_3})

    assert chosen(agent, client) == ("/old", "message/send")


def test_b19_a_pinned_dialect_that_is_not_offered_raises(meet):
    agent, client = meet(done(), client={"dialect": WireDialect.V0_3})

    with pytest.raises(A2AClientError, match=r"JSONRPC 1\.0"):
        client.send_message("hi")

    assert agent.calls == []


def test_b17_a_stream_is_sent_after_the_card_too(meet):
    agent, client = meet(stream(sent(task())))

    heard(lambda: client.stream_message("hi"))

    assert [r.method for r in agent.requests] == ["GET", "POST"]
