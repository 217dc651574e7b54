"""From a blocking method to its awaitable twin."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from protolink_sync._deadline import CancelToken
from protolink_sync.aio._threads import in_thread

__all__ = ["awaited", "linked"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextlib.contextmanager
def linked(given: CancelToken | None, own: CancelToken | None = None) -> Iterator[CancelToken]:
    """Return a token of a call's own, which the caller's token cancels too.

    Args:
        given: The caller's.
        own: The call's, if it has one already.
    """
    token = CancelToken() if own is None else own
    if given is None:
        yield token
        return
    if not isinstance(given, CancelToken):
        raise TypeError(f"cancel is a {type(given).__name__}, must be a CancelToken")
    unlink = given.on_cancel(lambda: token.cancel(given.reason))
    try:
        yield token
    finally:
        unlink()


def awaited(
    method: Callable[Concatenate[Any, _P], _R],
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _R]]:
    """Return the awaitable twin of a blocking method that takes ``cancel=``.

    It has the same parameters and calls the method of ``self._blocking``, so a subclass's one
    where there is one. Cancelling the asyncio task ends the call at once.
    """
    name = method.__name__

    @functools.wraps(method)
    async def call(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        given: Any = kwargs.pop("cancel", None)
        with linked(given) as token:
            blocking = getattr(self._blocking, name)
            result: _R = await in_thread(
                functools.partial(blocking, *args, **kwargs, cancel=token), token
            )
            return result

    return call
