"""What we send is what recorded clients send, up to ids and the choices listed here."""

from __future__ import annotations

import pytest

from protolink_sync.a2a.wire import (
    Message,
    MessageSendParams,
    Part,
    PushNotificationConfig,
    SendConfiguration,
    WireDialect,
    dialect_of,
    request,
)
from tests.a2a.wire.recorded import exchanges, named, normal

V1_0 = dialect_of(WireDialect.V1_0)
V0_3 = dialect_of(WireDialect.V0_3)

TASK = "<id>"
HOOK = "http://127.0.0.1:19109/hook"
WAIT = SendConfiguration(return_immediately=False)


def user(*content, configuration=None, tenant="", dialect=V1_0, **ids):
    parts = [Part(item) if isinstance(item, str) else item for item in content]
    params = MessageSendParams(Message.user(parts, **ids), configuration)
    return dialect.send_params(params, tenant)


def sends_1_0():
    sdk, neo, pl = "sdk-client-jsonrpc-1.0", "neograph-client", "protolink-client"
    inputs = ("input", "auth", "reject", "message", "fail", "raise")
    return {
        **{f"{sdk}-{way}-send": user("chunks") for way in ("stream", "nostream")},
        **{f"{sdk}-{way}-send-message": user("message") for way in ("stream", "nostream")},
        "sdk-client-tenant-jsonrpc-send": user("chunks", tenant="acme"),
        f"{neo}-1.0.2": user("chunks"),
        f"{neo}-1.0-abort": user("long 2"),
        f"{neo}-1.0-stream": user("chunks"),
        f"{neo}-1.0-stream-message": user("message"),
        f"{neo}-1.0-stream-error-midway": user("raiselate"),
        f"{neo}-1.0-input.2": user("blue", task_id=TASK, context_id=TASK),
        **{
            f"{neo}-1.0-input{behind}": user(text)
            for behind, text in zip(("", ".3", ".4", ".5", ".6", ".7"), inputs, strict=True)
        },
        f"{neo}-probe-1.0.2": user("hi"),
        f"{neo}-tenant.2": user("ctx", tenant="acme"),
        f"{pl}-auto.3": user("hello from protolink", configuration=WAIT),
        f"{pl}-a2a-continue.2": user("blue", configuration=WAIT, task_id=TASK, context_id=TASK),
        f"{pl}-a2a-parts.2": user(
            "input",
            Part.from_data({"a": 1}),
            "p",
            Part(data={"s": "x"}, metadata={"protolinkPartType": "status"}),
            Part.from_bytes(b"abc"),
            Part.from_url("https://e.example/x"),
            configuration=WAIT,
        ),
    }


def others_1_0():
    sdk = "sdk-client-jsonrpc-1.0-stream"
    return {
        f"{sdk}-get": V1_0.get_params(TASK, 1),
        f"{sdk}-get-unknown": V1_0.get_params("nope"),
        f"{sdk}-cancel": V1_0.cancel_params(TASK),
        f"{sdk}-list": V1_0.list_params(page_size=1),
        f"{sdk}-subscribe": V1_0.subscribe_params(TASK),
        f"{sdk}-push-create": V1_0.push_create_params(
            PushNotificationConfig(HOOK, "c9", TASK, "t")
        ),
        f"{sdk}-push-get": V1_0.push_get_params(TASK, "c9"),
        f"{sdk}-push-list": V1_0.push_list_params(TASK),
        f"{sdk}-push-delete": V1_0.push_delete_params(TASK, "c9"),
        f"{sdk}-extended-card": V1_0.extended_card_params(),
        "sdk-client-tenant-jsonrpc-push-create": V1_0.push_create_params(
            PushNotificationConfig(HOOK, "c9", TASK, "t"), "acme"
        ),
        "neograph-client-1.0.3": V1_0.get_params(TASK, 1),
        "neograph-client-1.0.4": V1_0.cancel_params(TASK),
        "neograph-client-1.0.5": V1_0.get_params("nope"),
        "protolink-client-a2a-cancel": V1_0.cancel_params(
            TASK, {"source": "cli", "reason": "stop"}
        ),
    }


def all_0_3():
    sdk = "sdk-client-jsonrpc-0.3-stream"
    return {
        **{
            f"sdk-client-jsonrpc-0.3-{way}-send{behind}": user(
                text, configuration=WAIT, dialect=V0_3
            )
            for way in ("stream", "nostream")
            for behind, text in (("", "chunks"), ("-message", "message"))
        },
        f"{sdk}-get": V0_3.get_params(TASK, 1),
        f"{sdk}-get-unknown": V0_3.get_params("nope"),
        f"{sdk}-cancel": V0_3.cancel_params(TASK),
        f"{sdk}-subscribe": V0_3.subscribe_params(TASK),
        f"{sdk}-push-create": V0_3.push_create_params(
            PushNotificationConfig(HOOK, "c9", TASK, "t")
        ),
        f"{sdk}-push-get": V0_3.push_get_params(TASK, "c9"),
        f"{sdk}-push-list": V0_3.push_list_params(TASK),
        f"{sdk}-push-delete": V0_3.push_delete_params(TASK, "c9"),
        f"{sdk}-extended-card": V0_3.extended_card_params(),
        "neograph-client-0.3-card.2": user("chunks", dialect=V0_3),
    }


EXPECTED = {**sends_1_0(), **others_1_0(), **all_0_3()}


def test_every_recorded_request_of_a_client_is_compared():
    recorded = exchanges("sdk-client", "neograph-client", "protolink-client")

    assert set(EXPECTED) == {exchange.name for exchange in recorded if exchange.sent}


@pytest.mark.parametrize("name", EXPECTED)
def test_we_send_what_the_recorded_client_sends(name):
    theirs = named(name).sent
    ours = request(theirs["id"], theirs["method"], EXPECTED[name])

    # Choices: a configuration that says nothing, and parameters without members, are left out
    # (B21). ProtoLink's ids of messages are no UUIDs (B33).
    params = {n: v for n, v in theirs["params"].items() if (n, v) != ("configuration", {})}
    if "protolink" in name and "message" in params:
        params["message"]["messageId"] = "<id>"
    expected = {**theirs, "params": params}
    if not params:
        del expected["params"]
    assert normal(ours) == normal(expected)


@pytest.mark.parametrize(
    "exchange",
    [e for e in exchanges("sdk-client", "neograph-client", "protolink-client") if e.sent],
    ids=lambda e: e.name,
)
def test_the_method_goes_with_the_version_that_the_recorded_client_names(exchange):
    """B60. a2a-sdk's client names 0.3 too; we, like NeoGraph, name no version there."""
    is_1_0 = "/" not in exchange.sent["method"]

    headers = (V1_0 if is_1_0 else V0_3).headers(())

    assert headers == ({"A2A-Version": exchange.headers["a2a-version"]} if is_1_0 else {})
