"""One request on its way through an agent: from its parsed data to the bytes of the answer.

The agent's own code may take any time, so a caller that must be able to leave has another thread
carry the request out, and asks for the answer when that has ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any

from protolink_sync.errors import words
from protolink_sync.models import EndpointSpec
from protolink_sync.server.idempotency import Answers, Claim
from protolink_sync.server.refusal import RefusedError

__all__ = ["Execution"]

_log = logging.getLogger("protolink_sync.server")


class Execution:
    """One request that is being carried out.

    Args:
        spec: The endpoint.
        data: What its handler gets.
        principal: Who asks.
        answers: What was answered before.
        claim: By what a repetition is recognised; None if the answer is not remembered.
        encode: Makes the bytes of the answer.
        largest: Most bytes of an answer.
    """

    __slots__ = (
        "_answer",
        "_answers",
        "_claim",
        "_data",
        "_encode",
        "_error",
        "_largest",
        "_principal",
        "_spec",
    )

    def __init__(
        self,
        spec: EndpointSpec,
        data: Any,
        principal: Hashable,
        answers: Answers,
        claim: Claim | None,
        encode: Callable[[Any], bytes],
        largest: int,
    ) -> None:
        self._spec = spec
        self._data = data
        self._principal = principal
        self._answers = answers
        self._claim = claim
        self._encode = encode
        self._largest = largest
        self._answer: bytes | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Have the agent do what is asked, unless that was done before.

        What goes wrong is told by :meth:`answer`.
        """
        claim = self._claim
        try:
            answer = None if claim is None else self._answers.begin(claim)
            if answer is None:
                answer = self._encode(self._spec.handler(self._data, self._principal))
                if len(answer) > self._largest:
                    raise self._too_large(len(answer))
                if claim is not None:
                    self._answers.store(claim, answer)
            self._answer = answer
        except BaseException as error:
            self._fail(error)

    def answer(self) -> bytes:
        """Return the answer, once :meth:`run` has ended.

        Raises:
            RefusedError: There is none; it says why.
        """
        if self._answer is None:
            self.give_up()
            assert self._error is not None
            raise self._error
        return self._answer

    def give_up(self) -> None:
        """Let go of a request that was interrupted; one that is over is not touched."""
        if self._answer is None and self._error is None:
            self._fail(RefusedError(500, "the request was interrupted", "InterruptedError"))

    def _fail(self, error: BaseException) -> None:
        # Outside the main thread nobody can mean the process: sys.exit(), a cancelled task.
        is_main = threading.current_thread() is threading.main_thread()
        is_failure = isinstance(error, Exception) or not is_main
        if is_failure and not isinstance(error, RefusedError):
            _log.error("%s failed", self._spec.name, exc_info=error)
            refused = RefusedError(500, words(error), type(error).__name__, told=False)
            refused.__cause__ = error
            error = refused
        if self._claim is not None:
            self._answers.fail(self._claim, error)
        self._error = error

    def _too_large(self, size: int) -> RefusedError:
        return RefusedError(
            500,
            f"the answer has {size} bytes, limit is {self._largest}. Raise "
            "TransportLimits.max_response_bytes of the agent",
            "TransportLimitError",
        )
