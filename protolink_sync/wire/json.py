"""Values to JSON bytes and back, strictly: what goes in comes out equal, or an error says where.

NaN and Infinity are refused in both directions, big integers keep their digits, text is UTF-8
without a byte order mark. With the extra ``fast`` orjson writes and msgspec reads; whatever they
would do differently is left to the standard library, so the results are the same.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from typing import Any, Literal

from protolink_sync.models import Task, jsonable

__all__ = ["dump_data", "dumps", "loads"]

_INFINITE = (math.inf, -math.inf)

# How much of a number that cannot be read its error repeats.
_SHOWN_DIGITS = 40


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in _INFINITE:
        shown = text if len(text) <= _SHOWN_DIGITS else f"{text[:_SHOWN_DIGITS]}..."
        raise ValueError(f"{shown} is too large for a float")
    return number


_decode = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode
# No check for circles: the models have none, and in anything else jsonable() finds them.
_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

# The functions of the extra "fast": unknown until the first use, then there or not. To import
# the two libraries takes longer than to import all of this package's models.
_fast: tuple[Callable[[Any], bytes], Callable[[bytes], Any]] | Literal[False] | None = None


def _find_fast() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]] | Literal[False]:
    global _fast
    try:
        import msgspec
        import orjson
    except ImportError:
        _fast = False
    else:
        options = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
        _fast = (
            functools.partial(orjson.dumps, option=options),
            msgspec.json.Decoder().decode,
        )
    return _fast


def dumps(value: Any, *, finite: bool = False) -> bytes:
    """Return a value as compact JSON in UTF-8.

    Args:
        value: JSON values, and in them models, dataclasses, enums and datetimes.
        finite: Promise that no number in it is NaN or Infinity, as ``Task.to_dict()`` has made
            sure: then nobody looks a second time.

    Raises:
        TypeError: Something in it is no JSON; the message has its path.
        ValueError: It holds NaN or Infinity, or itself; the message has the path.

    >>> dumps({"n": 10**20, "t": "ä"})
    b'{"n":100000000000000000000,"t":"\\xc3\\xa4"}'
    """
    fast = _find_fast() if _fast is None else _fast
    if fast:
        try:
            written = fast[0](value)
        except Exception:
            written = None
        # orjson writes NaN as null; without a null there was none.
        if written is not None and (finite or b"null" not in written):
            return written
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError):
        # Something in it is no plain JSON: convert it, or have the path of what cannot be.
        text = _encode(jsonable(value))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair: JSON can escape it, UTF-8 cannot hold it
        return _encode_ascii(jsonable(value)).encode()


def dump_data(data: Any) -> bytes:
    """Return a model or plain JSON values as JSON.

    Raises:
        TypeError: The data is no JSON.
        ValueError: The data holds NaN, Infinity or itself.
    """
    to_dict = getattr(data, "to_dict", None)
    if to_dict is None:
        # Here keys become text, where json.dumps would write two of the same text, and NaN shows.
        return dumps(jsonable(data), finite=True)
    return dumps(to_dict(), finite=type(data) is Task)


def loads(data: bytes) -> Any:
    """Return the value that JSON bytes hold.

    Args:
        data: One JSON document in UTF-8.

    Raises:
        ValueError: The bytes are not UTF-8, no JSON, or hold NaN, Infinity, or nesting deeper
            than Python can follow; the message says what and where.

    >>> loads(b'{"n": 18446744073709551617}')
    {'n': 18446744073709551617}
    """
    fast = _find_fast() if _fast is None else _fast
    if fast:
        try:
            return fast[1](data)
        except Exception:  # the standard library decides, and words the error
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8 ({error.reason})") from error
    if text.startswith("\ufeff"):
        raise ValueError("it begins with a byte order mark, which JSON does not allow")
    try:
        return _decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
