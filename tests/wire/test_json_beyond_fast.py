"""What orjson does not write is written by the standard library: in the same form."""

from __future__ import annotations

import dataclasses
import datetime
import enum

import pytest

from protolink_sync.wire import json

HUGE = 10**20  # orjson ends at 64 bits


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    _hidden: int = 5


def test_it_is_compact_and_utf_8():
    assert json.dumps({"n": HUGE, "t": ["ä", 1.5]}) == (
        b'{"n":100000000000000000000,"t":["\xc3\xa4",1.5]}'
    )


def test_half_a_surrogate_pair_leaves_the_rest_compact():
    assert json.dumps({"a": "\ud800", "b": [1, 2]}) == b'{"a":"\\ud800","b":[1,2]}'


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("beside", [1, HUGE, "\ud800"])
def test_a_number_that_is_none_is_refused_beside_anything(number, beside):
    with pytest.raises(ValueError, match="not JSON"):
        json.dumps({"n": number, "beside": beside})


@pytest.mark.parametrize("beside", [1, HUGE])
def test_objects_have_one_form_whoever_writes_them(beside):
    """orjson has forms of its own for these, and leaves out what begins with an underscore."""
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=datetime.timezone.utc)

    written = json.loads(
        json.dumps({"beside": beside, "p": Point(1), "m": moment, "d": moment.date()})
    )

    assert written["p"] == {"x": 1, "_hidden": 5}
    assert written["m"] == moment.isoformat()
    assert written["d"] == "2026-01-02"


@pytest.mark.parametrize("beside", [1, HUGE])
def test_null_beside_a_promise_that_all_numbers_are_finite_stays_null(beside):
    value = {"beside": beside, "nothing": None}

    assert json.loads(json.dumps(value, finite=True)) == json.loads(json.dumps(value)) == value


def test_data_that_holds_itself_is_refused():
    around: list[object] = [HUGE]
    around.append(around)

    for write in (json.dumps, json.dump_data):
        with pytest.raises(ValueError, match="contains itself"):
            write(around)
