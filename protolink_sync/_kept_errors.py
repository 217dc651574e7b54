"""Errors that are kept, to be raised again: of a stream that broke, of an agent without a card.

An error leads to the frames it came through, and they to what their calls have sent and read. One
that is kept must not, and each raising adds frames: so a copy is raised, or kept.
"""

from __future__ import annotations

import copy
from typing import TypeVar

__all__ = ["copied", "without_frames"]

_Error = TypeVar("_Error", bound=BaseException)


def copied(error: _Error) -> _Error:
    """Return the same error, raised nowhere yet; itself if its class cannot be copied."""
    try:
        again = copy.copy(error)
    except Exception:  # of a constructor that wants more than the message
        again = error
    if again is error or type(again) is not type(error):
        return error.with_traceback(None)
    again.args = error.args  # which a constructor may have made of what it was given
    again.__cause__, again.__context__ = error.__cause__, error.__context__
    again.__suppress_context__ = error.__suppress_context__  # which a cause sets, None too
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
            link.__traceback__ = link.__context__ = None
            links += [link.__cause__, *getattr(link, "attempts", ())]
    return error
