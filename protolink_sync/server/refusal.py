"""RefusedError: why a request gets no result, in a form that every way of hosting can tell."""

from __future__ import annotations

__all__ = ["RefusedError"]


class RefusedError(Exception):
    """A request that is answered with an error.

    Args:
        status: HTTP status of the answer.
        message: What is wrong, in words for the caller.
        kind: Name of the error in an envelope; over HTTP it is not told.
        told: False keeps the message from HTTP callers, who get a bare status instead: what goes
            wrong inside an agent may hold what is nobody's business.
    """

    def __init__(self, status: int, message: str, kind: str, *, told: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.told = told

    def copy(self) -> RefusedError:
        """Return the same refusal for another caller: a raised exception has its own traceback."""
        return RefusedError(self.status, self.message, self.kind, told=self.told)
