"""Where a fault is: paths that can be read, however long the names and deep the nesting."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from protolink_sync.errors import ModelError
from protolink_sync.models import AgentCard, Part, Task, TaskCancellationRequest
from protolink_sync.models._json import jsonable
from protolink_sync.models._paths import join, render


@pytest.mark.parametrize(
    ("step", "path"),
    [
        (0, "$[0]"),
        ("a", "$.a"),
        ("a b", '$["a b"]'),
        ("", '$[""]'),
        ("x " * 30, f'$["{"x " * 30}"]'),
        ("x " * 30 + "y", f'$["{("x " * 30)[:59]}…"]'),
    ],
)
def test_a_step_is_written_as_javascript_would_and_cut(step, path):
    assert join("$", step) == path


def nested(depth: int) -> Any:
    path: Any = None
    for number in range(depth):
        path = (path, number)
    return path


def test_a_deep_path_is_its_beginning_and_its_end():
    whole = "$" + "".join(f"[{n}]" for n in range(40))
    cut = (
        "$" + "".join(f"[{n}]" for n in range(20)) + '["…"]'
        + "".join(f"[{n}]" for n in range(21, 41))
    )  # fmt: skip

    assert render(None) == "$"
    assert render(nested(40)) == whole
    assert render(nested(41)) == cut


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, float("nan")]}, "$.a[1]"),
        ({"a": [1, float("inf")]}, "$.a[1]"),
        ({1: "x", "1": "y"}, '$["1"]'),
        ({float("nan"): 1}, "$"),
    ],
)
def test_a_value_that_is_no_json_has_a_place(value, path):
    with pytest.raises(ModelError) as caught:
        jsonable(value)

    assert caught.value.path == path
    assert f"@ {path}" in caught.value.args[0]


def test_a_value_that_is_nested_without_end_has_the_place_of_its_root():
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(ModelError, match="nested too deeply") as caught:
        jsonable(value, "$.content")

    assert caught.value.path == "$.content"


def test_keys_are_what_json_writes():
    assert jsonable({None: 1, True: 2, False: 3, 5: 4, 0.5: 5}) == {
        "null": 1,
        "true": 2,
        "false": 3,
        "5": 4,
        "0.5": 5,
    }


class Count(int):
    def __str__(self) -> str:
        return "count"


class UUID:  # of somebody else
    pass


def test_numbers_of_a_class_of_ones_own_are_numbers():
    written = jsonable([Count(5), {Count(6): 1}])

    assert written == [5, {"6": 1}]
    assert type(written[0]) is int


def test_a_uuid_is_text_and_what_only_has_its_name_is_refused():
    one = uuid.uuid4()

    assert jsonable({"id": one}) == {"id": str(one)}
    for wrong in (UUID(), uuid.SafeUUID, uuid.UUID, int, UUID):
        with pytest.raises(TypeError, match=r"is not JSON @ \$\.id"):
            jsonable({"id": wrong})


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ([], "an array"),
        ({}, "an object"),
        (5, "a number (5)"),
        (2.5, "a number (2.5)"),
    ],
)
def test_a_fault_says_what_stands_there(value, found):
    with pytest.raises(ModelError) as caught:
        AgentCard.from_dict({"name": "n", "description": "d", "url": "u", "transport": value})

    assert caught.value.args[0] == f"expected a string, found {found} @ $.transport"


def test_a_fault_shows_the_begin_of_a_long_text():
    with pytest.raises(ModelError, match=f"found a string \\('{'x' * 40}'\\)"):
        Task.from_dict({"messages": "x" * 50})


def test_five_faults_are_told_and_no_more():
    def tags(count: int) -> Any:
        return {"name": "n", "description": "d", "url": "u", "tags": [5] * count}

    with pytest.raises(ModelError) as caught:
        AgentCard.from_dict(tags(5))
    assert "more" not in caught.value.args[0]
    with pytest.raises(ModelError, match="and 1 more"):
        AgentCard.from_dict(tags(6))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, "1"])
def test_a_confidence_is_a_number_or_null(number):
    with pytest.raises(ModelError, match="expected a number or null"):
        Part.from_dict({"type": "route", "content": {"route_key": "r", "confidence": number}})


@pytest.mark.parametrize("number", [0, 1, 0.5, None])
def test_a_confidence_stays_what_it_is(number):
    part = Part.from_dict({"type": "route", "content": {"route_key": "r", "confidence": number}})

    assert part.content.confidence == number
    assert type(part.content.confidence) is type(number)


def test_a_card_without_what_makes_an_agent_names_all_of_it():
    with pytest.raises(ModelError) as caught:
        AgentCard.from_dict({"name": ""})

    assert caught.value.args[0].endswith("missing or empty: name, description, url")
    assert caught.value.path == "$"


@pytest.mark.parametrize(
    ("data", "id", "reason"),
    [
        ({"id": "a"}, "a", None),
        ({"task_id": "a"}, "a", None),
        ({"id": "a", "task_id": "b"}, "a", None),
        ({"id": "", "task_id": "b"}, "b", None),
        ({"id": "a", "metadata": {"reason": "why"}}, "a", "why"),
        ({"id": "a", "metadata": {"reason": 5}}, "a", None),
        ({"id": "a", "reason": "own", "metadata": {"reason": "why"}}, "a", "own"),
    ],
)
def test_a_cancellation_is_read_in_either_spelling(data, id, reason):
    read = TaskCancellationRequest.from_dict(data)

    assert (read.id, read.reason) == (id, reason)


@pytest.mark.parametrize("id", ["", "  ", None])
def test_a_cancellation_of_nothing_is_refused(id):
    with pytest.raises(ValueError, match="is empty"):
        TaskCancellationRequest(id)
