"""Nothing that a peer writes takes more than linear time: long runs of one character, everywhere.

A regular expression that takes quadratic time holds the interpreter, so no budget ends the call.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protolink_sync.a2a.wire.card import origin_of
from protolink_sync.client._typed import AnswerType
from protolink_sync.errors import ModelError, ProtoLinkError
from protolink_sync.models._time import instant
from protolink_sync.security import origin
from protolink_sync.wire import one_line
from tests.fuzz.decoders import DECODERS, Decoder
from tests.fuzz.run import feed

RUNS = (
    *" \t\n\r\0",
    *"09aZ:;,.-+[]{}()\"'\\/%=&<`\x85\u2028",
    *("\r\n", "a: ", "1:", "data:", "data\n", "1\r\na\r\n", " (see errors.html#a"),
)

# The first is for what takes cubic time, with which the second would not come to its end.
SIZES = (2_000, 20_000)
MOST_SECONDS = 0.5

INPUTS = 4
PLACES = 4


def run_of(text: str, size: int) -> str:
    return text * (size // len(text))


def check_time(read: Callable[[], object], what: str) -> None:
    """Check the time of the processor; twice before it counts, for a machine that does much."""
    took = 0.0
    for _ in range(2):
        before = time.process_time()
        read()
        took = time.process_time() - before
        if took < MOST_SECONDS:
            return
    pytest.fail(f"{what} took {took:.1f} s")


def stretched(value: Any, run: str) -> Iterator[Any]:
    """Give a value once for each text in it, which goes on with the run there."""
    if isinstance(value, str):
        yield f"{value}{run}x"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from ({**value, name: other} for other in stretched(item, run))
        yield {**value, run: None}
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in stretched(item, run))


def with_run(data: Any, run: str, chance: random.Random) -> Iterator[Any]:
    if isinstance(data, bytes):
        piece = run.encode()
        for _ in range(PLACES):
            at = chance.randint(0, len(data))
            yield data[:at] + piece + data[at:]
    else:
        places = [*stretched(data, run)]
        yield from chance.sample(places, min(PLACES, len(places)))


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_a_long_run_is_read_in_linear_time(decoder):
    chance = random.Random(decoder.name)

    for text in RUNS:
        for size in SIZES:
            for _ in range(INPUTS):
                for data in with_run(decoder.make(chance), run_of(text, size), chance):
                    where = f"{text!r}, {size} of them"
                    check_time(lambda data=data, where=where: read(decoder, data, where), where)


def read(decoder: Decoder, data: Any, where: str) -> None:
    wrong = feed(decoder, data)
    assert wrong is None, (wrong, where)


def _origin(url: str) -> None:
    with contextlib.suppress(ValueError):
        origin(url)


def _typed(answer: str) -> None:
    for kind in (int, float, list[str]):
        with contextlib.suppress(ModelError):
            AnswerType(kind).read(answer)


READERS = {
    "a timestamp": (instant, ("", "2026-01-01T00:00", "2026-01-01T00:00:00.0")),
    "a typed answer": (_typed, ("", "```\n", "```json\n", '{"a": "')),
    "an address in a card": (origin_of, ("http://", "http://[", "http://[::1]", "http://h:")),
    "an address": (_origin, ("http://", "http://[", "http://[::1]", "http://h:")),
    "words in an error": (ProtoLinkError, ("", " (see errors.html#")),
    "words in a log": (one_line, ("",)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_long_run_in_one_text_is_read_in_linear_time(name):
    read, begins = READERS[name]

    for run in RUNS:
        for size in SIZES:
            for begin in begins:
                for end in ("", "x", "]", "]x", "\n```x"):
                    text = begin + run_of(run, size) + end
                    check_time(lambda text=text: read(text), f"{begin!r} and {size} of {run!r}")
