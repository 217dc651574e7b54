"""Constructors that say what to use in the place of a keyword they do not have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["explaining"]

# Arguments of protolink's transports, which are servers too, and what takes their place here.
_SERVER_WORDS = {
    "authenticator": (
        "what a caller shows to agents is credentials=; an agent that is hosted here looks at its "
        "callers with Agent(..., authenticate=...)"
    ),
    "backend": (
        "a caller needs no web server; an agent is hosted here with agent.serve(url), or by any "
        "WSGI server with agent.wsgi_app()"
    ),
}


def explaining(init: Callable[..., None]) -> Callable[..., None]:
    """Have a constructor name the way out, or what it knows, when a keyword is unknown to it."""
    code = getattr(init, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
        return init
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **settings: Any) -> None:
        for name in settings:
            if name not in known:
                because = _SERVER_WORDS.get(name, f"known: {', '.join(known)}")
                raise TypeError(f"{type(self).__name__} has no argument {name!r}; {because}")
        init(self, *args, **settings)

    return checked
