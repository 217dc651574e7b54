"""Whole text messages cut from bytes as they came, and frames as a client sends them."""

from __future__ import annotations

import importlib.util
import os
import struct
import subprocess
import sys
import types
from collections.abc import Mapping
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protolink_sync.transport import _ws_frames
from protolink_sync.transport._ws_frames import PING, TEXT, header_size, masked_frame, take_texts

SIZES = [0, 1, 3, 4, 125, 126, 4095, 4096, 4097, 65535, 65536, 65537, 300_001]

# After so many bytes the function in C is looked for.
MUCH = 1 << 20


def loaded(modules: Mapping[str, types.ModuleType | None]) -> types.ModuleType:
    """Load the module once more, among these other modules, and have it mask much."""
    spec = importlib.util.spec_from_file_location("frames", _ws_frames.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with mock.patch.dict(sys.modules, modules):
        module.masked_frame(TEXT, bytes(MUCH), b"abcd")
    return module


def masking_like(function: object) -> types.ModuleType:
    speedups = types.ModuleType("websockets.speedups")
    speedups.apply_mask = function  # type: ignore[attr-defined]
    library = types.ModuleType("websockets")
    return loaded({"websockets": library, "websockets.speedups": speedups})


IN_C = loaded({})
PLAIN = loaded({"websockets": None})
both = pytest.mark.parametrize(
    "module", [pytest.param(IN_C, id="in-c"), pytest.param(PLAIN, id="plain")]
)


def served(payload: bytes, first: int = 0x81) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes((first, size)) + payload
    if size < 1 << 16:
        return struct.pack("!BBH", first, 126, size) + payload
    return struct.pack("!BBQ", first, 127, size) + payload


def unmasked(frame: bytes) -> tuple[int, bytes]:
    size, at = frame[1] & 0x7F, 2
    assert frame[1] & 0x80, "a client masks"
    if size >= 126:
        width = 2 if size == 126 else 8
        size, at = int.from_bytes(frame[2 : 2 + width], "big"), 2 + width
    key, masked = frame[at : at + 4], frame[at + 4 :]
    assert len(masked) == size
    return frame[0], bytes(byte ^ key[number % 4] for number, byte in enumerate(masked))


@both
@pytest.mark.parametrize("size", SIZES)
def test_a_masked_frame_is_what_any_server_unmasks(module, size):
    payload = os.urandom(size)

    assert unmasked(bytes(module.masked_frame(TEXT, payload, os.urandom(4)))) == (0x81, payload)


@both
@given(st.binary(max_size=6000), st.binary(min_size=4, max_size=4))
def test_masking_is_right_for_each_payload_and_key(module, payload, key):
    frame = bytes(module.masked_frame(PING, payload, key))

    assert unmasked(frame) == (0x89, payload)
    assert key in frame


def test_a_few_messages_are_masked_without_the_library_and_many_with_it():
    """To import it takes as long as to mask a few thousand messages without it."""
    pytest.importorskip("websockets")
    program = (
        "import sys\n"
        "from protolink_sync.transport._ws_frames import TEXT, masked_frame\n"
        f"for _ in range({MUCH} // 1024 - 1): masked_frame(TEXT, bytes(1024), b'abcd')\n"
        "print('websockets' in sys.modules)\n"
        "masked_frame(TEXT, bytes(1024), b'abcd')\n"
        "print('websockets.speedups' in sys.modules)\n"
    )

    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (told.stdout.split(), told.stderr) == (["False", "True"], "")


def no_longer_as_it_was(data, mask, more):
    return data


@pytest.mark.parametrize("function", [lambda data, mask: data, no_longer_as_it_was])
def test_a_library_that_masks_otherwise_is_not_used(function):
    module = masking_like(function)

    assert unmasked(bytes(module.masked_frame(TEXT, b"Hello", b"abcd"))) == (0x81, b"Hello")


def test_a_library_that_masks_so_is_used():
    """Or the tests above would try the same twice."""
    told = []

    def apply_mask(data, mask):
        told.append((data, mask))
        return bytes(byte ^ mask[number % 4] for number, byte in enumerate(data))

    module = masking_like(apply_mask)

    assert unmasked(module.masked_frame(TEXT, b"Hello", b"abcd")) == (0x81, b"Hello")
    assert told[-1] == (b"Hello", b"abcd")


@pytest.mark.parametrize("size", SIZES)
def test_a_whole_message_of_any_length_form_is_taken(size):
    payload = os.urandom(size)
    frame = served(payload)

    assert take_texts(frame, 0, 1 << 20) == ([payload], len(frame), 2)
    assert header_size(frame[1]) == len(frame) - size


@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_messages_do_not_depend_on_where_the_bytes_were_cut(payloads, data):
    whole = b"".join(map(served, payloads))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=10)))
    taken: list[bytes] = []
    buffer, at = b"", 0

    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        buffer, at = buffer[at:] + whole[begin:end], 0
        while True:
            texts, at, missing = take_texts(buffer, at, 1 << 20)
            assert missing > 0
            if not texts:
                break
            taken += texts

    assert taken == payloads
    assert at == len(buffer)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_missing_is_never_more_than_what_is_missing(size):
    frame = served(b"x" * size)

    for there in {0, 1, 2, 3, 4, 9, 10, 11, len(frame) // 2, len(frame) - 1} & {*range(len(frame))}:
        texts, at, missing = take_texts(frame[:there], 0, 1 << 20)
        assert (texts, at) == ([], 0)
        assert 0 < missing <= len(frame) - there


@pytest.mark.parametrize("first", [0x01, 0x80, 0x82, 0x88, 0x89, 0x8A, 0xC1, 0xA1, 0x91])
def test_what_is_no_whole_text_is_left_where_it_stands(first):
    before = served(b"text")

    assert take_texts(before + served(b"x", first), 0, 100) == ([b"text"], len(before), 0)
    assert take_texts(bytes((first,)), 0, 100) == ([], 0, 0)


def test_a_masked_frame_is_left_where_it_stands():
    assert take_texts(bytes(masked_frame(TEXT, b"x", b"abcd")), 0, 100) == ([], 0, 0)


@pytest.mark.parametrize("size", [101, 126, 65536, 1 << 40])
def test_a_message_beyond_the_limit_is_left_before_its_bytes_come(size):
    head = struct.pack("!BBQ", 0x81, 127, size)

    assert take_texts(head, 0, 100) == ([], 0, 0)
    assert take_texts(served(b"x" * 100), 0, 100)[0] == [b"x" * 100]
