"""What the error of an agent tells: in words, in fields, and whatever its form."""

from __future__ import annotations

from typing import Any

import pytest

from protolink_sync.a2a.wire.jsonrpc import rpc_error
from protolink_sync.errors import A2ARpcError, A2ATaskNotFoundError

INFO = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
WHERE = "GetTask to http://h"


def told(error: Any) -> str:
    return str(rpc_error(error, WHERE).args[0])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"code": -32001, "message": "gone"}, "gone (-32001)"),
        ({"code": -32001, "message": ""}, "the agent reports an error (-32001)"),
        ({"code": -32001}, "the agent reports an error (-32001)"),
        ({"code": -32001, "message": 5}, "the agent reports an error (-32001)"),
        ({"message": "gone"}, "gone"),
        ({"code": "E5", "message": "gone"}, "gone (E5)"),
        ("gone", "the agent reports an error"),
        (
            {"code": -32001, "message": "gone", "data": [{"@type": INFO, "reason": "R"}]},
            "gone (-32001 R)",
        ),
        ({"message": "a\r\nb\x1b[31m\tc"}, "a b [31m c"),
        (
            {
                "code": -32602,
                "message": "bad",
                "data": [
                    {
                        "@type": BAD_REQUEST,
                        "fieldViolations": [
                            {"field": "a", "description": "is\nempty"},
                            {"field": "b", "description": "is long"},
                        ],
                    }
                ],
            },
            "bad [a: is empty; b: is long] (-32602)",
        ),
    ],
)
def test_the_words_are_the_agents_on_one_line(error, words):
    assert told(error) == f"{WHERE}: {words}"


def test_the_code_chooses_the_class():
    assert type(rpc_error({"code": -32001}, WHERE)) is A2ATaskNotFoundError
    for code in (None, 0, "x", 5, -32001.0):
        assert type(rpc_error({"code": code}, WHERE)) is A2ARpcError


def test_the_fields_are_those_of_the_first_info_and_of_all_violations():
    data = [
        5,
        {"@type": "other", "reason": "O", "fieldViolations": [{"field": "o"}]},
        {"@type": BAD_REQUEST, "fieldViolations": [{"field": "a"}, 5]},
        {"@type": INFO, "reason": "R", "domain": "D", "metadata": {"k": "v"}},
        {"@type": INFO, "reason": "S", "domain": "E", "metadata": {}},
        {"@type": BAD_REQUEST, "fieldViolations": [{"field": "b"}]},
        {"@type": BAD_REQUEST, "fieldViolations": 5},
    ]

    error = rpc_error({"code": 1, "message": "m", "data": data}, WHERE)

    assert (error.code, error.reason, error.domain) == (1, "R", "D")
    assert error.metadata == {"k": "v"}
    assert list(error.field_violations) == [{"field": "a"}, {"field": "b"}]
    assert (error.error_message, error.data) == ("m", data)


def test_fields_of_another_type_are_unset():
    data = [{"@type": INFO, "reason": 1, "domain": [], "metadata": "x"}]

    error = rpc_error({"code": True, "message": ["m"], "data": data}, WHERE)

    assert (error.code, error.reason, error.domain) == (None, None, None)
    assert (error.metadata, error.error_message) == ({}, None)


def test_an_error_that_is_no_object_is_in_the_data():
    assert rpc_error("gone", WHERE).data == "gone"
