"""Errors that are kept, to be raised again: of a stream that broke, of an agent without a card.

An error leads to the frames it came through, and they to what their calls have sent and read. One
that is kept must not, and each raising adds frames: so a copy is raised, or kept.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from protolink_sync import errors
from protolink_sync.errors import TransportError

__all__ = ["copied", "is_own", "without_frames"]

# What sets these also where a class lets nothing be set.
_TRACEBACK: Any = vars(BaseException)["__traceback__"]
_CONTEXT: Any = vars(BaseException)["__context__"]

_Error = TypeVar("_Error", bound=BaseException)


def is_own(error: BaseException) -> bool:
    """Return whether an error is of one of the library's classes, not of one made from these."""
    return type(error).__module__ == errors.__name__


def copied(error: _Error) -> _Error:
    """Return the same error, raised nowhere yet; itself if it is none of the library's own.

    How others are to be copied only they know: of slots, of what a constructor wants.
    """
    if not is_own(error):
        return error.with_traceback(None)
    try:
        again = copy.copy(error)
    except TypeError:  # somebody has changed its args
        return error.with_traceback(None)
    again.__cause__, again.__context__ = error.__cause__, error.__context__
    again.__suppress_context__ = error.__suppress_context__  # which a cause sets, None too
    notes = vars(again).get("__notes__")
    if notes is not None:
        vars(again)["__notes__"] = [*notes]
    return again


def without_frames(error: _Error) -> _Error:
    """Return an error after it, its causes and its attempts have forgotten where they were raised.

    And what was handled then, which can be an exception of the caller's.
    """
    links: list[BaseException | None] = [error]
    known: set[int] = set()
    while links:
        link = links.pop()
        if link is not None and id(link) not in known:
            known.add(id(link))
            _TRACEBACK.__set__(link, None)
            _CONTEXT.__set__(link, None)
            links.append(link.__cause__)
            if is_own(link) and isinstance(link, TransportError):
                links += link.attempts
    return error
