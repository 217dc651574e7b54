"""Operations as data: the table of the wire, and what a spec refuses."""

from __future__ import annotations

import inspect
import pickle
import re

import attrs
import pytest

from protolink_sync import specs
from protolink_sync.errors import ModelError
from protolink_sync.models import (
    AgentCard,
    ClientRequestSpec,
    EndpointSpec,
    HistoryCompactionResult,
    StateOperationResult,
    Task,
)

CARD = {"name": "n", "description": "d", "url": "u"}

# wire/protolink.md 2: method, path, channel, idempotent, where the data travels.
TABLE = {
    "TASK_REQUEST": ("POST", "/tasks/", "default", True, "body"),
    "TASK_STREAM_REQUEST": ("POST", "/tasks/stream", "default", False, "body"),
    "TASK_CANCEL_REQUEST": ("POST", "/tasks/cancel", "control", True, "body"),
    "COMPACT_HISTORY_REQUEST": ("POST", "/llm/history/compact", "control", False, "body"),
    "DESCRIBE_STATE_REQUEST": ("POST", "/state/describe", "control", True, "body"),
    "RESET_STATE_REQUEST": ("POST", "/state/reset", "control", False, "body"),
    "COMPACT_STATE_REQUEST": ("POST", "/state/compact", "control", False, "body"),
    "AGENT_CARD_REQUEST": ("GET", "/.well-known/agent.json", "default", True, "none"),
    "REGISTRY_REGISTER_REQUEST": ("POST", "/agents/", "default", False, "body"),
    "REGISTRY_UNREGISTER_REQUEST": ("DELETE", "/agents/", "default", True, "body"),
    "REGISTRY_HEARTBEAT_REQUEST": ("POST", "/agents/heartbeat", "default", True, "body"),
    "REGISTRY_DISCOVER_REQUEST": ("GET", "/agents/", "default", True, "query_params"),
}
PARSED = [
    ("TASK_REQUEST", {"state": "working"}, Task),
    ("TASK_CANCEL_REQUEST", {"state": "canceled"}, Task),
    ("COMPACT_HISTORY_REQUEST", {}, HistoryCompactionResult),
    ("DESCRIBE_STATE_REQUEST", {}, StateOperationResult),
    ("RESET_STATE_REQUEST", {}, StateOperationResult),
    ("COMPACT_STATE_REQUEST", {}, StateOperationResult),
    ("AGENT_CARD_REQUEST", CARD, AgentCard),
]


def spec(**changes):
    return ClientRequestSpec(**{"name": "n", "path": "/p", "method": "GET"} | changes)


def test_the_operations_are_those_of_the_table():
    found = {
        name: (s.method, s.path, s.channel, s.idempotent, s.request_source)
        for name in specs.__all__
        for s in [getattr(specs, name)]
    }

    assert found == TABLE


def test_every_operation_has_a_name_of_its_own():
    names = [getattr(specs, name).name for name in specs.__all__]

    assert len(set(names)) == len(names)


def test_submitting_a_task_may_be_retried():
    """0.8.3 never does; the key lets the peer recognise the second attempt."""
    assert specs.TASK_REQUEST.idempotent
    assert specs.TASK_REQUEST.allow_retries


@pytest.mark.parametrize(("name", "reply", "kind"), PARSED)
def test_a_reply_is_parsed_into_its_model(name, reply, kind):
    assert isinstance(getattr(specs, name).response_parser(reply), kind)


@pytest.mark.parametrize("name", ["TASK_REQUEST", "TASK_CANCEL_REQUEST"])
@pytest.mark.parametrize("reply", [{}, {"id": "t", "state": None}, {"error": "bad gateway"}])
def test_an_object_without_a_state_is_no_answer_of_a_task(name, reply):
    with pytest.raises(ModelError, match="no task: it has no state @ ") as caught:
        getattr(specs, name).response_parser(reply)

    assert caught.value.path == "$"


@pytest.mark.parametrize("reply", [None, [], "busy"])
def test_what_is_no_object_is_no_answer_of_a_task(reply):
    with pytest.raises(ModelError, match="expected an object"):
        specs.TASK_REQUEST.response_parser(reply)


def test_a_discovery_is_parsed_into_cards():
    assert specs.REGISTRY_DISCOVER_REQUEST.response_parser([CARD]) == [AgentCard.from_dict(CARD)]


@pytest.mark.parametrize("name", specs.__all__)
def test_a_spec_can_be_pickled_and_be_a_key(name):
    one = getattr(specs, name)
    other = pickle.loads(pickle.dumps(one))

    assert other == one
    assert {one: 1}[other] == 1


def test_fields_are_the_documented_ten_and_one_more():
    assert list(inspect.signature(ClientRequestSpec).parameters) == [
        "name",
        "path",
        "method",
        "response_parser",
        "request_source",
        "content_type",
        "accept",
        "channel",
        "idempotent",
        "headers",
        "allow_retries",
    ]
    assert attrs.astuple(spec())[3:] == (
        None,
        "body",
        None,
        None,
        "default",
        False,
        None,
        True,
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"method": "post"}, "unknown method 'post'; known: GET, POST, DELETE, PUT, PATCH"),
        ({"method": "HEAD"}, "unknown method 'HEAD'"),
        ({"request_source": "cookie"}, "unknown request_source 'cookie'; known: none, body"),
        ({"path": "tasks/"}, "path 'tasks/' must begin with '/'"),
        ({"path": "/a b"}, "without spaces"),
        ({"path": "/a\r\nHost: x"}, "without spaces"),
        ({"headers": {"X A": "1"}}, "header name 'X A' is not a token"),
        ({"headers": {"": "1"}}, "header name '' is not a token"),
        ({"headers": {5: "1"}}, "header name 5 is not a token"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "'X-A' must be printable ASCII"),
        ({"headers": {"X-A": "1\n"}}, "'X-A' must be printable ASCII"),
        ({"headers": {"X-A": "ä"}}, "'X-A' must be printable ASCII"),
        ({"headers": {"X-A": 5}}, "'X-A' must be printable ASCII"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "'x-a' is given twice"),
    ],
)
def test_what_cannot_be_sent_is_refused_when_it_is_declared(changes, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        spec(**changes)


def test_a_path_that_is_no_text_is_a_type_error():
    with pytest.raises(TypeError, match="path is a int"):
        spec(path=5)


def test_a_refused_header_value_is_not_shown():
    with pytest.raises(ValueError, match="X-Key") as caught:
        spec(headers={"X-Key": "secret\n"})

    assert "secret" not in str(caught.value)
    assert "secret" not in repr(spec(headers={"X-Key": "secret"}))


def test_header_names_compare_without_regard_to_case():
    assert spec(headers={"X-A": "1"}) == spec(headers={"x-a": "1"})
    assert spec(headers={"X-A": "1"}) != spec(headers={"x-a": "2"})
    assert hash(spec(headers={"X-A": "1"})) == hash(spec(headers={"x-a": "1"}))


def test_headers_are_copied():
    headers = {"X-A": "1"}
    made = spec(headers=headers)
    headers["X-A"] = "2"

    assert made.headers == {"X-A": "1"}


def test_a_spec_cannot_be_changed():
    with pytest.raises(AttributeError):
        spec().idempotent = True


class TestEndpoints:
    def test_fields_are_the_documented_ones_in_their_order(self):
        endpoint = EndpointSpec("n", "/p", "POST", print)

        assert attrs.astuple(endpoint)[4:] == ("json", False, "request_response", None, "none")

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"method": "get"}, "unknown method 'get'"),
            ({"path": "p"}, "must begin with '/'"),
            ({"content_type": "xml"}, "unknown content_type 'xml'; known: json, html"),
            ({"mode": "duplex"}, "unknown mode 'duplex'; known: request_response, stream"),
            ({"request_source": "sky"}, "unknown request_source 'sky'"),
        ],
    )
    def test_an_unknown_word_is_refused(self, changes, told):
        with pytest.raises(ValueError, match=told):
            EndpointSpec(**{"name": "n", "path": "/p", "method": "GET", "handler": print} | changes)
