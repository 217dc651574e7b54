"""JSON in and out, with and without the extra ``fast``: the results and refusals are the same.

``PLAIN`` is the module as it is where orjson and msgspec are not installed.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib.util
import json
import math
import subprocess
import sys
import types
import uuid
from collections import OrderedDict, namedtuple
from typing import Any
from unittest import mock

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protolink_sync.models import Message, Part, Task
from protolink_sync.wire import json as installed
from tests.wire.values import json_values, texts


def _without_fast() -> types.ModuleType:
    """Load the module once more, where neither library can be imported."""
    blocked: dict[str, Any] = {"orjson": None, "msgspec": None}
    with mock.patch.dict(sys.modules, blocked):
        spec = importlib.util.spec_from_file_location("plain_json", installed.__file__)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # They are looked for at the first use.
        module.dumps(module.loads(b"[]"))
    return module


PLAIN = _without_fast()
BOTH = [pytest.param(installed, id="fast"), pytest.param(PLAIN, id="plain")]


def outcome(function: Any, argument: Any) -> tuple[str, Any]:
    """Return what a call brings: a value with the types of everything in it, or the refusal."""
    try:
        return "value", typed(function(argument))
    except Exception as error:
        return type(error).__name__, str(error)


def typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, value.hex() if isinstance(value, float) else value


def written(module: Any) -> Any:
    """Return a function to the value that the written bytes stand for.

    The text of a float may differ between the installations, its value may not.
    """
    return lambda value: json.loads(module.dumps(value).decode())


@pytest.fixture(autouse=True, scope="module")
def both_are_there():
    pytest.importorskip("orjson")
    pytest.importorskip("msgspec")


# --- reading ------------------------------------------------------------------------------------


@given(json_values)
def test_any_value_comes_back(value):
    for module in (installed, PLAIN):
        assert typed(module.loads(module.dumps(value))) == typed(value)


@given(json_values)
def test_what_any_other_library_writes_is_read(value):
    data = json.dumps(value).encode()

    assert outcome(installed.loads, data) == outcome(PLAIN.loads, data) == ("value", typed(value))


@given(st.binary() | st.text().map(str.encode))
@example(b"\x00")
def test_bytes_of_any_kind_give_one_answer_and_never_another_error(data):
    kind, told = outcome(installed.loads, data)

    assert (kind, told) == outcome(PLAIN.loads, data)
    assert kind in {"value", "ValueError", "JSONDecodeError"}


@given(st.text('0123456789eE+-. []{},:"\\/bfnrtu\t\nNaIiytl', max_size=12).map(str.encode))
def test_text_that_looks_like_json_gives_one_answer(data):
    assert outcome(installed.loads, data) == outcome(PLAIN.loads, data)


@given(st.from_regex(rb"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_a_number_has_one_value(data):
    assert outcome(installed.loads, data) == outcome(PLAIN.loads, data)


DEEP = 100_000

# text -> the value, or words of the refusal.
READ = {
    "zero": (b"-0", 0),
    "negative zero": (b"-0.0", -0.0),
    "an integer beyond 64 bits": (b"18446744073709551616", 2**64),
    "an integer below 64 bits": (b"-9223372036854775809", -(2**63) - 1),
    "4300 digits": (b"9" * 4300, int("9" * 4300)),
    "an integer as a float": (b"1e5", 100000.0),
    "a float that is not exact": (b"0.1", 0.1),
    "a float beyond its digits": (b"1." + b"1" * 5000, 1.1111111111111112),
    "an underflow": (b"1e-400", 0.0),
    "the smallest float": (b"5e-324", 5e-324),
    "the last of two equal keys": (b'{"a": 1, "a": 2}', {"a": 2}),
    "half a surrogate pair": (rb'"\ud800"', "\ud800"),
    "half a surrogate pair as key": (rb'{"\ud800": 1}', {"\ud800": 1}),
    "two halves in the wrong order": (rb'"\udc00\ud800"', "\udc00\ud800"),
    "a whole pair": (rb'"\ud83d\ude00"', "\U0001f600"),
    "a NUL": (rb'"\u0000"', "\0"),
    "a DEL": (b'"\x7f"', "\x7f"),
    "blanks around": (b" \t\r\n1 \t\r\n", 1),
    "lists in lists": (b"[" * 300 + b"]" * 300, None),
}

REFUSED = {
    "nothing": (b"", "Expecting value"),
    "NaN": (b"[NaN]", "NaN is not JSON"),
    "Infinity": (b"[Infinity]", "Infinity is not JSON"),
    "-Infinity": (b'{"a": -Infinity}', "-Infinity is not JSON"),
    "an overflow": (b"1e400", "1e400 is too large for a float"),
    "a negative overflow": (b"[-1e400]", "-1e400 is too large for a float"),
    "a byte order mark": (b"\xef\xbb\xbf1", "byte order mark"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
    "UTF-16 without a mark": ('{"a": 1}'.encode("utf-16-le"), "Expecting property name"),
    "UTF-32": ("1".encode("utf-32"), "not UTF-8"),
    "Latin-1": (b'"\xe4"', "byte 1 is not UTF-8"),
    "an encoded surrogate": (b'"\xed\xa0\x80"', "not UTF-8"),
    "an overlong NUL": (b'"\xc0\x80"', "not UTF-8"),
    "deep lists": (b"[" * DEEP + b"]" * DEEP, "nested too deeply"),
    "deep lists without an end": (b"[" * DEEP, "nested too deeply"),
    "deep objects": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "nested too deeply"),
    "more digits than Python converts": (b"9" * 5000, "limit (4300"),
    "a key without quotes": (b"{a: 1}", "property name"),
    "a number as key": (b"{1: 2}", "property name"),
    "single quotes": (b"'a'", "Expecting value"),
    "a line break in a text": (b'"a\nb"', "control character"),
    "a comma too many": (b"[1,]", "line 1 column"),
    "a comment": (b"/**/1", "Expecting value"),
    "a leading zero": (b"01", "Extra data"),
    "a leading plus": (b"+1", "Expecting value"),
    "two documents": (b"{} {}", "Extra data"),
    "an end too early": (b'{"a": [1', "Expecting"),
}


@pytest.mark.parametrize("module", BOTH)
def test_these_are_read(module):
    for name, (data, value) in READ.items():
        got = module.loads(data)
        assert value is None or typed(got) == typed(value), name


@pytest.mark.parametrize("module", BOTH)
def test_these_are_refused_with_words(module):
    for name, (data, words) in REFUSED.items():
        with pytest.raises(ValueError) as caught:
            module.loads(data)
        assert words in str(caught.value), name
        assert len(str(caught.value)) < 300, f"{name}: the message repeats the input"


def test_a_number_of_a_million_digits_does_not_come_back_in_the_message():
    data = b"1" * 1_000_000 + b".0"

    kind, told = outcome(installed.loads, data)

    assert (kind, told) == outcome(PLAIN.loads, data)
    assert kind == "ValueError"
    assert len(told) < 300


# --- writing ------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Text(str, enum.Enum):  # the form of Python 3.10
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Flag(enum.IntFlag):
    A = 1
    B = 2


Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Data:
    name: str
    inner: Any = None


@attrs.define
class Attrs:
    name: str
    inner: Any = None


class WithToDict:
    def to_dict(self) -> dict[str, Any]:
        return {"made": [1]}


class OwnText(str):
    def __str__(self) -> str:
        return "wrong"


class OwnInt(int):
    def __repr__(self) -> str:
        return "wrong"


MOMENT = datetime.datetime(2026, 11, 29, 23, 0, 1, 5, tzinfo=datetime.timezone.utc)
TASK = Task("t-1", messages=[Message("m-1", "user", [Part.text("hi")], "2026-01-01T00:00:00Z")])

# value -> what it is on the wire.
WRITTEN: dict[str, tuple[Any, Any]] = {
    "a tuple": ((1, (2, 3)), [1, [2, 3]]),
    "a named tuple": (Point(1, 2), [1, 2]),
    "an ordered mapping": (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    "a mapping that is no dict": (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
    "an enum": ({"c": Colour.RED, "d": [Colour.PAIR]}, {"c": "red", "d": [[1, 2]]}),
    "an enum of texts": ([Text.A, {Text.A: Text.A}], ["a", {"a": "a"}]),
    "an enum of numbers": ([Number.ONE, Flag.A | Flag.B], [1, 3]),
    "an enum as key": ({Colour.RED: 1}, {"red": 1}),
    "a dataclass": (Data("n", Data("m")), {"name": "n", "inner": {"name": "m", "inner": None}}),
    "an attrs class": (
        Attrs("n", [Attrs("m")]),
        {"name": "n", "inner": [{"name": "m", "inner": None}]},
    ),
    "an object with to_dict": ([WithToDict()], [{"made": [1]}]),
    "a model in a dict": ({"task": TASK}, {"task": TASK.to_dict()}),
    "a moment": ([MOMENT], ["2026-11-29T23:00:01.000005+00:00"]),
    "a day and a time": ([MOMENT.date(), MOMENT.time()], ["2026-11-29", "23:00:01.000005"]),
    "a UUID": ([uuid.UUID(int=5)], ["00000000-0000-0000-0000-000000000005"]),
    "keys of all kinds": (
        {2: 1, 2.5: 2, True: 3, None: 4, "5": 5},
        {"2": 1, "2.5": 2, "true": 3, "null": 4, "5": 5},
    ),
    "a text of one's own": ([OwnText("right")], ["right"]),
    "a number of one's own": ([OwnInt(7)], [7]),
    "big integers": ([2**64, -(2**63) - 1, 10**40], [2**64, -(2**63) - 1, 10**40]),
    "nulls beside floats": ({"a": None, "b": 1.5}, {"a": None, "b": 1.5}),
    "half a surrogate pair": (["\ud800", {"\udfff": 1}], ["\ud800", {"\udfff": 1}]),
    "lists in lists": (json.loads("[" * 400 + "]" * 400), json.loads("[" * 400 + "]" * 400)),
}

CIRCLE: list[Any] = []
CIRCLE.append({"again": CIRCLE})


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


# value -> error, words of it (with the path).
UNWRITABLE: dict[str, tuple[Any, type[Exception], list[str]]] = {
    "NaN": ({"a": [1, math.nan]}, ValueError, ["$.a[1]"]),
    "Infinity": ({"a": {"b": math.inf}}, ValueError, ["$.a.b"]),
    "-Infinity": ([[-math.inf]], ValueError, ["$[0][0]"]),
    "NaN beside a null": ([None, math.nan], ValueError, ["$[1]"]),
    "NaN as a key": ({math.nan: 1}, ValueError, ["nan"]),
    "bytes": ({"a": [b"x"]}, TypeError, ["$.a[0]", "Part.bytes", "Part.file", "Part.uri"]),
    "a bytearray": ([bytearray(b"x")], TypeError, ["$[0]", "Part.bytes"]),
    "a memoryview": ([memoryview(b"x")], TypeError, ["$[0]", "Part.bytes"]),
    "a set": ({"a": {1}}, TypeError, ["$.a", "set"]),
    "an object": ([object()], TypeError, ["$[0]", "object"]),
    "a complex number": ({"z": 1j}, TypeError, ["$.z", "complex"]),
    "a class": ([Data], TypeError, ["$[0]"]),
    "bytes as a key": ({b"a": 1}, TypeError, ["key", "bytes"]),
    "a tuple as a key": ({"x": {(1, 2): 1}}, TypeError, ["$.x", "tuple"]),
    "a circle": (CIRCLE, ValueError, ["contains itself"]),
    "bytes in a model": (
        {"t": Task("t", metadata={"raw": b"x"})},
        TypeError,
        ["$.t.metadata.raw", "Part.bytes"],
    ),
    "a deep list": (deep(100_000), ValueError, ["nested too deeply"]),
}


@pytest.mark.parametrize("module", BOTH)
def test_these_are_written(module):
    for name, (value, expected) in WRITTEN.items():
        assert typed(written(module)(value)) == typed(expected), name


@pytest.mark.parametrize("module", BOTH)
def test_these_are_refused_with_their_path(module):
    for name, (value, kind, words) in UNWRITABLE.items():
        with pytest.raises(kind) as caught:
            module.dumps(value)
        assert [w for w in words if w not in str(caught.value)] == [], (name, str(caught.value))


@pytest.mark.parametrize("module", BOTH)
def test_two_keys_with_one_text_are_refused(module):
    """One of the two values would be lost at the peer."""
    with pytest.raises(ValueError, match="two keys"):
        module.dump_data({"a": {1: "one", "1": "other"}})


@pytest.mark.parametrize("module", BOTH)
def test_json_is_compact_and_utf_8(module):
    assert module.dumps({"a": [1, "ä\u2028"], "b": {}}) == '{"a":[1,"ä\u2028"],"b":{}}'.encode()


@pytest.mark.parametrize("module", BOTH)
def test_half_a_surrogate_pair_is_escaped(module):
    """UTF-8 cannot hold it; JSON can."""
    assert module.dumps("\ud800") == rb'"\ud800"'


@given(json_values)
def test_the_installation_changes_no_value_that_is_written(value):
    assert typed(written(installed)(value)) == typed(written(PLAIN)(value))


keys = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from(Text)
contents = st.recursive(
    json_values
    | st.floats()
    | st.binary(max_size=3)
    | st.sampled_from([Colour.RED, Text.A, Number.ONE, MOMENT, TASK, Data("d"), object, {1}])
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=3)
        | st.builds(Data, st.just("d"), inner)
        | st.builds(Attrs, st.just("a"), inner)
    ),
    max_leaves=8,
)


@given(contents)
def test_the_installation_changes_no_conversion_and_no_refusal(value):
    assert outcome(written(installed), value) == outcome(written(PLAIN), value)


class NoTask:
    """Data with to_dict(), which promises nothing about its numbers."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value}


@pytest.mark.parametrize("module", BOTH)
@pytest.mark.parametrize(
    "hold",
    [
        lambda value: value,
        lambda value: Task("t", metadata={"a": None, "b": value}),
        lambda value: Task("t", flow_state={"a": None, "b": [value]}),
        lambda value: Task("t", messages=[Message.user("x").add_part(Part.json({"n": value}))]),
        lambda value: Message.user("x").add_part(Part("json", {"a": None, "b": value})),
        NoTask,
    ],
    ids=["plain", "metadata", "flow_state", "part", "message", "other"],
)
def test_nan_is_refused_wherever_it_stands(module, hold):
    """orjson writes it as null, which would be a value lost in silence."""
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON"):
            module.dump_data(hold({"none": None, "here": [number]}))


@given(contents)
def test_the_installation_changes_nothing_of_the_data_of_a_call(value):
    def dumped(module):
        return lambda data: json.loads(module.dump_data(data).decode())

    assert outcome(dumped(installed), value) == outcome(dumped(PLAIN), value)


def test_a_program_without_the_extra_has_the_plain_module():
    """The same in a process of its own, where the libraries cannot be imported from the start."""
    program = (
        "import sys\n"
        "sys.modules['orjson'] = sys.modules['msgspec'] = None\n"
        "from protolink_sync.wire import json\n"
        "assert json.loads(json.dumps({'n': 10**20, 't': [1.5, None]})) == "
        "{'n': 10**20, 't': [1.5, None]}\n"
        "try:\n"
        "    json.loads(b'[1e400]')\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert run.stdout.strip() == outcome(installed.loads, b"[1e400]")[1]
